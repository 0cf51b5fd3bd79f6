"""Writes functions.tsv: functions of complex numbers and their derivatives by mpmath, with 700 digits.

    python3 tests/data/complex/make_functions.py > tests/data/complex/functions.tsv

Each row: a name; real and imaginary part of z; of the value; of the derivative. Those of z are exact.
None lies on a branch cut, which mpmath knows one side of. It checks the C library's functions in long
double, too, by which tests/support/complex_errors.hpp measures.
"""

import random

from mpmath import mp, mpc, mpf

mp.dps = 700
ONE = mpf(1)


def sigmoid(z): return ONE / (1 + mp.exp(-z))
def sigmoid_slope(z): return sigmoid(z) * sigmoid(-z)
def arc(z): return ONE / (mp.sqrt(1 - z) * mp.sqrt(1 + z))


FUNCTIONS = {
    "sqrt": (mp.sqrt, lambda z: 1 / (2 * mp.sqrt(z))),
    "rsqrt": (lambda z: 1 / mp.sqrt(z), lambda z: -1 / (2 * z * mp.sqrt(z))),
    "exp": (mp.exp, mp.exp),
    "exp2": (lambda z: mp.exp(z * mp.ln2), lambda z: mp.ln2 * mp.exp(z * mp.ln2)),
    "expm1": (lambda z: mp.exp(z) - 1, mp.exp),
    "log": (mp.log, lambda z: 1 / z),
    "log2": (lambda z: mp.log(z) / mp.ln2, lambda z: 1 / (z * mp.ln2)),
    "log1p": (lambda z: mp.log(1 + z), lambda z: 1 / (1 + z)),
    "sin": (mp.sin, mp.cos),
    "cos": (mp.cos, lambda z: -mp.sin(z)),
    "tan": (mp.tan, lambda z: 1 / mp.cos(z) ** 2),
    "asin": (mp.asin, arc),
    "acos": (mp.acos, lambda z: -arc(z)),
    "atan": (mp.atan, lambda z: 1 / (1 + z * z)),
    "sinh": (mp.sinh, mp.cosh),
    "cosh": (mp.cosh, mp.sinh),
    "tanh": (mp.tanh, lambda z: 1 / mp.cosh(z) ** 2),
    "sigmoid": (sigmoid, sigmoid_slope),
    "silu": (lambda z: z * sigmoid(z), lambda z: sigmoid(z) + z * sigmoid_slope(z)),
}
# The largest parts whose results are numbers; of exp2, beyond 2^40 the angle loses digits.
MOST = {"exp": 700, "exp2": 1000, "expm1": 700, "sinh": 700, "cosh": 700}


def points(name, rng):
    """Of all exponents, moderate ones, and near 1, -1, i and multiples of π / 2."""
    for i in range(20):
        kind = i % 4
        if kind == 0:
            e = rng.randint(-1060, 1015)
            x, y = (rng.uniform(1, 2) * 2.0 ** (e + d) * rng.choice((-1, 1)) for d in (0, rng.randint(-5, 5)))
        elif kind == 1:
            x, y = rng.uniform(-6, 6), rng.uniform(-6, 6)
        elif kind == 2:
            x = rng.choice((1.0, -1.0, 0.0)) + rng.uniform(-1, 1) * 2.0 ** rng.randint(-45, -3)
            y = rng.choice((1.0, -1.0, 0.0, 1.5707963267948966, 3.141592653589793)) + rng.uniform(-1, 1) * 2.0 ** rng.randint(-45, -3)
        else:
            x, y = rng.uniform(-650, 650), rng.uniform(-1, 1) * 2.0 ** rng.randint(0, 39)
        most = MOST.get(name)
        if most and abs(x) > most: x = rng.uniform(-most, most)
        if name == "exp2" and abs(y) > 2.0**40: y = rng.uniform(-9, 9)
        if name in ("sin", "cos") and abs(y) > 700: y = rng.uniform(-700, 700)
        yield x, y


def text(z):
    return "%s\t%s" % (mp.nstr(z.real, 25, min_fixed=0, max_fixed=0), mp.nstr(z.imag, 25, min_fixed=0, max_fixed=0))


rng = random.Random(20261127)
for name, (f, slope) in FUNCTIONS.items():
    for x, y in points(name, rng):
        z = mpc(x, y)
        print(name, x.hex(), y.hex(), text(mpc(f(z))), text(mpc(slope(z))), sep="\t")
