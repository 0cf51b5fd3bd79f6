"""Writes the stub file of the module: what type checkers and editors read. Names and signatures are asked of the module.

usage: write_stubs.py FILE
"""

import re
import sys

import ein
from ein import _ein

HEAD = '''"""Made by python/write_stubs.py of the module itself."""

from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

type DTypeLike = str | np.dtype | type | Any
Array = Any

__version__: str
'''


def of_operation(name, signature):
    # The pattern stands behind any number of operands, where Python's grammar has no place for it by itself.
    document = getattr(_ein, name).__doc__
    if signature.startswith("*operands"):
        rest = signature.split("pattern: str", 1)[1]
        rest = "".join(part for part in re.findall(r", (?:\*\*)?\w+: .*?(?=, (?:\*\*)?\w+: |$)", rest))
        arguments = "*operands_and_pattern: Any" + re.sub(r" = [^,]*(?:, of rms_norm 1e-6)?", " = ...", rest)
    else:
        arguments = re.sub(r" = [^,\]]*", " = ...", signature)
        # What has a default may not stand before what has none: these are given by name.
        before, found, behind = arguments.partition("pattern: str")
        required = [part for part in behind.split(", ") if part]
        arguments = before + found + behind
        if any("= ..." in part for part in required[:-1]):
            first = behind.find(" = ...")
            at = behind.rfind(", ", 0, first)
            arguments = before + found + behind[:at] + ", *" + behind[at:]
    return f"def {name}({arguments}) -> Any:\n    {document!r}\n    ...\n"


def of_function(name, value):
    signatures = getattr(value, "__nb_signature__", None) or ()
    lines = []
    for entry in signatures:
        text = entry[0].replace("ein._ein.", "").replace("_ein.", "").replace("object", "Any")
        text = re.sub(r"\\\d+", "...", text)
        lines.append(("@overload\n" if len(signatures) > 1 else "") + text + ": ...")
    return "\n".join(lines) + "\n"


def of_class(name, value):
    bases = "(ValueError)" if name == "Error" else ""
    lines = [f"class {name}{bases}:", f"    {(value.__doc__ or name)!r}"]
    if name == "Error":
        lines += ["    kind: str", "    spans: list[tuple[int, int]]"]
    for member, entry in vars(value).items():
        if hasattr(entry, "__nb_signature__"):
            lines += ["    " + line for line in of_function(member, entry).splitlines()]
        elif isinstance(entry, property) or type(entry).__name__ in ("nb_property", "property"):
            lines += ["    @property", f"    def {member}(self) -> Any: ..."]
    return "\n".join(lines) + "\n"


def main():
    operations = _ein._operations()
    parts = [HEAD]
    for name in ein.__all__:
        value = getattr(ein, name)
        if operations.get(name):
            parts.append(of_operation(name, operations[name]))
        elif isinstance(value, type):
            parts.append(of_class(name, value))
        else:
            parts.append(of_function(name, value))
    text = "\n".join(parts)
    compile(text, sys.argv[1], "exec") if sys.version_info >= (3, 12) else compile(
        text.replace("type DTypeLike", "DTypeLike"), sys.argv[1], "exec")
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(text)


main()
