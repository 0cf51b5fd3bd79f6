"""Writes the stub files of the package: what type checkers and editors read. Names and signatures are asked of it.

usage: write_stubs.py FOLDER
"""

import inspect
import os
import re
import sys

import ein
from ein import _ein, _public

HEAD = '''"""Made by python/write_stubs.py of the module itself."""

import collections.abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np

DTypeLike = str | np.dtype[Any] | type | Any
Array = Any
'''
# A class that another file of the package has is named without its module, and imported.
OURS = re.compile(r"\b(?:ein\.)?_ein\.(?:_\w+\.)?")


def annotation(text):
    text = OURS.sub("", text)
    text = re.sub(r"\bobject\b", "Any", text)
    text = re.sub(r"\\\d+", "...", text)  # defaults, by number
    return re.sub(r"\bargs\)", "args: Any)", re.sub(r"\*(\w+)(?=[,)])", r"*\1: Any", text)).replace(": Any: Any", ": Any")


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


def of_function(name, value, decorator=""):
    signatures = getattr(value, "__nb_signature__", None) or ()
    lines = []
    for entry in signatures:
        text = annotation(entry[0])
        doc = f"\n    {entry[1]!r}\n    ..." if entry[1] else " ..."
        lines.append(("@overload\n" if len(signatures) > 1 else "") + decorator + text + ":" + doc)
    return "\n".join(lines) + "\n"


def of_property(name, entry):
    signatures = getattr(entry.fget, "__nb_signature__", None)
    returns = annotation(signatures[0][0]).partition("->")[2].strip() if signatures else ""
    lines = [f"@property\ndef {name}(self) -> {returns or 'Any'}: ..."]
    if entry.fset is not None:
        lines.append(f"@{name}.setter\ndef {name}(self, value: Any, /) -> None: ...")
    return "\n".join(lines)


def of_member(name, entry):
    if isinstance(entry, (staticmethod, classmethod)) or type(entry).__name__ == "nb_static_property":
        entry = entry.__func__
        return of_function(name, entry, "@staticmethod\n")
    if isinstance(entry, property):
        return of_property(name, entry)
    if hasattr(entry, "__nb_signature__"):
        is_static = not annotation(entry.__nb_signature__[0][0]).partition("(")[2].startswith("self")
        return of_function(name, entry, "@staticmethod\n" if is_static else "")
    if inspect.isfunction(entry):
        return of_python_function(name, entry)
    return None


def of_python_function(name, function):
    arguments = []
    for argument in inspect.signature(function).parameters.values():
        text = str(argument.replace(default=argument.empty))
        if argument.name != "self":
            text += ": Any" if argument.default is argument.empty else ": Any = ..."
        arguments.append(text)
    return f"def {name}({', '.join(arguments)}) -> {'None' if name == '__init__' else 'Any'}: ..."


def of_class(name, value):
    # What a base of the package's own has is its class's, too.
    hidden = [base for base in value.__mro__[1:] if base.__name__.startswith("_")]
    value_members = {k: v for one in (*reversed(hidden), value) for k, v in vars(one).items()}
    bases = [base for base in value.__bases__ if base is not object]
    if hidden:
        bases = [base for one in hidden for base in one.__bases__ if base not in hidden]
    bases = [base.__name__ for base in bases]
    lines = [f"class {name}({', '.join(bases)}):" if bases else f"class {name}:", f"    {(value.__doc__ or name)!r}"]
    if value is _ein.Error:
        lines += ["    kind: str", "    spans: list[tuple[int, int]]"]
    for member, entry in value_members.items():
        text = of_member(member, entry)
        if text:
            lines += ["    " + line for line in text.splitlines()]
    return "\n".join(lines) + "\n"


def stub(module, names, imports=""):
    operations = _ein._operations()
    parts = [HEAD + imports]
    for name in names:
        value = getattr(module, name)
        if inspect.ismodule(value):
            parts.append(f"from . import {name} as {name}\n")
        elif module is ein and operations.get(name):
            parts.append(of_operation(name, operations[name]))
        elif isinstance(value, type):
            parts.append(of_class(name, value))
        else:
            parts.append(of_function(name, value))
    if module is ein:
        parts.append("__version__: str\n")
    parts.append(f"__all__ = {list(names)!r}\n")
    return "\n".join(parts)


def main(folder):
    written = {
        "__init__": stub(ein, ein.__all__),
        "optim": stub(ein.optim, ein.optim.__all__, "from . import Tensor\n"),
        "data": stub(ein.data, ein.data.__all__, "from . import Tensor\n"),
        # Bases come first.
        "nn": stub(ein.nn, sorted(ein.nn.__all__, key=lambda name: len(getattr(ein.nn, name).__mro__)
                                  if isinstance(getattr(ein.nn, name), type) else 99),
                   "from . import Account, Tensor\n"),
    }
    written["_ein"] = HEAD + "def __getattr__(name: str) -> Any: ...\n"  # the package's own
    for name, text in written.items():
        path = os.path.join(folder, name + ".pyi")
        compile(text, path, "exec")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


main(sys.argv[1])
