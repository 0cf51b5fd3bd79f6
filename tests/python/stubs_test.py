"""The stub files: beside the module itself, and read by a type checker."""

import ast
import pathlib
import subprocess
import sys

import pytest

import ein

FOLDER = pathlib.Path(ein.__file__).parent


def run(*words, folder):
    done = subprocess.run([sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["", "nn", "optim", "data"])
def test_stubs_have_the_modules_names(name):
    """Each public name of both, and the members of its classes."""
    module = getattr(ein, name) if name else ein
    stub = ast.parse(FOLDER.joinpath((name or "__init__") + ".pyi").read_text(encoding="utf-8"))
    written = {node.name: node for node in stub.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    parts = {alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names if alias.asname}
    assert set(written) | parts == set(module.__all__)
    for class_name, node in written.items():
        if not isinstance(node, ast.ClassDef) or class_name == "Error":
            continue
        members = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
        here = {one for one, entry in vars(getattr(module, class_name)).items()
                if callable(entry) or isinstance(entry, property)}
        ignored = {"__init__", "__new__", "__hash__", "__class__", "_operation"}
        assert here - ignored <= members, class_name


def test_a_program_is_checked(tmp_path):
    pytest.importorskip("mypy", reason="there is no mypy here")
    program = tmp_path / "program.py"
    program.write_text('''
import numpy as np
import ein

x = np.ones((2, 3))
y = ein.einsum(x, x, "i k, j k -> i j", sums_alone=True)
t: ein.Tensor = ein.ones((2, 3), dtype="f32")
u: ein.Tensor = t.reshape((3, 2)).contiguous()
shape: tuple[int, ...] = t.shape
model = ein.nn.Sequential(ein.nn.Linear(3, 4), ein.nn.Function(ein.gelu))
optimizer = ein.optim.AdamW(model.parameters(), learning_rate=1e-3)
optimizer.step()
step = ein.compile(lambda a: ein.softmax(a, "i [j]"))
batch = ein.data.get_batch(ein.data.Tokens(np.arange(9)), 2, 3, seed=0, number=1)
''')
    status, text = run("mypy", "--strict", str(program), folder=tmp_path)
    assert status == 0, text
    mistaken = tmp_path / "mistaken.py"
    mistaken.write_text('import ein\nein.softmax(ein.ones((2,)))\nein.ones((2,)).shapes\nein.optim.AdamW([], rate=1)\n')
    status, text = run("mypy", str(mistaken), folder=tmp_path)
    assert status == 1 and text.count(": error:") == 3, text
    assert FOLDER.joinpath("py.typed").exists()
