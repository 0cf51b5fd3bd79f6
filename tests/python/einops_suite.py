"""A plugin of pytest that runs einops's own tests on ein.einops: each public function and layer is replaced before the
tests import it, and its calls are counted. einops's submodules, from which tests import private names, stay in place.

usage: python -m pytest -p einops_suite --pyargs einops.tests, as scripts/python-module does
"""

import collections
import functools
import importlib

import einops
import einops.einops
import einops.packing
import pytest

import ein.einops

calls = collections.Counter()


def counted(name, function):
    @functools.wraps(function)
    def call(*arguments, **words):
        calls[name] += 1
        return function(*arguments, **words)

    return call


def replace():
    # An error of ours is one of theirs, too, since tests of private functions expect theirs.
    ein.einops.EinopsError = type("EinopsError", (ein.einops.EinopsError, einops.EinopsError), {})
    for name in ein.einops.__all__:
        if name == "EinopsError":
            continue
        ours = getattr(ein.einops, name)
        ours = counted(name, ours)
        for module in (einops, einops.einops, einops.packing):
            if hasattr(module, name):
                setattr(module, name, ours)
    try:
        theirs = importlib.import_module("einops.layers.torch")
    except ImportError:
        return
    from ein.einops.layers import torch as layers

    for name in ("Rearrange", "Reduce", "EinMix"):
        setattr(theirs, name, getattr(layers, name))


# What is not run, and why.
SKIPPED = {
    "test_functional_errors": "ein's einsum takes groups, () and numbers, which einops refuses",
    "test_torch_layers_scripting": "layers are not for torch.jit.script, which PyTorch has deprecated",
}
replace()


def pytest_collection_modifyitems(items):
    for item in items:
        if item.name in SKIPPED:
            item.add_marker(pytest.mark.skip(reason=SKIPPED[item.name]))


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line("calls of ein.einops: " + ", ".join(f"{k} {v}" for k, v in sorted(calls.items())))
    missing = [name for name in ein.einops.__all__ if name != "EinopsError" and not calls[name]]
    if missing:
        terminalreporter.write_line("never called: " + ", ".join(missing))
