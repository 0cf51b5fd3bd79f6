#!/usr/bin/env python3
"""Writes headers.jsonl: random .npy headers as other writers have them, or nearly, and what numpy.load makes of them.

    tests/data/npy/headers.py [COUNT [SEED]]

A line is [version, header, verdict]; behind the header are 2048 bytes, byte i of them 7 * i + 1. The verdict is "refused",
"other" for an array of no type of ein's, or [shape, the elements in row-major order and little-endian bytes, as hex digits].
"""
import io
import json
import pathlib
import random
import struct
import sys
import warnings

import numpy as np

CODES = "f8 f4 f2 i8 i4 i2 i1 u8 u4 u2 u1 b1 c8 c16".split()
CHARACTERS = "? b B h H i I l L q Q p P n N e f d F D".split()
NAMES = ("bool bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 half single double float complex "
         "complex64 complex128 csingle cdouble int int_ uint intc uintc intp uintp long ulong longlong ulonglong short ushort "
         "byte ubyte").split()
OTHERS = "f16 g G c32 U5 S3 O V8 M8[ns] m8 a4 c str bytes object void float128 f44 f3 x i3 Float32 4 u16 b2 U S".split()
DATA = bytes((7 * i + 1) % 256 for i in range(2048))


class Writer:
    """Of one header: `oddness` is how often it does what few writers do."""

    def __init__(self, choices):
        self.r = choices
        self.oddness = choices.choice([0, 0.02, 0.1, 0.3])

    def odd(self):
        return self.r.random() < self.oddness

    def pick(self, *values):
        return self.r.choice(values)

    def space(self):
        if not self.odd():
            return self.pick("", " ")
        return self.pick("", " ", "  ", "\t", "\n", " # a comment\n", "\n   ", "\f", "\\\n")

    def quoted(self, text):
        quote = self.pick("'", "'", "'", '"')
        return (self.pick("", "u", "U", "r", "b") if self.odd() else "") + quote + text + quote

    def number(self, n):
        if not self.odd():
            return str(n)
        return self.pick(f"{n}L", hex(n), oct(n), bin(n), f"+{n}", f"({n})", f"-{n}", f"0{n}", f"{n}.0", f"{n}_0", f"{n} L",
                         f"{n}l", "1_0", "_1", "1__0", "0x_2", "00", "None")

    def descr(self):
        order = self.pick("<", ">", "=", "|", "", "!" if self.odd() else "")
        kind = self.r.random()
        if kind < 0.5:
            return self.quoted(order + self.r.choice(CODES))
        if kind < 0.65:
            return self.quoted(order + self.r.choice(CHARACTERS))
        if kind < 0.85:
            return self.quoted((order if self.odd() else "") + self.r.choice(NAMES))
        if kind < 0.93:
            return self.quoted(order + self.r.choice(OTHERS))
        if kind < 0.96:
            return "(" + self.quoted("<f4") + ", " + self.pick("()", "( )") + self.pick("", ",") + ")"
        return self.pick("[('', '<f4')]", "[('a', '<f4'), ('b', '<i2')]", "None", "4", "('<f4')", "['<f4']", "('<f4',)", "{}")

    def order(self):
        return self.pick("0", "1", "None", "true", "'False'", "(True)", "Truex") if self.odd() else self.pick("True", "False")

    def shape(self):
        sizes = [self.space() + self.number(self.r.randrange(4)) + self.space() for _ in range(self.pick(0, 1, 1, 2, 2, 3))]
        text = ",".join(sizes)
        if len(sizes) == 1 and self.r.random() < 0.95 or sizes and self.r.random() < 0.2:
            text += "," + self.space()
        return "[" + text + "]" if self.odd() and self.odd() else "(" + text + ")"

    def header(self):
        items = [self.quoted(key) + self.space() + ":" + self.space() + value
                 for key, value in (("descr", self.descr()), ("fortran_order", self.order()), ("shape", self.shape()))]
        if self.r.random() < 0.3:
            self.r.shuffle(items)
        if self.odd() and self.odd():
            items.pop(self.r.randrange(3))
        if self.odd() and self.odd():
            items.append(self.pick(*items, "'more': 1"))
        text = (self.space() + "," + self.space()).join(items) + self.pick("", "," + self.space())
        text = (self.pick(" ", "\t", "\n") if self.odd() else "") + "{" + self.space() + text + self.space() + "}"
        if self.r.random() < 0.5:
            text += " " * (-(10 + len(text) + 1) % 64) + "\n"
        else:
            text += self.pick("", "\n", " ", "    \n", "\n\n", " # end", "\n# end\n", ", ", "x", "\0")
        if self.odd() and self.odd():
            at = self.r.randrange(len(text))
            text = text[:at] + chr(self.r.randrange(32, 127)) + text[at + 1:]
        return text


def verdict(version, header):
    text = header.encode()
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    try:
        x = np.load(io.BytesIO(b"\x93NUMPY" + bytes([version, 0]) + length + text + DATA))
    except Exception:  # whatever a Python literal or a dtype may raise
        return "refused"
    if x.dtype.str[1:] not in CODES:
        return "other"
    if x.dtype == bool:
        x = x.view("u1") != 0
    return [list(x.shape), x.astype(x.dtype.newbyteorder("<")).tobytes("C").hex()]


def main():
    count, seed = (int(word) for word in (sys.argv[1:] + ["600", "1"][len(sys.argv) - 1:]))
    choices = random.Random(seed)
    with open(pathlib.Path(__file__).parent / "headers.jsonl", "w", encoding="utf-8") as file:
        for _ in range(count):
            version, header = choices.choice([1, 1, 1, 2, 3]), Writer(choices).header()
            file.write(json.dumps([version, header, verdict(version, header)]) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
