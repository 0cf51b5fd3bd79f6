#!/usr/bin/env python3
"""Writes the .npy files in this directory with NumPy; tests/npy_test.cpp knows their elements.

Element k, counted row-major, is (k - 5) * 0.75 in floats, (k - 5) * 1000003 in ints, k * 1000003 in unsigned
ones, both modulo 2^bits, k * 37 % 256 in u1 and k % 3 == 0 in b1, (k - 5) * 0.75 + k * i in complex ones; the special_* files hold what a conversion would spoil.
"""
import pathlib
import warnings

import numpy as np

here = pathlib.Path(__file__).parent
warnings.filterwarnings("ignore", category=UserWarning)  # versions 2.0 and 3.0 are asked for

DTYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "b1"]
SHAPES = {"scalar": (), "vector": (5,), "matrix": (2, 3), "cube": (2, 3, 4), "none": (2, 0, 3)}


def elements(code, shape):
    k = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    if code[0] == "f":
        return ((k - 5) * 0.75).astype(code)
    if code[0] == "i":
        return ((k - 5) * 1000003).astype(code)
    if code == "b1":
        return k % 3 == 0
    return (k * 37 % 256 if code == "u1" else k * 1000003).astype(code)


def write(name, array, version=(1, 0)):
    with open(here / f"{name}.npy", "wb") as file:
        np.lib.format.write_array(file, array, version, allow_pickle=True)


for code in DTYPES:
    for name, shape in SHAPES.items():
        write(f"{code}_{name}", elements(code, shape))
    write(f"{code}_cube_fortran", np.asfortranarray(elements(code, (2, 3, 4))))
    if code[-1] != "1":
        write(f"{code}_matrix_big", elements(code, (2, 3)).astype(">" + code))
write("f4_matrix_big_fortran", np.asfortranarray(elements("f4", (2, 3)).astype(">f4")))
write("f4_vector_v2", elements("f4", (5,)), (2, 0))
write("f4_vector_v3", elements("f4", (5,)), (3, 0))
write("u1_sixty_four", elements("u1", (1,) * 63 + (3,)))

for code in ["f8", "f4", "f2"]:
    info = np.finfo(code)
    values = [-0.0, np.inf, -np.inf, info.max, info.tiny, info.smallest_subnormal]
    write(f"{code}_special", np.array(values, code))
write("i8_special", np.array([2**63 - 1, -(2**63), 2**53 + 1], "i8"))
write("u8_special", np.array([2**64 - 1, 2**63, 2**53 + 1], "u8"))

for code in ["c8", "c16"]:
    part = elements("f8", (2, 3))
    array = (part + 1j * np.arange(6).reshape(2, 3)).astype(code)
    write(f"{code}_matrix", array)
    write(f"{code}_matrix_fortran", np.asfortranarray(array))
    write(f"{code}_matrix_big", array.astype(">" + code))

for code in ["c32", "S3", "U3", "V2", "M8[s]", "m8[s]", "f16"]:
    write("refused_" + code.replace("[s]", ""), np.zeros(2, code))
write("refused_O", np.array([None, {}], object))
write("refused_structured", np.zeros(2, [("a", "f4"), ("b", "i4")]))
