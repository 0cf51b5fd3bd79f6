"""The programs of docs/python.md run, one after the other."""

import pathlib
import re

import numpy as np
import pytest

import ein

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "python.md"


def test_programs_of_the_page_run():
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 6
    rng = np.random.default_rng(0)
    known = {"v": rng.standard_normal((2, 5, 8)).astype(np.float32)}
    known |= {name: rng.standard_normal((4, 8)).astype(np.float32) for name in ("x", "a", "xs")}
    known["b"] = known["a"].T
    known["loss"] = lambda x: ein.einsum(x, x, "i, i ->")
    for block in blocks:
        if "nearest" in block:
            known["y"] = known["x"]
        if "slopes" in block:
            known |= {"y": np.ones(4, np.float32), "w": np.ones(8, np.float32)}
        last = block.rstrip().splitlines()[-1]
        if "b h s2" in last:  # the mistake that the page begins with
            exec(block.replace(last, ""), known)
            with pytest.raises(ein.Error) as caught:
                exec(last, known)
            for line in ("ein.Error: " + str(caught.value)).splitlines():
                assert line.strip() in text
        else:
            exec(block, known)
    assert known["slopes"].shape == (8,) and known["per_example"].shape == (4, 8)
    assert float(known["step"](known["x"], np.ones(4, np.float32))) > 0
