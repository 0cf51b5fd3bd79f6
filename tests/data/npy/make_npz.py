#!/usr/bin/env python3
"""Writes the .npz files in this directory with NumPy and zipfile; tests/npz_test.cpp knows what is in them."""
import pathlib
import zipfile

import numpy as np

here = pathlib.Path(__file__).parent
arrays = {
    "x": np.arange(6, dtype="f4").reshape(2, 3),
    "columns": np.asfortranarray(np.arange(6, dtype=">i2").reshape(2, 3)),
    "flags": np.array([True, False, True]),
    "none": np.zeros((0, 3), dtype="u1"),
    "scalar": np.float64(2.5),
    "deep/er name é": np.arange(3, dtype="c8"),
}
np.savez(here / "stored.npz", **arrays)
np.savez_compressed(here / "compressed.npz", **arrays, zeros=np.zeros(10_000, dtype="f8"))
np.savez(here / "empty.npz")
np.savez(here / "unknown_dtype.npz", x=arrays["x"], words=np.array(["one", "two"]))

with zipfile.ZipFile(here / "others.npz", "w", zipfile.ZIP_DEFLATED) as file:  # as zip tools make them
    file.comment = b"a comment"
    file.writestr("folder/", "")
    file.writestr("folder/notes.txt", "no array")
    file.write(here / "f4_vector.npy", "folder/vector.npy")
    file.write(here / "f4_vector.npy", "without_suffix")


class Pipe:
    """A file without a place: zipfile then writes sizes and checksums behind the data."""

    def __init__(self, file):
        self.write, self.flush = file.write, file.flush


with open(here / "streamed.npz", "wb") as pipe, zipfile.ZipFile(Pipe(pipe), "w", zipfile.ZIP_DEFLATED) as file:
    with file.open("x.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array(member, arrays["x"])
