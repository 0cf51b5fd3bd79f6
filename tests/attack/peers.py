#!/usr/bin/env python3
"""Replays the programs that `ein_attack --write FILE` leaves in NumPy and PyTorch.

ein says for each element of an output which values a correct engine may give; what the peers compute must be among
them. A value whose call a peer lacks (or means otherwise: see docs/attack.md) is left out, with all that follows from it.
"""
import argparse
import collections
import json
import re
import sys
import types
import warnings

import ml_dtypes
import numpy as np
import torch

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

# Storage dtypes; arithmetic on floats of 8 and 16 bits happens in f32, rounded once.
TORCH = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f8e4m3": torch.float8_e4m3fn,
         "f8e5m2": torch.float8_e5m2, "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool}
NUMPY = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f8e4m3": ml_dtypes.float8_e4m3fn,
         "f8e5m2": ml_dtypes.float8_e5m2, "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8,
         "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8, "bool": np.bool_,
         "c64": np.complex64, "c128": np.complex128}  # single calls alone have complex numbers
COMPLEX = {"c64": "f32", "c128": "f64"}  # and their parts
INTEGERS = {name for name, dtype in NUMPY.items() if np.dtype(dtype).kind in "iub"}
LIMITS = {name: (np.iinfo(NUMPY[name]).min, np.iinfo(NUMPY[name]).max) for name in INTEGERS - {"bool"}}


class Missing(Exception):
    """The peer has no such call."""


class Value:
    """An array of a library with the dtype that ein gives it."""

    def __init__(self, data, dtype):
        self.data, self.dtype = data, dtype


def promote(a, b):
    if a in COMPLEX or b in COMPLEX: return "c128" if {a, b} & {"c128", "f64"} else "c64"
    if a in INTEGERS or b in INTEGERS:
        if a in INTEGERS and b in INTEGERS:
            common = np.promote_types(NUMPY[a], NUMPY[b])
            return next(name for name in INTEGERS if NUMPY[name] == common.type)
        return b if a in INTEGERS else a
    width = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16, "f8e4m3": 8, "f8e5m2": 8}
    if a != b and width[a] == width[b]:
        return "f32"
    return max(a, b, key=width.get)


def compute_type(dtype):
    if dtype in COMPLEX: return dtype
    return "u64" if dtype == "u64" else "i64" if dtype in INTEGERS else "f64" if dtype == "f64" else "f32"


class NumPy:
    name = "NumPy"

    def has(self, dtype): return dtype in NUMPY
    def array(self, values, shape, dtype):
        values = np.array(values, dtype=np.float64)
        return (values.view(np.complex128) if dtype in COMPLEX else values).reshape(shape).astype(NUMPY[dtype])
    linalg = np.linalg
    def convert(self, x, dtype):
        if dtype == "f8e4m3": x = np.clip(x, -448, 448)  # ein saturates
        return x.astype(NUMPY[dtype])
    def doubles(self, x): return x.astype(np.float64).reshape(-1)
    def where(self, c, a, b): return np.where(c, a, b)
    def full(self, shape, number, dtype): return np.full(shape, number, dtype=NUMPY[dtype])
    def arange(self, n): return np.arange(n, dtype=np.int64)
    def transpose(self, x, order): return np.transpose(x, order)
    def broadcast(self, x, shape): return np.broadcast_to(x, shape)
    def einsum(self, letters, arrays): return np.einsum(letters, *arrays)
    def concatenate(self, arrays, dim): return np.concatenate(arrays, dim)
    def stack(self, arrays): return np.stack(arrays)
    def is_nan(self, x): return np.isnan(x)
    def trunc(self, x): return np.trunc(x)
    def clip(self, x, low, high): return np.clip(x, low, high)
    def unary(self, op, x): return {"rsqrt": lambda v: 1 / np.sqrt(v), "negate": np.negative, "erf": None}.get(op, getattr(np, op, None))
    def binary(self, op):
        names = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "pow": "power"}
        return getattr(np, names.get(op, op))
    def reduce(self, op, x, dims): return getattr(np, op)(x, axis=dims)
    def cumulative(self, op, x, dim):
        combine = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "logsumexp": np.logaddexp}
        return combine[op].accumulate(x, axis=dim)
    def take(self, x, positions, dim): return np.take_along_axis(x, positions, axis=dim)
    def argmax(self, x, dim): return np.argmax(x, axis=dim)
    def argmin(self, x, dim): return np.argmin(x, axis=dim)
    def argsort(self, x, dim): return np.argsort(x, axis=dim, kind="stable")
    def flip(self, x, dim): return np.flip(x, dim)
    def roll(self, x, shifts, dims): return np.roll(x, shifts, dims)
    def diagonal(self, x, offset, first, second): return np.diagonal(x, offset, first, second)
    def quantile(self, x, q, dim, method): return np.quantile(x, q, axis=dim, method=method)
    def median(self, x, dim): return np.median(x, axis=dim)
    def searchsorted(self, x, values): return np.searchsorted(x, values)
    def combine_at(self, op, x, places, values):
        {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[op].at(x, places, values)
    def copy(self, x): return np.array(x)
    def tri(self, x, lower, diagonal):
        return (np.tril if lower else np.triu)(np.ones(x.shape[-2:], dtype=bool), diagonal)


class PyTorch:
    name = "PyTorch"
    linalg = torch.linalg

    def has(self, dtype): return dtype in TORCH  # it has u16, u32 and u64 in memory, with few functions
    def array(self, values, shape, dtype):
        return self.convert(torch.tensor(np.array(values, dtype=np.float64)).reshape(shape), dtype)
    def convert(self, x, dtype):
        if dtype == "f8e4m3":  # ein saturates
            nan = torch.isnan(x)
            x = torch.where(nan, x, x.clamp(-448, 448)) if x.is_floating_point() else x
        return x.to(TORCH[dtype])
    def doubles(self, x): return x.detach().to(torch.float64).reshape(-1).numpy()
    def where(self, c, a, b): return torch.where(c, a, b)
    def full(self, shape, number, dtype): return self.convert(torch.full(shape, number, dtype=torch.float64), dtype)
    def arange(self, n): return torch.arange(n)
    def transpose(self, x, order): return x.permute(order)
    def broadcast(self, x, shape): return x.broadcast_to(shape)
    def einsum(self, letters, arrays): return torch.einsum(letters, *arrays)
    def concatenate(self, arrays, dim): return torch.cat(arrays, dim)
    def stack(self, arrays): return torch.stack(arrays)
    def is_nan(self, x): return torch.isnan(x)
    def trunc(self, x): return torch.trunc(x)
    def clip(self, x, low, high): return torch.clamp(x, low, high)
    def unary(self, op, x):
        own = {"negate": torch.neg,
               "sign": lambda v: torch.where(v != v, v, torch.sign(v)),
               # Its roots of f32 are not rounded correctly.
               "sqrt": lambda v: torch.sqrt(v.double()).to(v.dtype)}
        return own.get(op, getattr(torch, op, None))
    def binary(self, op):
        # By 0 it refuses whole numbers, by less than 0 or by 64 and more it shifts as the processor does.
        if op in ("remainder", "left_shift", "right_shift"): raise Missing
        return getattr(torch, op)
    def reduce(self, op, x, dims):
        if op in ("max", "min"): return getattr(torch, "a" + op)(x, dims)
        return getattr(torch, op)(x, dims)
    def cumulative(self, op, x, dim):
        if op in ("max", "min"): return getattr(torch, "cum" + op)(x, dim).values
        if op == "logsumexp": return torch.logcumsumexp(x, dim)
        return getattr(torch, "cum" + op)(x, dim)
    def take(self, x, positions, dim): return torch.take_along_dim(x, positions, dim)
    def argmax(self, x, dim): raise Missing  # of equal elements any
    def argmin(self, x, dim): raise Missing
    def argsort(self, x, dim): return torch.argsort(x, dim=dim, stable=True)
    def flip(self, x, dim):
        if x.is_floating_point() and x.element_size() == 1: return torch.flip(x.view(torch.uint8), [dim]).view(x.dtype)
        return torch.flip(x, [dim])
    def roll(self, x, shifts, dims): return torch.roll(x, shifts, dims)
    def diagonal(self, x, offset, first, second): return torch.diagonal(x, offset, first, second)
    def quantile(self, x, q, dim, method):
        # It computes the place in the dtype of x: halfway it may take the other element.
        if method == "nearest" and abs(q * (x.shape[dim] - 1) % 1 - 0.5) < 1e-6: raise Missing
        return torch.quantile(x, q, dim, interpolation=method)
    def median(self, x, dim): return torch.quantile(x, 0.5, dim)
    def searchsorted(self, x, values):
        if x.isnan().any() or values.isnan().any(): raise Missing  # to it they are nowhere
        return torch.searchsorted(x.contiguous(), values.contiguous())
    def combine_at(self, op, x, places, values):
        if op != "sum": raise Missing  # in place it has sums alone
        x.index_put_(places, values, accumulate=True)
    def copy(self, x): return x.clone()
    def tri(self, x, lower, diagonal):
        return (torch.tril if lower else torch.triu)(torch.ones(x.shape[-2:], dtype=torch.bool), diagonal)


# --- patterns -----------------------------------------------------------------------------------------

def items(side):
    """The dimensions of a side, each a list of axis names."""
    result = []
    for token in re.findall(r"\([^)]*\)|\[[^\]]*\]|\S+", side):
        names = token.strip("()[]").split()
        result.append([] if names == ["1"] else names)
    return result


def split(pattern):
    left, arrow, right = pattern.partition("->")
    return [items(side) for side in left.split(",")], items(right) if arrow else None


class Brace:
    """A dimension at a function of indices: [(axis, coefficient)], a constant, maybe the name of its size."""

    def __init__(self, text):
        text, _, self.size_name = (part.strip() for part in text.partition(":"))
        self.terms, self.constant = [], 0
        for sign, word in re.findall(r"([+-]?)\s*([\w*]+)", text):
            factor, _, axis = word.rpartition("*")
            sign = -1 if sign == "-" else 1
            if axis.isdigit(): self.constant += sign * int(axis)
            else: self.terms.append((axis, sign * int(factor or 1)))

    def reach(self, sizes): return sum(abs(c) * (sizes[a] - 1) for a, c in self.terms)


def sides_with_braces(pattern):
    """The inputs and the output, each a list of the axes of a dimension or its Brace; and sizes that stand in it."""
    given = {name: int(size) for name, size in re.findall(r"(\w+)=(\d+)", pattern)}
    left, _, right = re.sub(r"=\d+", "", pattern).partition("->")

    def dims(side):
        found = []
        for token in re.findall(r"\{[^}]*\}|\([^)]*\)|\S+", side):
            found.append(Brace(token[1:-1]) if token[0] == "{" else token.strip("()").split())
        return found
    return [dims(side) for side in left.split(",")], dims(right), given


def without_braces(side):
    """The text of a side, each axis of a brace a dimension of its own."""
    return " ".join(" ".join(a for a, _ in dim.terms) if isinstance(dim, Brace) else "(" + " ".join(dim) + ")" for dim in side)


class Replay:
    """The vocabulary of the calls in the programs' steps."""
    reduces_over_nothing = False
    has_one_part = False  # of the gradient that is asked for next: its path has one call

    def __init__(self, library):
        self.library = library
        self.result = None  # dtype of the call's result

    # Elements in the type that ein computes in.
    def load(self, x, dtype):
        return self.cast_data(x, dtype)

    def cast_data(self, x, dtype):
        lib = self.library
        if x.dtype == dtype: return x.data
        data = x.data
        if x.dtype in ("f16", "bf16", "f8e4m3", "f8e5m2"): data = lib.convert(data, "f32")
        if dtype == "bool": return data != 0
        if dtype == "u64" and x.dtype not in INTEGERS: raise Missing  # beyond what goes through i64 here
        if dtype in LIMITS and x.dtype not in INTEGERS:
            # Truncated, saturated, 0 for NaN.
            low, high = LIMITS[dtype]
            data = lib.convert(data, "f64")
            whole = lib.trunc(data)
            nan, over, under = lib.is_nan(data), whole >= high, whole <= low
            safe = lib.convert(lib.where(nan | over | under, lib.full((), 0, "f64"), whole), "i64")
            safe = lib.where(over, lib.full((), 0, "i64") + high, lib.where(under, lib.full((), 0, "i64") + low, safe))
            return lib.convert(safe, dtype)
        return lib.convert(data, dtype)

    def give(self, data, dtype):
        """What was computed in its compute type, as `dtype`; of a complex one maybe real numbers, as a size is."""
        if dtype in COMPLEX and not np.iscomplexobj(data): dtype = COMPLEX[dtype]
        own = compute_type(dtype) if dtype != "bool" else ("bool" if str(data.dtype).endswith("bool") or str(data.dtype) == "bool" else "i64")
        return Value(self.cast_data(Value(data, own), dtype), dtype)

    def common(self, operands, floating):
        """The dtype that the operands are computed in, and they in it."""
        tensors = [x for x in operands if isinstance(x, Value)]
        numbers = [x for x in operands if not isinstance(x, Value)]
        dtype = tensors[0].dtype
        for x in tensors[1:]: dtype = promote(dtype, x.dtype)
        if dtype in INTEGERS and (floating or any(isinstance(n, float) for n in numbers)): dtype = "f32"
        elif dtype == "bool" and numbers: dtype = "i64"
        compute = compute_type(dtype)
        data = [self.load(x, compute) if isinstance(x, Value) else self.library.full((), x, compute) for x in operands]
        return dtype, data

    def elementwise(self, op, operands, kind):
        dtype, data = self.common(operands, kind == "floating")
        return self.give(op(*data), "bool" if kind == "bool" else dtype)

    def pow(self, a, b):
        dtype, data = self.common([a, b], False)
        if dtype in INTEGERS and self.library.name == "PyTorch": raise Missing  # negative exponents are an error there
        if dtype in INTEGERS:
            base, exponent = np.broadcast_arrays(*data)
            less = exponent < 0  # truncated: only 1 and -1 leave more than 0
            power = np.power(base, np.where(less, exponent & exponent.dtype.type(1), exponent))
            return self.give(np.where(less & (abs(base) != 1), base.dtype.type(0), power), dtype)
        if self.library.name == "NumPy": data = [np.array(x) for x in np.broadcast_arrays(*data)]  # of one exponent 0.5 it takes roots
        return self.give(self.library.binary("pow")(*data), dtype)

    def remainder(self, a, b):
        def of(x, y):
            rest = self.library.binary("remainder")(x, y)
            return rest if rest.dtype.kind in "iu" else np.where(rest == 0, np.copysign(rest, x), rest)  # NumPy's 0 has the sign of y
        return self.elementwise(of, [a, b], "same")

    def where(self, c, a, b):
        dtype, (x, y) = self.common([a, b], False)
        return self.give(self.library.where(self.cast_data(c, "bool"), x, y), dtype)

    def clamp(self, x, low, high):
        dtype, (data, least, most) = self.common([x, low, high], False)
        if getattr(data, "requires_grad", False):  # at a limit the slope is 1, not a half
            raised = torch.where((data < least) | torch.isnan(least), least, data)
            return self.give(torch.where((raised > most) | torch.isnan(most), most, raised), dtype)
        return self.give(self.library.clip(data, least, most), dtype)

    def relu(self, x):
        def of(v):
            zero = self.library.full((), 0, compute_type(x.dtype))
            return self.library.where(v <= zero, zero, v)
        return self.elementwise(of, [x], "same")

    def complex(self, real, imag):
        dtype = promote(promote("c64", real.dtype), imag.dtype)
        parts = np.broadcast_arrays(self.load(real, COMPLEX[dtype]), self.load(imag, COMPLEX[dtype]))
        return Value(np.stack(parts, -1).view(NUMPY[dtype])[..., 0], dtype)

    def checkpoint(self, x): return self.mul(self.tanh(x), x)
    def bitwise_not(self, x): return self.logical_not(x) if x.dtype == "bool" else self.elementwise(self.library.unary("bitwise_not", None), [x], "same")
    def logical_not(self, x): return Value(~self.cast_data(x, "bool"), "bool")
    def logical_and(self, a, b): return self.elementwise(lambda x, y: (x != 0) & (y != 0), [a, b], "bool")
    def logical_or(self, a, b): return self.elementwise(lambda x, y: (x != 0) | (y != 0), [a, b], "bool")

    def gate(self, formula, x):
        """In doubles, so that tails keep their digits."""
        dtype, (v,) = self.common([x], True)
        return self.give(self.library.convert(formula(self.library.convert(v, "f64")), compute_type(dtype)), dtype)

    def exp_of_minus_size(self, v): return self.library.unary("exp", v)(-self.library.where(v < 0, -v, v))

    def sigmoid(self, x):
        def of(v):
            e = self.exp_of_minus_size(v)
            return self.library.where(v < 0, e, e * 0 + 1) / (1 + e)
        return self.gate(of, x)

    def softplus(self, x):
        return self.gate(lambda v: self.library.binary("logaddexp")(v, self.library.full((), 0.0, "f64")), x)

    def log_sigmoid(self, x):
        return self.gate(lambda v: -self.library.binary("logaddexp")(-v, self.library.full((), 0.0, "f64")), x)

    def floor_divide(self, a, b):
        if self.library.name == "PyTorch": raise Missing  # by 0 it refuses whole numbers
        return self.elementwise(self.library.binary("floor_divide"), [a, b], "same")

    def silu(self, x):
        def of(v):  # at -infinity the limit
            v = self.library.where(v < -1e6, self.library.full((), -1e6, "f64"), v)
            root = self.exp_of_minus_size(v / 2)
            return self.library.where(v < 0, (v * root) * (root / (1 + root * root)), v / (1 + root * root))
        return self.gate(of, x)

    def gelu(self, x):
        if self.library.name == "NumPy" or x.dtype == "f64": raise Missing
        def of(v):
            v = self.library.where(v < -1e6, self.library.full((), -1e6, "f64"), v)
            return v * 0.5 * torch.special.erfc(v * -2**-0.5)
        return self.gate(of, x)

    def triangle(self, x, diagonal, otherwise, lower):
        dtype = x.dtype
        keep = self.library.tri(x.data, lower, diagonal)
        rest = self.library.full((), otherwise, compute_type(dtype))
        return self.give(self.library.where(keep, self.load(x, compute_type(dtype)), rest), dtype)

    def triu(self, x, diagonal, otherwise): return self.triangle(x, diagonal, otherwise, False)
    def tril(self, x, diagonal, otherwise): return self.triangle(x, diagonal, otherwise, True)
    def cast(self, x, dtype): return Value(self.cast_data(x, dtype), dtype)

    # --- patterns ---

    def sizes(self, sides, shapes, given):
        sizes = dict(given)
        for _ in range(3):
            for side, shape in zip(sides, shapes):
                for names, n in zip(side, shape):
                    unknown = [a for a in names if a not in sizes]
                    known = int(np.prod([sizes[a] for a in names if a in sizes], dtype=np.int64))
                    if len(unknown) == 1 and known > 0: sizes[unknown[0]] = n // known
                    elif len(unknown) == 1: raise Missing  # beside a size of 0 any would do
        return sizes

    def spread(self, data, side, sizes):
        return data.reshape(tuple(sizes[a] for names in side for a in names)), [a for names in side for a in names]

    def gathered(self, data, names, output, sizes):
        """Axes `names` in the order of the output, merged as it says; axes that are missing repeat."""
        lib = self.library
        flat = [a for group in output for a in group]
        missing = [a for a in flat if a not in names]
        data = data.reshape(tuple(data.shape) + (1,) * len(missing))
        data = lib.broadcast(data, tuple(sizes[a] for a in names + missing))
        data = lib.transpose(data, [(names + missing).index(a) for a in flat])
        return data.reshape(tuple(int(np.prod([sizes[a] for a in group], dtype=np.int64)) for group in output))

    def rearrange(self, x, pattern, **given):
        (side,), output = split(pattern)
        data = x.data
        sizes = self.sizes([side], [data.shape], given)
        data, names = self.spread(data, side, sizes)
        return Value(self.gathered(data, names, output, sizes), x.dtype)

    def einsum(self, xs, pattern, **given):
        sides, output = split(pattern)
        dtype = xs[0].dtype
        compute = compute_type(dtype)
        if dtype == "bool" or (compute == "i64" and self.result != dtype): compute = "i64"
        sizes = self.sizes(sides, [x.data.shape for x in xs], given)
        letters = {a: chr(ord("a") + i) if i < 26 else chr(ord("A") + i - 26) for i, a in enumerate(sizes)}
        # PyTorch sums an operand's own axes first, and 0 · NaN is no empty sum.
        if self.library.name == "PyTorch" and len(xs) > 1 and 0 in sizes.values(): raise Missing
        arrays, terms = [], []
        for x, side in zip(xs, sides):
            data, names = self.spread(self.load(x, compute), side, sizes)
            arrays.append(data)
            terms.append("".join(letters[a] for a in names))
        flat = [a for group in output for a in group]
        if set(flat) == set(sizes) and all(len(set(t)) == len(t) for t in terms):
            # A product alone: NumPy's einsum would add it to 0, and lose -0.
            data = None
            for array, side in zip(arrays, sides):
                names = [a for group in side for a in group]
                array = self.library.transpose(array, [names.index(a) for a in flat if a in names])
                array = array.reshape(tuple(sizes[a] if a in names else 1 for a in flat))
                data = array if data is None else data * array
            data = self.library.broadcast(data, tuple(sizes[a] for a in flat))
        else:
            data = self.library.einsum(",".join(terms) + "->" + "".join(letters[a] for a in flat), arrays)
        return self.give(self.gathered(data, flat, output, sizes), self.result)

    def map(self, x, y, pattern, function, how=None, **given):
        """A function of two elements at all points, then as reduce has it."""
        sides, output = split(pattern)
        sizes = self.sizes(sides, [x.data.shape, y.data.shape], given)
        points = []
        for operand, side in zip((x, y), sides):
            data, names = self.spread(operand.data, side, sizes)
            data = self.library.transpose(data, [names.index(a) for a in sizes if a in names])
            points.append(Value(data.reshape(tuple(sizes[a] if a in names else 1 for a in sizes)), operand.dtype))
        value = getattr(self, function)(*points)
        value = Value(self.library.broadcast(value.data, tuple(sizes.values())), value.dtype)
        text = " ".join(f"a{i}" for i in range(len(sizes))) + " -> "
        text += " ".join("(" + " ".join(f"a{list(sizes).index(a)}" for a in group) + ")" for group in output)
        if how is None: return self.rearrange(value, text)
        if how == "sum" and len([a for group in output for a in group]) == len(sizes):
            # Also of one value ein adds to 0, and -0 is lost.
            value = self.give(self.load(value, compute_type(value.dtype)) + 0, value.dtype)
        return self.reduce(value, text, how)

    # --- patterns with braces ---

    def sizes_with_braces(self, sides, shapes, given):
        """Of the axes: of one that a brace alone names it is the largest with which indices stay inside, and as far beside
        both ends as a negative constant says."""
        sizes = self.sizes([[[] if isinstance(dim, Brace) else dim for dim in side] for side in sides], shapes, given)
        for side, shape in zip(sides, shapes):
            for dim, n in zip(side, shape):
                if not isinstance(dim, Brace): continue
                for axis, c in dim.terms:
                    if axis in sizes: continue
                    rest = sum(abs(d) * (sizes[a] - 1) for a, d in dim.terms if a != axis)
                    sizes[axis] = (n - 1 + max(0, -dim.constant) - dim.constant - rest) // abs(c) + 1
        return sizes

    def places(self, brace, sizes):
        """The indices that a brace computes, an axis of it a dimension."""
        at = np.full((), brace.constant, dtype=np.int64)
        for axis, c in brace.terms:
            steps = np.arange(sizes[axis], dtype=np.int64)
            at = at[..., None] + (c * steps if c > 0 else -c * (sizes[axis] - 1 - steps))
        return at

    def opened(self, data, side, sizes, dtype):
        """The elements that the braces of a side read, their axes dimensions; 0 beside the tensor. They are of this dtype."""
        d = 0
        for dim in side:
            if not isinstance(dim, Brace):
                d += 1
                continue
            n, at = data.shape[d], self.places(dim, sizes)
            beside = list(data.shape)
            beside[d] = 1
            data = self.library.concatenate([data, self.library.full(tuple(beside), 0, dtype)], d)
            at = np.where((at < 0) | (at >= n), n, at)
            data = data[(slice(None),) * d + (torch.from_numpy(at) if self.library.name == "PyTorch" else at,)]
            d += len(dim.terms)
        return data

    def einsum_of_windows(self, xs, pattern, **given):
        sides, output, said = sides_with_braces(pattern)
        sizes = self.sizes_with_braces(sides, [x.data.shape for x in xs], {**given, **said})
        compute = compute_type(xs[0].dtype)
        read = [Value(self.opened(self.load(x, compute), side, sizes, compute), compute) for x, side in zip(xs, sides)]
        result, self.result = self.result, compute
        axes = {a for side in sides for dim in side for a in ([t for t, _ in dim.terms] if isinstance(dim, Brace) else dim)}
        value = self.einsum(read, ", ".join(map(without_braces, sides)) + " -> " + without_braces(output), **{a: sizes[a] for a in axes})
        self.result = result
        return self.give(self.added_up(value.data, output, sizes, given, compute), result)

    def added_up(self, data, output, sizes, given, dtype):
        """Each element of a side without braces at its place in that with braces; what lies beside it is dropped."""
        if not any(isinstance(dim, Brace) for dim in output): return data
        shape, places, d = [], [], 0
        inside = np.ones((1,) * len(data.shape), dtype=bool)
        for dim in output:
            own = len(dim.terms) if isinstance(dim, Brace) else 1
            if isinstance(dim, Brace):
                n = given.get(dim.size_name, dim.constant + dim.reach(sizes) + 1 - max(0, -dim.constant))
                at = self.places(dim, sizes)
            else: n, at = data.shape[d], np.arange(data.shape[d])
            at = at.reshape((1,) * d + at.shape + (1,) * (len(data.shape) - d - own))
            inside = inside & (at >= 0) & (at < n)
            shape.append(n)
            places.append(at)
            d += own
        keep = np.broadcast_to(inside, data.shape)
        at = tuple(np.broadcast_to(p, data.shape)[keep] for p in places)
        if self.library.name == "PyTorch": keep, at = torch.from_numpy(keep.copy()), tuple(torch.from_numpy(p) for p in at)
        result = self.library.full(tuple(shape), 0, dtype)
        self.library.combine_at("sum", result, at, data[keep])
        return result

    def reduce_of_windows(self, value, inside, text, how, result):
        """`inside` says which elements a window has."""
        lib, compute = self.library, value.dtype
        ends = LIMITS.get(compute, (-np.inf, np.inf))
        rest = {"sum": 0, "mean": 0, "max": ends[0], "min": ends[1]}[how]
        data = lib.where(inside, value.data, lib.full((), rest, compute))
        if how == "mean":
            self.result = compute
            total = self.reduce(Value(data, compute), text, "sum").data
            count = self.reduce(Value(lib.convert(inside, compute), compute), text, "sum").data
            return self.give(total / count, result)
        self.result = "i64" if how == "sum" and compute in INTEGERS else compute
        return self.give(self.reduce(Value(data, compute), text, how).data, result)

    def inside_of(self, shape, side, sizes): return self.opened(self.library.full(tuple(shape), 1, "bool"), side, sizes, "bool")

    def map_of_windows(self, x, w, pattern, function, how):
        sides, output, _ = sides_with_braces(pattern)
        result = self.result
        sizes = self.sizes_with_braces(sides, [x.data.shape, w.data.shape], {})
        text = without_braces(sides[0]) + ", " + without_braces(sides[1])
        names = list(dict.fromkeys(re.findall(r"\w+", text)))
        def at_points(data, side):
            has = re.findall(r"\w+", without_braces(side))
            data = self.library.transpose(data, [has.index(a) for a in names if a in has])
            return data.reshape(tuple(sizes[a] if a in has else 1 for a in names))
        compute = compute_type(x.dtype)
        a = Value(at_points(self.opened(self.load(x, compute), sides[0], sizes, compute), sides[0]), compute)
        b = Value(at_points(self.load(w, compute), sides[1]), compute)
        value = self.cast(getattr(self, function)(a, b), x.dtype)
        value = Value(self.library.broadcast(self.load(value, compute), tuple(sizes[a] for a in names)), compute)
        inside = self.library.broadcast(at_points(self.inside_of(x.data.shape, sides[0], sizes), sides[0]), value.data.shape)
        return self.reduce_of_windows(value, inside, " ".join(names) + " -> " + without_braces(output), how, result)

    def options_of(self, numbers):
        """The number of axes, the first option, and those for each axis: kernel, stride, padding, dilation and maybe more."""
        axes, first, *rest = numbers
        return axes, first, [rest[i:i + axes] for i in range(0, len(rest), axes)]

    def in_torchs_order(self, x, side, call):
        """call(elements in PyTorch's order: batch, channels, axes) of a side's, in the order of the side again."""
        spatial = [d for d, dim in enumerate(side) if isinstance(dim, Brace)] or [d for d, dim in enumerate(side) if dim[0] in "zyx"]
        (channels,) = [d for d, dim in enumerate(side) if not isinstance(dim, Brace) and "c" in dim]
        order = [d for d in range(len(side)) if d not in spatial + [channels]] + [channels] + spatial
        made = call(self.load(x, compute_type(x.dtype)).permute(order))
        return made.permute([order.index(d) for d in range(len(side))])

    def is_torchs(self, *operands):
        """Of floats. Beside the tensor it may multiply 0, where ein has nothing."""
        if self.library.name == "NumPy" or any(x.dtype in INTEGERS for x in operands): return False
        if not all(bool(torch.isfinite(self.load(x, "f64")).all()) for x in operands): raise Missing
        return True

    def conv(self, x, w, pattern, options):
        if not self.is_torchs(x, w): return self.einsum_of_windows([x, w], pattern)
        axes, groups, (_, stride, padding, dilation) = self.options_of(options)
        weight = self.load(w, compute_type(w.dtype)).permute([axes + 1, axes, *range(axes)]).contiguous()
        f = getattr(torch.nn.functional, f"conv{axes}d")
        return self.give(self.in_torchs_order(x, sides_with_braces(pattern)[0][0], lambda data: f(
            data, weight, None, stride, padding, dilation, groups)), self.result)

    def conv_transpose(self, x, w, pattern, options, **given):
        if not self.is_torchs(x, w): return self.einsum_of_windows([x, w], pattern, **given)
        axes, groups, (_, stride, padding, dilation, more) = self.options_of(options)
        weight = self.load(w, compute_type(w.dtype)).permute([axes, axes + 1, *range(axes)]).contiguous()
        f = getattr(torch.nn.functional, f"conv_transpose{axes}d")
        return self.give(self.in_torchs_order(x, sides_with_braces(pattern)[0][0], lambda data: f(
            data, weight, None, stride, padding, more, groups, dilation)), self.result)

    def pool(self, x, pattern, how, options, **given):
        axes, _, (kernel, stride, padding, dilation) = self.options_of(options)
        sides, output, _ = sides_with_braces(pattern)
        sizes = self.sizes_with_braces(sides, [x.data.shape], given)
        compute = compute_type(x.dtype)
        opened = self.opened(self.load(x, compute), sides[0], sizes, compute)
        inside = self.inside_of(x.data.shape, sides[0], sizes)
        # Its means are without dilation, in three axes of at least a window without padding.
        along = [n for dim, n in zip(sides[0], x.data.shape) if isinstance(dim, Brace)]
        has_it = all(2 * p <= k for p, k in zip(padding, kernel)) and (how == "max" or max(dilation) == 1 and all(k <= n for k, n in zip(kernel, along)))
        # Of equal elements it gives the gradient to the first, ein to all of them.
        has_it = has_it and (how != "max" or not getattr(x.data, "requires_grad", False) or len(x.data.unique()) == x.data.numel())
        if has_it and self.is_torchs(x):
            f = getattr(torch.nn.functional, f"{'max' if how == 'max' else 'avg'}_pool{axes}d")
            most = {"dilation": dilation} if how == "max" else {"count_include_pad": False}
            return self.give(self.in_torchs_order(x, sides[0], lambda data: f(data, kernel, stride, padding, **most)), self.result)
        return self.reduce_of_windows(Value(opened, compute), inside, without_braces(sides[0]) + " -> " + without_braces(output), how, self.result)

    def unfold(self, x, pattern, options, **given):
        axes, _, (kernel, stride, padding, dilation) = self.options_of(options)
        sides, output, _ = sides_with_braces(pattern)
        sizes = self.sizes_with_braces(sides, [x.data.shape], given)
        side = without_braces(sides[0])
        if self.library.name == "NumPy" or x.dtype in INTEGERS:
            data = self.opened(self.load(x, compute_type(x.dtype)), sides[0], sizes, compute_type(x.dtype))
        elif axes == 2:
            (y, ky), (x_, kx) = [[a for a, _ in dim.terms] for dim in sides[0] if isinstance(dim, Brace)]
            names = [y if isinstance(dim, Brace) and dim.terms[0][0] == y else x_ if isinstance(dim, Brace) else dim[0] for dim in sides[0]]
            first = sorted(set(names) - {y, x_})  # b c
            data = self.load(x, compute_type(x.dtype)).permute([names.index(a) for a in first + [y, x_]])
            data = torch.nn.functional.unfold(data, kernel, dilation, padding, stride).reshape(
                *data.shape[:-2], *kernel, sizes[y], sizes[x_])
            data = data.permute([(first + [ky, kx, y, x_]).index(a) for a in re.findall(r"\w+", side)])
        else:
            data, d = self.load(x, compute_type(x.dtype)), 0
            own = iter(zip(kernel, stride, dilation))
            for dim in sides[0]:
                if isinstance(dim, Brace):
                    k, s, step = next(own)
                    data = data.unfold(d, (k - 1) * step + 1, s)[..., ::step].movedim(-1, d + 1)
                    d += 1
                d += 1
        text = side + " ->" + pattern.partition("->")[2]
        return self.give(self.rearrange(Value(data, compute_type(x.dtype)), text).data, x.dtype)

    def fold(self, x, pattern, options, **given):
        axes, _, (kernel, stride, padding, dilation) = self.options_of(options)
        sides, output, _ = sides_with_braces(pattern)
        if axes > 2 or not self.is_torchs(x): return self.einsum_of_windows([x], pattern, **given)
        names = [dim[0] for dim in sides[0]]
        along = names[-2 * axes:] if names[-1] != "c" else names[-2 * axes - 1:-1]
        first = [a for a in ("b", "c") if a in names]
        data = self.load(x, compute_type(x.dtype)).permute([names.index(a) for a in first + along[axes:] + along[:axes]])
        size = [given["n" + a] for a in along[:axes]]
        windows = int(np.prod(data.shape[len(first) + axes:]))
        data = data.reshape(*data.shape[:len(first) - 1], -1, windows)
        if axes == 1: size, kernel, dilation, padding, stride = [1] + size, [1] + kernel, [1] + dilation, [0] + padding, [1] + stride
        data = torch.nn.functional.fold(data, size, kernel, dilation, padding, stride)
        if axes == 1: data = data.squeeze(-2)
        have = first + along[:axes]
        return self.give(data.permute([have.index(dim.terms[0][0] if isinstance(dim, Brace) else dim[0]) for dim in output]), self.result)

    def vmap(self, function, pattern, xs):
        """The function at each index of an axis: NumPy by a loop, PyTorch by its own vmap."""
        left, _, right = pattern.partition("->")
        sides = [side.split() for side in left.split(",")]
        places = [None if "n" not in side else 0 if side[0] == "n" else -1 for side in sides]
        found = self.along_indices(getattr(self, "vmap_" + function.replace(" ", "_")), places, xs)
        return Value((np if self.library.name == "NumPy" else torch).moveaxis(found.data, 0, -1), found.dtype) if right.split()[:1] == ["..."] else found

    def along_indices(self, f, places, xs):
        if 0 in [x.data.shape[d] for x, d in zip(xs, places) if d is not None]: raise Missing  # without an index f is never called
        if self.library.name == "PyTorch":
            dtypes = []

            def of(*data):
                y = f(*[Value(part, x.dtype) for part, x in zip(data, xs)])
                dtypes.append(y.dtype)
                return y.data
            data = torch.func.vmap(of, in_dims=tuple(places))(*[x.data for x in xs])
            return Value(data, dtypes[0])
        count = next(x.data.shape[d] for x, d in zip(xs, places) if d is not None)
        each = [f(*[Value(x.data if d is None else np.take(x.data, i, d), x.dtype) for x, d in zip(xs, places)]) for i in range(count)]
        return Value(np.stack([y.data for y in each]), each[0].dtype)

    def total(self, x):
        """The sum of all elements."""
        dtype = "i64" if x.dtype in INTEGERS - {"u64"} else x.dtype
        data = self.load(x, compute_type(dtype))
        return self.give(self.library.reduce("sum", data, tuple(range(len(data.shape)))) if len(data.shape) else data, dtype)

    def slope(self, f, x):
        """The gradient of a function of one tensor."""
        if self.library.name == "NumPy" or x.dtype not in ("f32", "f64"): raise Missing
        return Value(torch.func.grad(lambda data: f(Value(data, x.dtype)).data)(x.data), x.dtype)

    def vmap_shifted(self, x): return self.add(self.tanh(x), self.total(x))
    def vmap_scaled(self, x, y): return self.sub(self.mul(x, y), self.total(self.mul(x, y)))
    def vmap_chosen(self, x, y, z): return self.where(self.less(x, y), z, self.maximum(x, self.total(y)))

    def vmap_pairs(self, x, ys):
        return self.along_indices(lambda y: self.total(self.mul(self.sub(x, y), self.sub(x, y))), [0], [ys])

    def vmap_gradient(self, x, y): return self.slope(lambda w: self.total(self.mul(self.tanh(self.mul(x, w)), w)), y)

    def vmap_gradients_of_pairs(self, x, ys):
        return self.along_indices(lambda y: self.slope(lambda w: self.total(self.sin(self.mul(x, w))), y), [0], [ys])

    def matmul(self, a, b):
        if len(a.data.shape) == 1 and len(b.data.shape) == 1: return self.einsum([a, b], "k, k ->")
        if self.library.name == "PyTorch" and compute_type(a.dtype) == "i64": raise Missing
        compute = compute_type(a.dtype)
        x, y = self.load(a, compute), self.load(b, compute)
        return self.give(x @ y, self.result)

    def reduced(self, x, pattern, given, how, f, compute):
        (side,), output = split(pattern)
        sizes = self.sizes([side], [x.data.shape], given)
        data, names = self.spread(self.load(x, compute), side, sizes)
        flat = [a for group in output for a in group]
        dims = tuple(i for i, a in enumerate(names) if a not in flat)
        if dims or self.reduces_over_nothing or how not in ("sum", "prod", "max", "min", "mean"):
            data = f(data, dims) if dims else f(data.reshape(tuple(data.shape) + (1,)), (len(names),))
        return self.gathered(data, [a for a in names if a in flat], output, sizes)

    def reduce(self, x, pattern, how, **given):
        lib = self.library
        compute = compute_type(x.dtype)

        def f(data, dims):
            if how in ("any", "all"):
                data = data != 0
                for d in sorted(dims, reverse=True): data = getattr(lib, "reduce")(how, data, d)
                return data
            if how == "prod":
                for d in sorted(dims, reverse=True): data = lib.reduce("prod", data, d)
                return data
            if how == "logsumexp":
                most = lib.reduce("max", data, dims)
                most = lib.where(abs(most) == float("inf"), lib.full((), 0, compute), most)
                wide = most
                for d in sorted(dims): wide = wide[tuple(slice(None) for _ in range(d)) + (None,)]
                return lib.unary("log", data)(lib.reduce("sum", lib.unary("exp", data)(data - wide), dims)) + most
            if how in ("var", "std", "sample_var", "sample_std"):
                correction, of = int(how.startswith("sample_")), how.removeprefix("sample_")
                if lib.name == "NumPy": return getattr(np, of)(data, axis=dims, ddof=correction)
                return getattr(torch, of)(data, dims, correction=correction)
            if how.startswith("nan"):
                if lib.name == "NumPy": return getattr(np, how)(data, axis=dims)
                if how not in ("nansum", "nanmean"): raise Missing
                return getattr(torch, how)(data, dims)
            if how == "norm":
                if lib.name == "NumPy": return np.sqrt((data * data).sum(axis=dims))
                return torch.linalg.vector_norm(data, dim=dims)
            return lib.reduce(how, data, dims)

        try:
            data = self.reduced(x, pattern, given, how, f, compute)
        except (ValueError, RuntimeError, IndexError):
            raise Missing  # of no elements
        if how in ("any", "all"): return Value(self.cast_data(Value(data, "bool"), self.result), self.result)
        return self.give(data, self.result)

    def stack(self, xs, pattern):
        return self.rearrange(Value(self.library.stack([x.data for x in xs]), xs[0].dtype), pattern)

    def star(self, pattern): return pattern.split().index("*")

    def pack(self, xs, pattern):
        return Value(self.library.concatenate([x.data for x in xs], self.star(pattern)), xs[0].dtype)

    def piece_of(self, x, side, piece, given):
        """The elements of one piece, and the side with it in the place of the sum."""
        words = re.findall(r"\([^)]*\)|\S+", side)
        for dim, word in enumerate(words):
            if "+" not in word: continue
            pieces, n = word[1:-1].split(" + "), x.data.shape[dim]
            sizes = [given.get(p, int(p) if p.isdigit() else None) for p in pieces]
            rest = n - sum(s for s in sizes if s is not None)
            begin = sum(rest if s is None else s for s in sizes[:pieces.index(piece)])
            size = sizes[pieces.index(piece)]
            x = Value(x.data[(slice(None),) * dim + (slice(begin, begin + (rest if size is None else size)),)], x.dtype)
            words[dim] = piece
        return x, " ".join(words)

    def in_pieces(self, pattern, make):
        """make(piece, the output with it alone) of each piece of the output's sum, one behind the other."""
        words = re.findall(r"\([^)]*\)|\S+", pattern.partition("->")[2])
        dim = next(d for d, word in enumerate(words) if "+" in word)
        values = [make(piece, " ".join(words[:dim] + [piece] + words[dim + 1:])) for piece in words[dim][1:-1].split(" + ")]
        return Value(self.library.concatenate([v.data for v in values], dim), values[0].dtype)

    def join(self, xs, pattern):
        sides = pattern.partition("->")[0].split(",")
        def make(piece, output):  # the last operand names none
            k = next((k for k, side in enumerate(sides) if piece in side.split()), len(sides) - 1)
            return self.rearrange(xs[k], f"{sides[k]} -> {output}")
        return self.in_pieces(pattern, make)

    def order_of_pieces(self, x, pattern, **given):
        def make(piece, output):
            part, side = self.piece_of(x, pattern.partition("->")[0], piece, given)
            return self.rearrange(part, f"{side} -> {output}")
        return self.in_pieces(pattern, make)

    def einsum_of_pieces(self, xs, pattern, **given):
        left, _, output = pattern.partition("->")
        same = []  # the pieces of all operands in one order, one behind the other
        for x, side in zip(xs, left.split(",")):
            parts = [self.piece_of(x, side, piece, given) for piece in "mn"]
            dim = parts[0][1].split().index("m")
            same.append((Value(self.library.concatenate([p.data for p, _ in parts], dim), x.dtype), parts[0][1]))
        return self.einsum([x for x, _ in same], ", ".join(side for _, side in same) + " -> " + output)

    def unpack(self, x, whole, pattern):
        dim, first = self.star(pattern), whole[0]
        cut = (slice(0, first), slice(first, None))[whole[2]]
        return Value(x.data[(slice(None),) * dim + (cut,)], x.dtype)

    def at(self, x, whole):
        entries = [whole[i] if whole[i + 2] == 0 else slice(whole[i], whole[i + 1], whole[i + 2]) for i in range(0, len(whole), 3)]
        return Value(x.data[tuple(entries)], x.dtype)

    def slice_of(self, x, first, count): return Value(x.data[int(first.data):int(first.data) + count], x.dtype)
    def reshape(self, x, whole): return Value(x.data.reshape(tuple(whole)), x.dtype)
    def clone(self, x): return Value(self.library.copy(x.data), x.dtype)

    # --- along an axis in brackets ---

    def dims(self, pattern):
        names = pattern.split()
        begin = next(i for i, a in enumerate(names) if a.startswith("["))
        end = next(i for i, a in enumerate(names) if a.endswith("]"))
        return tuple(range(begin, end + 1))

    def widened(self, data, dims):
        for d in sorted(dims): data = data[(slice(None),) * d + (None,)]
        return data

    def along(self, x, pattern, f):
        compute = compute_type(x.dtype)
        if 0 in x.data.shape: return Value(self.library.copy(x.data), x.dtype)
        return self.give(f(self.load(x, compute), self.dims(pattern)), self.result)

    def shifted(self, data, dims):
        return data - self.widened(self.library.reduce("max", data, dims), dims)

    def softmax(self, x, pattern):
        def f(data, dims):
            e = self.library.unary("exp", data)(self.shifted(data, dims))
            return e / self.widened(self.library.reduce("sum", e, dims), dims)
        return self.along(x, pattern, f)

    def log_softmax(self, x, pattern):
        def f(data, dims):
            s = self.shifted(data, dims)
            e = self.library.unary("exp", data)(s)
            return s - self.widened(self.library.unary("log", data)(self.library.reduce("sum", e, dims)), dims)
        return self.along(x, pattern, f)

    def normed(self, data, dims, centred, eps):
        lib = self.library
        if centred: data = data - self.widened(lib.reduce("mean", data, dims), dims)
        return data / lib.unary("sqrt", data)(self.widened(lib.reduce("mean", data * data, dims), dims) + eps)

    def layer_norm(self, x, pattern, weight=None, bias=None):
        def f(data, dims):
            y = self.normed(data, dims, True, 1e-5)
            if weight is None: return y
            shape = tuple(n if d in dims else 1 for d, n in enumerate(data.shape))
            own = compute_type(x.dtype)
            return y * self.load(weight, own).reshape(shape) + self.load(bias, own).reshape(shape)
        return self.along(x, pattern, f)

    def rms_norm(self, x, pattern): return self.along(x, pattern, lambda data, dims: self.normed(data, dims, False, 1e-6))

    def ordered(self, x):
        """Elements that order as x's do."""
        return self.load(x, compute_type(x.dtype))

    def position(self, of, x, pattern):
        """Axes in brackets lie at the end, or there is one."""
        data, dims = self.ordered(x), self.dims(pattern)
        if len(dims) > 1: data = data.reshape(tuple(data.shape[:dims[0]]) + (-1,))
        return Value(of(data, dims[0]), "i64")

    def argmax(self, x, pattern): return self.position(self.library.argmax, x, pattern)
    def argmin(self, x, pattern): return self.position(self.library.argmin, x, pattern)

    def cumulative(self, op, x, pattern):
        return self.give(self.library.cumulative(op, self.load(x, compute_type(x.dtype)), self.dims(pattern)[0]), self.result)

    def cumsum(self, x, pattern): return self.cumulative("sum", x, pattern)
    def cumprod(self, x, pattern): return self.cumulative("prod", x, pattern)
    def cummax(self, x, pattern): return self.cumulative("max", x, pattern)
    def cummin(self, x, pattern): return self.cumulative("min", x, pattern)
    def logcumsumexp(self, x, pattern): return self.cumulative("logsumexp", x, pattern)

    def argsort(self, x, pattern): return Value(self.library.argsort(self.ordered(x), self.dims(pattern)[0]), "i64")

    def sort(self, x, pattern, descending=False):
        dim = self.dims(pattern)[0]
        data = self.ordered(x)
        if descending:
            # Equal elements keep their order: sorted from the end, then turned around.
            turned = self.library.flip(data, dim)
            data = self.library.flip(self.library.take(turned, self.library.argsort(turned, dim), dim), dim)
        else:
            data = self.library.take(data, self.library.argsort(data, dim), dim)
        return self.give(data, x.dtype)

    def top_k(self, x, pattern, k, least=False):
        data = self.sort(x, pattern, not least).data
        return Value(data[(slice(None),) * self.dims(pattern)[0] + (slice(0, k),)], x.dtype)

    # --- elements in other places ---

    def flip(self, x, pattern):
        data = self.library.copy(x.data)
        for d in self.dims(pattern): data = self.library.flip(data, d)
        return Value(data, x.dtype)

    def roll(self, x, pattern, shift):
        dims = self.dims(pattern)
        return Value(self.library.roll(x.data, (shift,) * len(dims), dims), x.dtype)

    def padded(self, x, pattern, before, after, around):
        """around(data, d, count, is_before): what comes on one side."""
        data = x.data
        for d in reversed(self.dims(pattern)):
            parts = [around(data, d, before, True)] * (before > 0) + [data] + [around(data, d, after, False)] * (after > 0)
            data = self.library.concatenate(parts, d)
        return Value(data, x.dtype)

    def pad(self, x, pattern, before, after, value):
        rest = self.full((), value, "i64" if isinstance(value, int) else "f64")
        number = self.cast(rest, x.dtype).data
        def around(data, d, count, is_before):
            return self.library.broadcast(number, tuple(count if i == d else n for i, n in enumerate(data.shape)))
        return self.padded(x, pattern, before, after, around)

    def pad_by(self, x, pattern, before, after, mode):
        def around(data, d, count, is_before):
            n = data.shape[d]
            at = {"reflect": range(count, 0, -1) if is_before else range(n - 2, n - 2 - count, -1),
                  "replicate": [0 if is_before else n - 1] * count,
                  "wrap": range(n - count, n) if is_before else range(count)}[mode]
            return data[(slice(None),) * d + (list(at),)]
        return self.padded(x, pattern, before, after, around)

    def diagonal(self, x, pattern, offset):
        first, second = self.dims(pattern)
        data = self.library.diagonal(x.data, offset, first, second)  # behind all others
        order = list(range(len(data.shape) - 1))
        return Value(self.library.transpose(data, order[:first] + [len(order)] + order[first:]), x.dtype)

    def from_diagonal(self, x, pattern, offset):
        (dim,) = self.dims(pattern)
        n = x.data.shape[dim]
        size = n + abs(offset)
        rows, columns = self.library.arange(size).reshape((size, 1)), self.library.arange(size)
        if n == 0: return self.cast(Value(self.library.full(x.data.shape[:dim] + (size, size) + x.data.shape[dim + 1:], 0, "i64"), "i64"), x.dtype)
        along = (slice(None),) * dim
        place = self.library.arange(size) - max(offset, 0)  # of each column
        spread = x.data[along + (self.library.clip(place, 0, n - 1),)][along + (None,)]
        is_there = (columns - rows == offset).reshape((1,) * dim + (size, size) + (1,) * (len(x.data.shape) - dim - 1))
        zero = self.library.full((), 0, compute_type(x.dtype))
        return self.give(self.library.where(is_there, self.load(Value(spread, x.dtype), compute_type(x.dtype)), zero), x.dtype)

    def median(self, x, pattern): return self.quantile(x, pattern, 0.5)

    def quantile(self, x, pattern, q, method="linear"):
        compute = "f64" if x.dtype in INTEGERS or x.dtype == "f64" else "f32"
        data = self.load(x, compute)
        if 0 in data.shape: raise Missing
        if np.isinf(self.library.doubles(data)).any(): raise Missing  # they subtract an infinity from itself
        found = self.library.quantile(data, q, self.dims(pattern)[0], method)
        return self.cast(Value(self.library.convert(found, compute), compute), self.result)

    def histogram(self, x, pattern, bins, low, high):
        (dim,) = self.dims(pattern)
        data = self.library.doubles(self.load(x, "f64")).reshape(x.data.shape)
        lines = np.moveaxis(data, dim, -1)
        counts = np.zeros(lines.shape[:-1] + (bins,), dtype=np.int64)
        for at in np.ndindex(*lines.shape[:-1]):
            line = lines[at]
            counts[at] = np.histogram(line[~np.isnan(line)], bins, (low, high))[0]
        return Value(self.library.array(np.moveaxis(counts, -1, dim), counts.shape[:dim] + (bins,) + counts.shape[dim:-1], "i64"), "i64")

    # --- of matrices: each result but for its signs ---

    def of_matrices(self, function, *xs):
        compute = compute_type(xs[0].dtype)
        return getattr(self.library.linalg, function)(*[self.load(x, compute) for x in xs])

    def factors(self, x, function, names, **options):
        parts = getattr(self.library.linalg, function)(self.load(x, compute_type(x.dtype)), **options)
        return types.SimpleNamespace(**{name: self.give(part, x.dtype) for name, part in zip(names, parts)})

    def inverse(self, m): return self.give(self.of_matrices("inv", m), m.dtype)
    def det(self, m): return self.give(self.of_matrices("det", m), m.dtype)
    def solve(self, a, b): return self.give(self.of_matrices("solve", a, b), a.dtype)
    def lstsq(self, a, b): return self.give(self.of_matrices("lstsq", a, b)[0], a.dtype)
    def qr(self, m): return self.factors(m, "qr", ("q", "r"))
    def svd(self, m): return self.factors(m, "svd", ("u", "s", "vt"), full_matrices=False)
    def eigh(self, m): return self.factors(m, "eigh", ("values", "vectors"))

    def cholesky(self, m):
        # Of a matrix that has one: squares, and 8 more on the diagonal.
        definite = self.add(self.mul(m, m), self.mul(8, self.eye(m.data.shape[-1], m.dtype)))
        return self.give(self.of_matrices("cholesky", definite), definite.dtype)

    def nonzero(self, x): return Value(np.argwhere(x.data), "i64")

    def unique(self, x):
        values, positions, counts = np.unique(self.ordered(x), return_inverse=True, return_counts=True)
        return types.SimpleNamespace(values=self.give(values, x.dtype), positions=Value(positions, "i64"), counts=Value(counts, "i64"))

    def searchsorted(self, x, values):
        compute = compute_type(x.dtype)
        return Value(self.library.searchsorted(self.load(self.sort(x, "[v]"), compute), self.load(values, compute)), "i64")

    # --- positions ---

    def indexed(self, axes, sizes, name, order):
        """The positions along axis `name` as an array over the axes in `order`."""
        shape = [sizes[name] if a == name else 1 for a in order]
        return self.library.broadcast(self.library.arange(sizes[name]).reshape(tuple(shape)), tuple(sizes[a] for a in order))

    def over(self, x, names, order, sizes):
        data = self.cast_data(x, "i64")
        data = self.library.transpose(data, [names.index(a) for a in order if a in names])
        shape = [sizes[a] if a in names else 1 for a in order]
        return self.library.broadcast(data.reshape(tuple(shape)), tuple(sizes[a] for a in order))

    def gather(self, x, positions, pattern):
        (table, where), output = split(pattern)
        table, where, output = [[group[0] for group in side] for side in (table, where, output)]
        sizes = {a: n for a, n in zip(table, x.data.shape)} | {a: n for a, n in zip(where, positions.data.shape)}
        at = self.over(positions, where, output, sizes)
        return Value(x.data[tuple(at if a == "v" else self.indexed(table, sizes, a, output) for a in table)], x.dtype)

    def scatter_add(self, x, positions, pattern, v): return self.scatter("sum", x, positions, pattern, v)
    def scatter_prod(self, x, positions, pattern, v): return self.scatter("prod", x, positions, pattern, v)
    def scatter_max(self, x, positions, pattern, v): return self.scatter("max", x, positions, pattern, v)
    def scatter_min(self, x, positions, pattern, v): return self.scatter("min", x, positions, pattern, v)

    def scatter(self, op, x, positions, pattern, v):
        (values, where), output = split(pattern)
        values, where, output = [[group[0] for group in side] for side in (values, where, output)]
        sizes = {a: n for a, n in zip(values, x.data.shape)} | {"v": v}
        compute = compute_type(x.dtype)
        ends = LIMITS.get(x.dtype, (0, 1) if x.dtype == "bool" else (-np.inf, np.inf))
        nothing = {"sum": 0, "prod": 1, "max": ends[0], "min": ends[1]}[op]
        result = self.library.full(tuple(sizes[a] for a in output), nothing, compute)
        at = self.over(positions, where, values, sizes)
        self.library.combine_at(op, result, tuple(at if a == "v" else self.indexed(values, sizes, a, values) for a in output), self.load(x, compute))
        return self.give(result, self.result)

    def one_hot(self, positions, pattern, dtype, v):
        (where,), output = split(pattern)
        where, output = [[group[0] for group in side] for side in (where, output)]
        sizes = {a: n for a, n in zip(where, positions.data.shape)} | {"v": v}
        return Value(self.library.convert(self.over(positions, where, output, sizes) == self.indexed(output, sizes, "v", output), dtype), dtype)

    def cross_entropy_of(self, x, targets, pattern, smoothing):
        return self.torch_cross_entropy(x, self.load(targets, compute_type(x.dtype)), pattern, label_smoothing=smoothing)

    def cross_entropy_with(self, x, targets, pattern, weights, ignored, smoothing):
        # At least one of its targets must count.
        if bool((targets.data == ignored).all()): raise Missing
        return self.torch_cross_entropy(x, targets.data.long() if self.library.name == "PyTorch" else None, pattern,
                                        weight=self.load(weights, compute_type(x.dtype)), ignore_index=ignored, label_smoothing=smoothing)

    def torch_cross_entropy(self, x, targets, pattern, **options):
        """Of targets along all other axes, each loss or the mean of all."""
        if self.library.name != "PyTorch" or 0 in x.data.shape: raise Missing
        left, arrow, right = pattern.partition("->")
        logits, where = [[group[0] for group in items(side)] for side in left.split(",")]
        output = [group[0] for group in items(right)]
        (classes,) = re.search(r"\[(\w+)\]", pattern).groups()
        rest = [a for a in logits if a != classes]
        order = rest[:1] + [classes] + rest[1:]
        along = [a for a in order if a in where]
        each = bool(arrow) and sorted(output) == sorted(rest)
        if sorted(a for a in where if a != classes) != sorted(rest) or (output and not each): raise Missing
        data = self.load(x, compute_type(x.dtype)).permute([logits.index(a) for a in order])
        loss = torch.nn.functional.cross_entropy(data, targets.permute([where.index(a) for a in along]),
                                                 reduction="none" if each else "mean", **options)
        return self.give(loss.permute([rest.index(a) for a in output]) if each else loss, x.dtype)

    def cross_entropy(self, x, targets, pattern):
        left, arrow, right = pattern.partition("->")
        logits, where = [[group[0] for group in items(side)] for side in left.split(",")]
        output = [group[0] for group in items(right)]
        sizes = {a: n for a, n in zip(logits, x.data.shape)}
        if 0 in x.data.shape: raise Missing
        compute = compute_type(x.dtype)
        data, dim = self.load(x, compute), logits.index("v")
        lib = self.library
        most = lib.reduce("max", data, (dim,))
        data = data - self.widened(most, (dim,))
        total = lib.unary("log", data)(lib.reduce("sum", lib.unary("exp", data)(data), (dim,)))
        rest = [a for a in logits if a != "v"]
        at = self.over(targets, where, rest, sizes)
        picked = data[tuple(at if a == "v" else self.indexed(logits, sizes, a, rest) for a in logits)]
        losses = total - picked
        dims = tuple(i for i, a in enumerate(rest) if a not in output)
        if dims: losses = lib.reduce("mean", losses, dims)
        kept = [a for a in rest if a in output]
        return self.give(lib.transpose(losses, [kept.index(a) for a in output]), self.result)

    def mse_loss(self, a, b):
        dtype, (x, y) = self.common([a, b], False)
        d = (x - y) * (x - y)
        return self.give(self.library.reduce("mean", d, tuple(range(len(d.shape)))) if len(d.shape) else d, self.result)

    # --- new tensors, state, gradients ---

    def full(self, shape, number, dtype):
        if dtype in INTEGERS and isinstance(number, float): raise Missing
        return self.cast(Value(self.library.full(tuple(shape), number, "i64" if isinstance(number, int) else "f64"), "i64" if isinstance(number, int) else "f64"), dtype)

    def arange(self, n): return Value(self.library.arange(n), "i64")

    def arange_from(self, start, end, step):
        dtype = "i64" if all(isinstance(n, int) for n in (start, end, step)) else "f32"
        data = np.arange(start, end, step, dtype=np.float64)
        return Value(self.library.array(data, data.shape, dtype), dtype)
    def eye(self, n, dtype):
        i = self.library.arange(n)
        return Value(self.library.convert(i.reshape((n, 1)) == i, dtype), dtype)

    def copy_from(self, state, x):
        state.data[...] = self.cast_data(Value(x.data.detach() if self.library.name == "PyTorch" else x.data, x.dtype), state.dtype)
        return state

    def copy_from_to_rows(self, state, x, rows):
        state.data[rows[0]:rows[1]] = self.cast_data(Value(x.data.detach() if self.library.name == "PyTorch" else x.data, x.dtype), state.dtype)
        return state

    def copy_from_at_position(self, state, x, first, count):
        return self.copy_from_to_rows(state, x, [int(first.data), int(first.data) + count])

    def fill(self, state, number):
        state.data[...] = self.cast(self.full((), number, "i64" if isinstance(number, int) else "f64"), state.dtype).data
        return state

    def detach(self, x): return Value(x.data.detach() if self.library.name == "PyTorch" else x.data, x.dtype)

    def gradient(self, y, cotangent, x):
        # PyTorch adds the parts of a gradient in its dtype.
        if self.library.name == "NumPy" or x.dtype not in ("f32", "f64") and not self.has_one_part: raise Missing
        if not y.data.requires_grad: return Value(torch.zeros_like(x.data), x.dtype)
        (found,) = torch.autograd.grad(y.data, [x.data], [cotangent.data], create_graph=True, allow_unused=True)
        return Value(torch.zeros_like(x.data) if found is None else found, x.dtype)


def add_vocabulary():
    def binary(op, kind):
        return lambda self, a, b: self.elementwise(self.library.binary(op), [a, b], kind)

    def unary(op, kind):
        def call(self, x):
            f = self.library.unary(op, None)
            if f is None: raise Missing
            return self.elementwise(f, [x], kind)
        return call

    for op in ("add", "sub", "mul", "minimum", "maximum", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift",
               "right_shift"): setattr(Replay, op, binary(op, "same"))
    for op in ("div", "atan2", "hypot", "logaddexp"): setattr(Replay, op, binary(op, "floating"))
    for op in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
        name = {"equal": "eq", "not_equal": "ne"}
        setattr(Replay, op, lambda self, a, b, op=op: self.elementwise(
            self.library.binary(name.get(op, op) if self.library.name == "PyTorch" else op), [a, b], "bool"))
    for op in ("abs", "negate", "floor", "ceil", "round", "trunc", "sign", "real", "imag", "conj"): setattr(Replay, op, unary(op, "same"))
    for op in ("isnan", "isinf", "isfinite"): setattr(Replay, op, unary(op, "bool"))
    for op in ("sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
               "tanh", "erf", "angle"): setattr(Replay, op, unary(op, "floating"))


add_vocabulary()


def doubles(text):
    return np.frombuffer(bytes.fromhex(text), dtype="<f8")


# What a peer computes by another formula than ein: its values, and those that follow, may differ by more than rounding.
OTHER_FORMULA = {"sigmoid", "silu", "gelu", "softmax", "log_softmax", "layer_norm", "layer_norm with weights", "rms_norm", "cross_entropy",
                 "gradient", "gradient of order 2", "gradient of order 3", "vmap gradient", "vmap gradients of pairs", "softplus", "log_sigmoid", "logaddexp",
                 "number logaddexp", "logaddexp number", "logcumsumexp", "cross_entropy with options", "cross_entropy of probabilities",
                 "quantile", "median", "reduce logsumexp", "reduce var", "reduce std", "reduce mean", "mse_loss", "sqrt", "windows mean", "windows map minimum mean",
                 "reduce sample_var", "reduce sample_std", "reduce norm", "reduce nanmean", "reduce nanvar", "reduce nanstd"} | {
                 f"quantile {method}" for method in ("lower", "higher", "nearest", "midpoint")}
TOLERANCE = {"f64": 1e-10, "f32": 1e-4, "f16": 4e-3, "bf16": 3e-2, "f8e4m3": 0.25, "f8e5m2": 0.5}


def compare(got, expected, dtype, loose, terms, sums):
    """The first element that is not among what it may be; of a gradient of parts as large as `terms`, which may cancel. Of parts
    that may be NaN ein may give NaN for all: it divides a product by the element that a peer leaves out of it. And a peer gives
    NaN for slopes at infinities, of which ein knows the limits. Where NumPy `sums` a single product, it adds it to 0."""
    low, high, nan = doubles(expected["low"]), doubles(expected["high"]), doubles(expected["nan"])
    if sums: low, high = np.where(low == 0, -0.0, low), np.where(high == 0, 0.0, high)
    if loose:
        if dtype not in TOLERANCE: return None  # a question about a value that may differ
        finite = np.abs(low[np.isfinite(low)])
        rounded = 0 if dtype in ("f32", "f64") else terms / 4  # parts of 16 bits are
        slack = TOLERANCE[dtype] * (rounded + 1e-3 * max(terms, max(finite, default=0)) + np.where(np.isfinite(low), np.abs(low), 0)) + 1e-37
        low, high = low - slack, high + slack
    with np.errstate(invalid="ignore"):
        inside = (got >= low) & (got <= high)
        # -0 comes before 0.
        inside &= ~((got == 0) & np.signbit(got) & (low == 0) & ~np.signbit(low))
        inside &= ~((got == 0) & ~np.signbit(got) & (high == 0) & np.signbit(high))
    if sums: inside |= np.isinf(got) & np.isinf(low)  # one divided by such a 0
    wrong = np.where(np.isnan(got), (nan == 0) & (terms == 0), ~inside & ~((terms > 0) & (nan != 0))).nonzero()[0]
    if len(wrong) == 0: return None
    i = wrong[0]
    return f"element {i} is {got[i]!r}, ein may give {low[i]!r} .. {high[i]!r}{' or nan' if nan[i] else ''}"


def is_window_alone(steps, v):
    """Whether a value is a call whose pattern has braces, of inputs, and no other call has its inputs."""
    inputs = set(re.findall(r"\bv\d+\b", steps[v].get("call") or ""))
    return steps[v].get("name", "").startswith("windows ") and all(
        "values" in step for u, step in enumerate(steps) if f"v{u}" in inputs) and not any(
        inputs & set(re.findall(r"\bv\d+\b", step.get("call") or "")) for u, step in enumerate(steps)
        if u != v and not step.get("name", "").startswith("gradient"))


def replay(program, library, counts):
    replay = Replay(library)
    values = {}
    loose = set()
    terms = collections.Counter()
    sums = set()
    differentiates = any(step.get("name", "").startswith("gradient") for step in program["steps"])
    for v, step in enumerate(program["steps"]):
        name = f"v{v}"
        if "values" in step:
            if not library.has(step["dtype"]): continue
            data = library.array(doubles(step["values"]), tuple(step["shape"]), step["dtype"])
            if library.name == "PyTorch" and differentiates and not step["state"] and step["dtype"] not in INTEGERS: data.requires_grad_(True)
            values[name] = Value(data, step["dtype"])
            continue
        # What follows from a state that was not written to is another.
        assigns = step["writes"]
        if not step["call"] or not library.has(step["dtype"]):
            if assigns: return None
            continue
        replay.result = step["dtype"]
        call = step["call"]
        if any(used not in values for used in re.findall(r"\bv\d+\b(?!=)", re.sub(r'"[^"]*"', '""', call))):
            if assigns: return None
            continue
        first = re.findall(r"\bv(\d+)\b", call)[:1]
        replay.has_one_part = bool(first) and is_window_alone(program["steps"], int(first[0]))
        scope = {"inf": float("inf"), "nan": float("nan"), **values}
        try:
            value = eval("self." + call, {"self": replay}, scope)  # the text is ein_attack's own
        except Missing:
            if assigns: return None
            continue
        except Exception as error:  # an operation that the peer has for fewer dtypes
            counts["not run: " + type(error).__name__ + " in " + step["name"]] += 1
            if counts["shown " + step["name"]] < 1:
                counts["shown " + step["name"]] += 1
                print(f"not run: {library.name} seed {program['seed']} {call}: {str(error)[:200]}", file=sys.stderr)
            continue
        if tuple(value.data.shape) != tuple(step["shape"]):
            return f"v{v} = {call} has shape {tuple(value.data.shape)}, ein's {tuple(step['shape'])}"
        if value.dtype != step["dtype"]:
            return f"v{v} = {call} has dtype {value.dtype}, ein's {step['dtype']}"
        values[name] = value
        used = set(re.findall(r"\bv\d+\b(?!=)", re.sub(r'"[^"]*"', '""', call)))
        if step["name"] in OTHER_FORMULA or loose & used: loose.add(name)
        if library.name == "NumPy" and (step["name"].startswith("einsum") or sums & used): sums.add(name)
        terms[name] = max([0.0] + [terms[u] for u in used])
        if "gradient" in step["name"]:
            parts = ("f32", "f64") if value.dtype in ("f32", "f64") else TOLERANCE
            sizes = [np.abs(library.doubles(v.data)) for v in values.values() if v.dtype in parts]
            terms[name] = max([1e-300, terms[name]] + [a[np.isfinite(a)].max(initial=0) for a in sizes])
    for expected in program["outputs"]:
        name = f"v{expected['value']}"
        if name not in values: continue
        data = values[name].data
        if library.name == "PyTorch" and values[name].dtype in ("f8e4m3", "f8e5m2"): data = data.to(torch.float32)
        wrong = compare(library.doubles(data), expected, values[name].dtype, name in loose, terms[name], name in sums)
        counts["outputs"] += 1
        if wrong: return f"{name}: {wrong}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--most", type=int, default=10, help="differences that are shown")
    options = parser.parse_args()
    differences = 0
    counts = {library.name: collections.Counter() for library in (NumPy, PyTorch)}
    programs = 0
    np.seterr(all="ignore")
    for line in open(options.file):
        program = json.loads(line)
        programs += 1
        for library in (NumPy(), PyTorch()):
            wrong = replay(program, library, counts[library.name])
            if not wrong: continue
            differences += 1
            if differences <= options.most:
                print(f"seed {program['seed']}, {library.name}: {wrong}")
                for v, step in enumerate(program["steps"]):
                    print(f"  v{v} = {step.get('call', 'input')}  : {step['dtype']} {tuple(step['shape'])}")
    for name, count in counts.items():
        print(f"{name}: {count['outputs']} outputs compared; " + ", ".join(f"{k} {n}" for k, n in count.items() if k.startswith("not run")))
    print(f"{programs} programs, {differences} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
