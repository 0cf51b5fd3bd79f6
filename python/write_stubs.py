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

DTypeLike = str | np.dtype | type | Any
Array = Any

__version__: str
'''


def of_operation(name, described):
    has_one_operand, words, takes_sizes = described
    required = [f"{word}: {type_}" for word, type_, default in words if default is None]
    optional = [f"{word}: {type_} = ..." for word, type_, default in words if default is not None]
    if has_one_operand:
        arguments = ["x: Array", "pattern: str", *required, *(["*", *optional] if optional else [])]
    else:
        # The operands, the pattern, and what may stand behind it: Python has no way to say it better.
        arguments = ["*operands_and_pattern: Any", *optional]
    if takes_sizes:
        arguments.append("**sizes: int")
    return f"def {name}({', '.join(arguments)}) -> Any:\n    {getattr(_ein, name).__doc__!r}\n    ...\n"


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
    compile(text, sys.argv[1], "exec")
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(text)


main()
