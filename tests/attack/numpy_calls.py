#!/usr/bin/env python3
"""Asks NumPy for the single calls that `ein_attack --calls A..B --write FILE` leaves, as anybody would write them, and
compares values and dtypes. A difference is to be one that ROWS has; `--write PAGE` puts them there as a table.

Where the dtypes differ, or one of both refuses, NumPy is asked again by the rules of ein (peers.py): operands in the
dtype that ein computes in. Then the values must agree.
"""
import argparse
import json
import re
import sys

import numpy as np

from peers import COMPLEX, INTEGERS, NUMPY, Missing, NumPy, Replay, Value, doubles

NAMES = {np.dtype(dtype): name for name, dtype in NUMPY.items()}


def parts_of(data):
    """The elements as doubles; of complex ones both parts, along one more axis."""
    data = np.asarray(data)
    return np.stack([data.real, data.imag], -1).astype(np.float64) if np.iscomplexobj(data) else data.astype(np.float64)


class MayNotEnd(Exception):
    """LAPACK may go on for ever where elements are not finite."""


class Plain(Replay):
    """The calls as anybody would write them in NumPy, with its own rules for dtypes."""
    reduces_over_nothing = True

    def load(self, x, dtype): return x.data

    def ask(self, matrices):
        if not all(np.isfinite(parts_of(x.data)).all() for x in matrices): raise MayNotEnd

    def svd(self, m): return self.ask([m]) or super().svd(m)
    def eigh(self, m): return self.ask([m]) or super().eigh(m)
    def lstsq(self, a, b): return self.ask([a, b]) or super().lstsq(a, b)
    def give(self, data, dtype): return Value(data, NAMES[data.dtype])
    def operands(self, xs): return [x.data if isinstance(x, Value) else x for x in xs]
    def elementwise(self, op, operands, kind): return self.give(np.asarray(op(*self.operands(operands))), None)
    def pow(self, a, b): return self.elementwise(np.power, [a, b], None)
    def remainder(self, a, b): return self.elementwise(np.remainder, [a, b], None)
    def floor_divide(self, a, b): return self.elementwise(np.floor_divide, [a, b], None)
    def bitwise_not(self, x): return self.elementwise(np.invert, [x], None)
    def complex(self, real, imag):
        x, y = np.broadcast_arrays(real.data, imag.data)
        data = np.empty(x.shape, np.result_type(x, y, np.complex64))
        data.real, data.imag = x, y
        return self.give(data, None)

    def where(self, c, a, b): return self.elementwise(np.where, [c, a, b], None)
    def clamp(self, x, low, high): return self.elementwise(np.clip, [x, low, high], None)
    def cast(self, x, dtype): return self.elementwise(lambda data: data.astype(NUMPY[dtype]), [x], None)
    def full(self, shape, number, dtype): return self.give(np.full(tuple(shape), number, NUMPY[dtype]), None)
    def eye(self, n, dtype): return self.give(np.eye(n, dtype=NUMPY[dtype]), None)
    def arange_from(self, *numbers): return self.give(np.arange(*numbers), None)
    def matmul(self, a, b): return self.elementwise(np.matmul, [a, b], None)
    def median(self, x, pattern): return self.give(np.asarray(np.median(x.data, self.dims(pattern)[0])), None)
    def quantile(self, x, pattern, q): return self.give(np.asarray(np.quantile(x.data, q, self.dims(pattern)[0])), None)

    def triangle(self, x, diagonal, otherwise, lower):
        if otherwise == 0 and not np.signbit(otherwise): return self.give((np.tril if lower else np.triu)(x.data, diagonal), None)
        return self.elementwise(np.where, [Value(self.library.tri(x.data, lower, diagonal), "bool"), x, otherwise], None)

    def reduce(self, x, pattern, how, **given):
        return self.give(self.reduced(x, pattern, given, how, lambda data, dims: getattr(np, how)(data, axis=dims), None), None)

    def pad(self, x, pattern, before, after, value):
        dims = self.dims(pattern)
        widths = [(before, after) if d in dims else (0, 0) for d in range(x.data.ndim)]
        return self.give(np.pad(x.data, widths, constant_values=value), None)


class Call:
    """A call of the file, with what ein gives: an array or an Error."""

    def __init__(self, line):
        self.seed = line["seed"]
        *inputs, step = line["steps"]
        self.text, self.op = step["call"], re.sub(r"^number | number$", "", step["name"])
        library = NumPy()
        self.values = {f"v{v}": Value(library.array(doubles(x["values"]), tuple(x["shape"]), x["dtype"]), x["dtype"])
                       for v, x in enumerate(inputs)}
        words = re.sub(r'"[^"]*"', "", self.text)
        self.operands = [self.values[v] for v in re.findall(r"\bv\d+\b", words)]
        self.dtypes = {x.dtype for x in self.operands}
        numbers = re.findall(r"(?<=[(\[ ])-?(?:inf|nan|\d[\d.e+-]*)", re.sub(r"\w+=\d+", "", words))
        self.numbers = [float(n) if re.search("[.ein]", n) else int(n) for n in numbers]
        self.error = line["error"]
        self.dtype = step["dtype"]  # of an Error none that says anything
        if self.error: return
        (self.expected,) = line["outputs"]
        self.shape = tuple(step["shape"])
        self.result = np.frombuffer(bytes.fromhex(self.expected["result"]), NUMPY[self.dtype]).reshape(self.shape)

    def given_by(self, replay):
        """An array, or an exception."""
        replay.result = None if self.error else self.dtype
        values = {name: Value(np.array(x.data), x.dtype) for name, x in self.values.items()}
        try:
            return np.asarray(eval("self." + self.text, {"self": replay}, {"inf": np.inf, "nan": np.nan, **values}).data)
        except Exception as error:  # whatever NumPy raises: which of them are expected the rows say
            return error

    @property
    def are_integers(self): return bool(self.dtypes) and self.dtypes <= INTEGERS
    @property
    def has_formula_beyond_range(self):
        """Whether a formula of complex numbers may leave the range of their dtype somewhere."""
        if not self.is_complex or self.op in MOVES: return False
        sizes = np.concatenate([np.abs(parts_of(x.data)).ravel() for x in self.operands] + [np.abs(np.array(self.numbers, np.float64))])
        within = (sizes > 1e-12) & (sizes < 1e6)
        return not (within if self.op == "div" else within | (sizes == 0)).all()
    @property
    def is_complex(self): return bool((self.dtypes | {self.dtype}) & set(COMPLEX))
    @property
    def has_fraction(self): return any(isinstance(n, float) for n in self.numbers)
    def has(self, *dtypes): return bool(self.dtypes & set(dtypes))


# --- comparison ---

MATRICES = {"inverse", "det", "solve", "lstsq", "cholesky", "qr.q", "qr.r", "svd.u", "svd.s", "svd.vt", "eigh.values", "eigh.vectors"}


def sensitivity(call):
    """By how much a result of matrices may be worse than the rounding of their elements; infinite where it may be any."""
    m = parts_of(call.operands[0].data)
    if not m.size: return 1
    if not all(np.isfinite(parts_of(x.data)).all() for x in call.operands): return np.inf
    if call.op == "cholesky": return 1e3  # 8 more on the diagonal
    if call.op.startswith("qr"): m = m[..., :m.shape[-2]]  # columns that follow are combinations of these
    if call.op.startswith("eigh"): m = np.tril(m) + np.swapaxes(np.tril(m, -1), -1, -2)
    s = np.sort(np.linalg.svd(m, compute_uv=False))  # (b, r)
    if call.op in ("svd.s", "eigh.values"): return 1
    with np.errstate(all="ignore"):
        condition = np.max(s[..., -1] / s[..., 0])
        if call.op == "lstsq":  # the residual's rounding is the solution's
            sides = np.abs(call.operands[1].data).max() / (s.max() * np.abs(call.result).max())
            return condition ** 2 * 10 * max(1, sides)
        if call.op not in ("svd.u", "svd.vt", "eigh.vectors"): return condition * 10
        values = np.sort(np.linalg.eigvalsh(m)) if call.op.startswith("eigh") else s
        gaps = np.diff(np.concatenate([np.zeros(s.shape[:-1] + (1,)), values], -1) if call.op.startswith("svd") else values)
        return np.max(s[..., -1:] / np.abs(gaps)) * 10 if gaps.size else 1


def are_near(call, got, up_to_signs=False):
    a, b = parts_of(got), parts_of(call.result)
    factor = sensitivity(call)
    if not np.isfinite(factor) or not a.size: return True
    if up_to_signs:  # of columns, or of rows
        axis = -1 if call.op in ("qr.r", "svd.vt") else -2
        a = np.where(np.sum(a * b, axis, keepdims=True) < 0, -a, a)
    eps = 2.0 ** -52 if call.dtype == "f64" else 2.0 ** -23
    slack = 30 * eps * factor * max(a.shape[-1:] + (1,)) * max(np.abs(b).max(), 1e-30)
    return bool(((np.abs(a - b) <= slack) | (a == b) | (np.isnan(a) & np.isnan(b))).all()) or not slack <= np.abs(b).max()


def difference(call, got, up_to_signs=False):
    """What differs between NumPy's result and ein's, maybe but for signs of 0 and of factors: "" for nothing."""
    if isinstance(got, MayNotEnd): return "NumPy may not end"
    if call.error: return "" if isinstance(got, Exception) else "ein refuses"
    if isinstance(got, Exception): return "NumPy refuses"
    if got.dtype not in NAMES or NAMES[got.dtype] != call.dtype: return "dtype"
    if got.shape != call.shape: return "shape"
    if call.op in MATRICES: return "" if are_near(call, got, up_to_signs) else "values"
    if call.dtype in INTEGERS: return "" if np.array_equal(got, call.result) else "values"
    d = parts_of(got)
    low, high, nan = [doubles(call.expected[k]).reshape(d.shape) for k in ("low", "high", "nan")]
    if call.is_complex and call.op not in MOVES:  # another formula: within some roundings of the larger part
        sizes = np.abs(parts_of(call.result))  # the bounds of one part may be infinite
        if call.dtype in COMPLEX: sizes = sizes.max(-1, keepdims=True, initial=0)
        slack = np.where(np.isfinite(sizes) & (d != 0), sizes, 0) * 30 * (2.0 ** -52 if call.dtype in ("c128", "f64") else 2.0 ** -23)
        low, high = low - slack, high + slack
    inside = (d >= low) & (d <= high)
    if up_to_signs: return "" if np.where(np.isnan(d), nan != 0, inside).all() else "values"
    # -0 comes before 0.
    inside &= ~((d == 0) & np.signbit(d) & (low == 0) & ~np.signbit(low))
    inside &= ~((d == 0) & ~np.signbit(d) & (high == 0) & np.signbit(high))
    return "" if np.where(np.isnan(d), nan != 0, inside).all() else "values"


# --- the differences that are expected ---

FLOATS = {"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2"}
NARROW = FLOATS - {"f64", "f32"}  # computed in f32 by ein
NOT_NUMPYS = {"bf16", "f8e4m3", "f8e5m2"}
SIGNED = {"i64", "i32", "i16", "i8"}
BITS = {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "left_shift", "right_shift"}
FUNCTIONS = {"div", "atan2", "hypot", "logaddexp", "sqrt", "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
             "sinh", "cosh", "tanh", "angle", "complex"}
SUMS = {"reduce sum", "reduce prod", "cumsum", "cumprod"}
MEANS = {"reduce mean", "reduce var", "reduce std"}
PRODUCTS = {"einsum of one", "einsum", "einsum of three", "einsum of four", "matmul"}
ROUNDED = SUMS | MEANS | PRODUCTS | {"quantile", "median"}
FACTORS = {"qr.q", "qr.r", "svd.u", "svd.vt", "eigh.vectors"}
# The signs of factors, and of 0.
# Of elements as they are.
MOVES = {"real", "imag", "conj", "complex", "negate", "add", "sub", "where", "cast", "full", "eye", "rearrange", "repeat", "at", "reshape", "gather", "flip",
         "roll", "pad", "pad by reflect", "pad by replicate", "pad by wrap", "diagonal", "tril", "triu", "pack", "unpack", "stack"}
MAY_TURN = FACTORS | PRODUCTS | {"remainder", "quantile", "median", "clamp", "clamp by tensors", "unique.values", "reduce mean",
            "reduce sum"}


class Row:
    """A class of differences: which calls are of it, and what the page says of it. Unless `again` is False, ein gives what NumPy
    gives by the rules of peers.py."""

    def __init__(self, kinds, is_met, what, numpy, ein, why, again=True):
        self.kinds, self.is_met, self.texts, self.again, self.count = kinds.split(), is_met, (what, numpy, ein, why), again, 0


ORDERS = {"reduce max", "reduce min", "minimum", "maximum", "less", "less_equal", "greater", "greater_equal", "sort", "sort descending", "argsort",
          "top_k", "argmax", "argmin", "cummax", "cummin", "clamp", "clamp by tensors", "quantile", "median", "searchsorted", "unique.values",
          "unique.positions", "unique.counts", "histogram"}
INTEGER_RULES = "[dtypes.md](dtypes.md#integers)"
FLOAT_RULES = "[dtypes.md](dtypes.md#floats)"
RESULTS = "[patterns.md](patterns.md#dtypes-of-results)"
MATRIX_RULES = "[linalg.md](linalg.md#what-is-computed)"

ROWS = [
    # ein refuses.
    Row("ein", lambda c, got: c.is_complex and c.error == "dtype" and (c.op in ORDERS or c.op.startswith("top_k")),
        "order of complex numbers: max, min, <, sort, clamp, quantile, searchsorted, histogram", "by the real part, then by the other", "an Error",
        "they have none: [complex.md](complex.md)"),
    Row("ein", lambda c, got: c.is_complex and c.error == "dtype" and c.op in MATRICES,
        "functions of complex matrices", "a result", "an Error", "[complex.md](complex.md)"),
    Row("ein", lambda c, got: c.is_complex and c.error == "dtype" and c.op == "cast",
        "complex numbers that become real", "loses the imaginary part, with a warning", "an Error", "[complex.md](complex.md)"),
    Row("ein", lambda c, got: c.is_complex and c.error == "dtype" and c.op in {"sign", "round"},
        "sign, round of complex numbers", "a result", "an Error", "[complex.md](complex.md)"),
    Row("ein", lambda c, got: c.error == "dtype" and c.op == "complex",
        "complex() of complex parts", "loses their imaginary parts, with a warning", "an Error", "[complex.md](complex.md)"),
    Row("ein", lambda c, got: c.error == "dtype" and c.op == "imag",
        "imag of real numbers", "zeros", "an Error", "a view of x has none: [complex.md](complex.md)"),
    Row("ein", lambda c, got: c.error == "dtype" and c.has("u64") and (c.has(*SIGNED) or any(n < 0 for n in c.numbers)),
        "u64 beside numbers with a sign", "f64; comparisons of integers are exact", "an Error", f"no integer dtype holds both: {INTEGER_RULES}"),
    Row("ein", lambda c, got: c.op in MEANS and c.are_integers,
        "mean, var, std of integers", "f64", "an Error", "nothing changes a dtype by itself: [patterns.md](patterns.md#reduce)"),
    Row("ein", lambda c, got: c.op in MATRICES and c.error == "dtype",
        "functions of matrices of integers, or of two dtypes", "f64", "an Error", f"the same: {MATRIX_RULES}"),
    Row("ein", lambda c, got: c.error == "dtype" and c.op in PRODUCTS | {"pack", "stack", "searchsorted"} and len(c.dtypes) > 1,
        "einsum, matmul, pack, stack, searchsorted of two dtypes", "the common dtype", "an Error",
        "the same: [patterns.md](patterns.md#einsum)"),
    Row("ein", lambda c, got: c.op in MATRICES and c.error == "value",
        "matrices that are singular, not positive definite, or have elements that are not finite",
        "for some of them NaN, infinities or what rounding leaves", "an Error that says which matrix", "[linalg.md](linalg.md#errors)"),
    Row("ein", lambda c, got: c.error and c.are_integers and c.has_fraction and c.op in {"triu", "tril", "pad"},
        "a fraction to be put among integers", "is truncated, or makes f64", "an Error", "it would be lost: "
        "[patterns.md](patterns.md#axes-in-brackets)"),

    Row("ein", lambda c, got: c.error == "value" and c.op.startswith("pad by"),
        "pad by reflect, wrap with more elements than there are", "goes around again", "an Error", "[patterns.md](patterns.md#axes-in-brackets)"),
    Row("ein", lambda c, got: c.error == "reduction" and c.op in {"quantile", "median"},
        "quantile and median of no elements", "NaN", "an Error", "[patterns.md](patterns.md#axes-in-brackets)"),
    Row("ein", lambda c, got: c.error == "value" and c.op == "clamp" and any(n != n for n in c.numbers),
        "clamp to the number NaN", "NaN", "an Error", "bounds that are no range: `elementwise.hpp`"),

    # NumPy refuses.
    Row("NumPy", lambda c, got: isinstance(got, MayNotEnd),
        "svd, eigh, lstsq of what is not finite", "may go on for ever, so it is not asked", "an Error that says which matrix; eigh reads one triangle, lstsq any right-hand sides",
        "[linalg.md](linalg.md#errors)", again=False),
    Row("NumPy", lambda c, got: c.op == "pow" and c.are_integers and isinstance(got, ValueError),
        "powers of integers to less than 0", "ValueError", "truncated: 0, but of 1 and -1", INTEGER_RULES),
    Row("NumPy", lambda c, got: isinstance(got, OverflowError),
        "a whole number beside integers that do not hold it", "OverflowError", "the result modulo 2^bits", INTEGER_RULES),
    Row("NumPy", lambda c, got: isinstance(got, TypeError) and c.has("bool") and c.op in {"sub", "negate", "sign", "quantile"},
        "sub, negate, sign, quantile of bool", "TypeError", "a result, as of other integers", INTEGER_RULES),
    Row("NumPy", lambda c, got: isinstance(got, (TypeError, ValueError)) and c.has(*NOT_NUMPYS),
        "bf16, f8e4m3, f8e5m2: functions and pairs of dtypes that ml_dtypes lacks", "TypeError", "a result", FLOAT_RULES),
    Row("NumPy", lambda c, got: isinstance(got, np.linalg.LinAlgError),
        "matrices that LAPACK gives up", "LinAlgError", "a result", MATRIX_RULES, again=False),

    Row("NumPy", lambda c, got: c.op in {"argmax", "argmin", "reduce max", "reduce min"} and isinstance(got, ValueError) and not c.result.size,
        "argmax, max of no elements, for a result without elements", "ValueError", "that result", "[patterns.md](patterns.md#axes-in-brackets)",
        again=False),

    # The dtypes differ.
    Row("dtype values", lambda c, got: c.op == "pow" and c.has(*FLOATS) and
        (0.5 in c.numbers or any(0.5 in parts_of(x.data) for x in c.operands)),
        "pow(x, 0.5) of -inf and -0", "its square root: NaN, -0", "C's pow: inf, 0", FLOAT_RULES, again=False),
    Row("dtype", lambda c, got: c.op in {"reduce any", "reduce all"},
        "any, all of numbers", "bool", "the operand's dtype", RESULTS),
    Row("dtype", lambda c, got: c.op in SUMS and c.are_integers,
        "sums and products of unsigned integers", "u64", "i64; of u64 u64", RESULTS),
    Row("dtype", lambda c, got: c.op in PRODUCTS and c.are_integers,
        "einsum and matmul of integers that add", "their own dtype; of bool `or`", "i64; of u64 u64", RESULTS),
    Row("dtype", lambda c, got: c.op in {"quantile", "median"} and c.are_integers,
        "quantile and median of integers", "f64", "f32", "[patterns.md](patterns.md#axes-in-brackets)"),
    Row("dtype", lambda c, got: c.op == "arange from to",
        "arange of fractions", "f64", "f32", INTEGER_RULES),
    Row("dtype", lambda c, got: c.op in FUNCTIONS and c.are_integers,
        "division and functions of integers", "f64; functions of 8 bits f16, of 16 bits f32", "f32", INTEGER_RULES),
    Row("dtype", lambda c, got: c.are_integers and c.has_fraction,
        "a fraction beside integers", "f64", "f32", INTEGER_RULES),
    Row("dtype", lambda c, got: c.has(*INTEGERS) and c.has(*FLOATS, *COMPLEX),
        "integers beside floats and complex numbers", "the one that holds all of both: f64 or c128 beside i32 and more, f32 beside 16 bits", "the float's or complex dtype",
        INTEGER_RULES),
    Row("dtype", lambda c, got: c.dtypes == {"bool"},
        "pow, remainder, floor_divide, shifts, round of bool", "i8; of round f16", "bool", INTEGER_RULES),
    Row("dtype", lambda c, got: c.has(*NOT_NUMPYS),
        "bf16, f8e4m3, f8e5m2 beside fractions and in products", "f32, f64", "their own dtype", FLOAT_RULES),

    # The values differ.
    Row("values", lambda c, got: c.is_complex and c.op == "log1p",
        "log1p of small complex numbers", "log(1 + z), which loses digits", "as exact as of real ones", "[complex.md](complex.md#how-they-are-computed)", again=False),
    Row("values", lambda c, got: c.has_formula_beyond_range,
        "complex functions and products of infinities, NaN and numbers near the limits, quotients by 0", "C's: an infinity by any number is one",
        "what the formula of their parts gives", "[complex.md](complex.md#how-they-are-computed)", again=False),
    Row("values", lambda c, got: c.op in FACTORS,
        "signs of the factors of matrices", "as LAPACK leaves them", "made unique", MATRIX_RULES),
    Row("values", lambda c, got: c.dtype in INTEGERS and (c.op == "cast" and c.has(*FLOATS) or c.op in {"full", "pad"} and c.has_fraction),
        "NaN and numbers out of range that become integers", "what the processor gives, mostly the least number",
        "0, and the nearest limit", INTEGER_RULES),
    Row("values", lambda c, got: c.op in ROUNDED and c.has(*NARROW),
        "sums, means, products of floats of 8 and 16 bits", "some round each step", "computed in f32, rounded once",
        FLOAT_RULES),
    Row("values", lambda c, got: c.op in MAY_TURN and not difference(c, got, up_to_signs=True),
        "signs of 0: of remainders; of einsum, sum, mean, quantile of one element; of clamp and unique where 0 and -0 are equal",
        "that of the divisor; 0 + -0 is 0; one of both", "that of the dividend, as PyTorch; one element is not added to 0; one of both",
        FLOAT_RULES),
    Row("values", lambda c, got: c.is_complex and not difference(c, got, up_to_signs=True),
        "signs of 0 of complex results", "real operands have an imaginary part of 0", "real operands have none, as in std::complex",
        "[complex.md](complex.md#how-they-are-computed)"),
    Row("values", lambda c, got: c.op == "median" and c.dtype in {"f64", "f32"},
        "median between two elements", "their sum, halved", "their quantile: the last digit may differ",
        "[patterns.md](patterns.md#axes-in-brackets)"),
    Row("values", lambda c, got: c.op in {"quantile", "median"} and any(np.isinf(parts_of(x.data)).any() for x in c.operands),
        "quantile and median beside infinities", "NaN: it subtracts infinities", "the infinity, or the element", FLOAT_RULES),
    Row("values", lambda c, got: c.has(*NARROW) and (c.numbers or c.has(*INTEGERS)) and c.op not in PRODUCTS,
        "numbers and integers beside floats of 8 and 16 bits", "are rounded to their dtype first", "are taken as f32", FLOAT_RULES),
    Row("values shape", lambda c, got: c.has(*NOT_NUMPYS) and c.op in {"sign", "sort", "sort descending", "argsort", "top_k", "unique.values",
                                                                    "unique.counts", "unique.positions", "searchsorted"},
        "bf16, f8e4m3, f8e5m2: order and signs of NaN and 0", "ml_dtypes has no order of NaN; sign(-0) is -0", "as of f32",
        FLOAT_RULES),
    Row("values", lambda c, got: not c.error and c.dtype == "f8e4m3",
        "numbers too large for f8e4m3", "NaN", "±448", FLOAT_RULES),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--write", metavar="PAGE", help="a page with a mark for the table")
    parser.add_argument("--most", type=int, default=40, help="classes of unexpected differences that are shown")
    options = parser.parse_args()
    np.seterr(all="ignore")
    plain, again = Plain(NumPy()), Replay(NumPy())
    calls = refused = same = 0
    unexpected = {}
    for line in open(options.file):
        call = Call(json.loads(line))
        calls += 1
        got = call.given_by(plain)
        kind = difference(call, got)
        if not kind:
            same += 1
            refused += bool(call.error)
            continue
        row = next((row for row in ROWS if kind.split()[0] in row.kinds and row.is_met(call, got)), None)
        if row:
            row.count += 1
            if call.error or not row.again or call.has_formula_beyond_range: continue
            by_rules = call.given_by(again)
            if isinstance(by_rules, Missing): continue
            kind = difference(call, by_rules, up_to_signs=call.op in MAY_TURN or call.is_complex)
            if not kind: continue
            kind = f"{row.texts[0]}: by the rules of ein {kind} {by_rules if isinstance(by_rules, Exception) else ''}"
        theirs = f"{type(got).__name__} {str(got)[:50]}" if isinstance(got, Exception) else got.dtype
        ours = f"an Error of kind {call.error}" if call.error else call.dtype
        key = f"{call.op} of {', '.join(sorted(call.dtypes))}: {kind[:150]}; NumPy: {theirs}; ein: {ours}"
        unexpected.setdefault(key, []).append(f"{call.seed} {call.text}")
    for key, seeds in sorted(unexpected.items(), key=lambda entry: -len(entry[1]))[:options.most]:
        print(f"{len(seeds)} times {key}; call {seeds[0]}")
    count = sum(map(len, unexpected.values()))
    text = (f"\n{calls:,} calls of {len(NUMPY)} dtypes with NumPy {np.__version__}: {same - refused:,} give the same values and dtype, {refused:,} are "
            f"an error in both, {sum(row.count for row in ROWS):,} differ as the table says, {count:,} otherwise.\n\n"
            "| what | calls | NumPy | ein | why |\n|---|---|---|---|---|\n")
    for row in sorted(ROWS, key=lambda row: -row.count):
        what, numpy, ein, why = row.texts
        text += f"| {what} | {row.count:,} | {numpy} | {ein} | {why} |\n"
    print(text)
    if options.write: write(options.write, text + "\n")
    return 1 if count else 0


def write(path, text):
    """Puts the text between the page's marks."""
    page = open(path).read()
    begin, rest = page.split("<!-- numpy-calls -->\n")
    open(path, "w").write(begin + "<!-- numpy-calls -->\n" + text + "<!-- end -->" + rest.split("<!-- end -->")[1])


if __name__ == "__main__":
    sys.exit(main())
