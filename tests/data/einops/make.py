#!/usr/bin/env python3
"""Writes rows.tsv: what einops makes of a table of calls, for tests/einops_conformance_test.cpp.

    pip install einops==0.8.2 numpy && python3 make.py > rows.tsv

One call a line, in columns separated by tabs:

    operation   pattern   inputs   sizes   option   outcome

inputs   shapes separated by blanks, "()" for a scalar; `list` before them makes them one list
sizes    name=size ..., "-" for none
option   the reduction; for unpack the packed shapes; else "-"
outcome  "error", or the results separated by " | ": a shape, ":", and the elements; of more than 64
         elements three sums with the weights of digest() below, after a "#". For pack the packed shapes
         follow; for parse_shape the outcome is name=size ...

Inputs are float64; fill() says with which numbers.
"""
import sys
import warnings

import einops
import numpy as np

warnings.simplefilter("ignore")  # about names that are keywords


def fill(op, reduction, k, shape):
    """Element i of input k, in row-major order."""
    i = np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.int64)
    if op == "einsum":
        values = (7 * i + 3 * k) % 11 - 5
    elif op == "reduce" and reduction == "prod":
        values = i % 3 + 1
    elif op == "reduce" and reduction in ("any", "all"):
        values = (i * i + i // 7) % 3
    elif op == "reduce":
        values = 37 * i % 101 - 30 + k
    else:
        values = i + 1000 * k
    return values.astype(np.float64).reshape(shape)


def digest(x):
    """Elements, or three sums for many."""
    x = np.asarray(x, dtype=np.float64)
    shape = "()" if x.ndim == 0 else ",".join(str(n) for n in x.shape)
    flat = x.reshape(-1)
    if flat.size <= 64:
        return shape + ":" + " ".join(number(v) for v in flat)
    i = np.arange(flat.size)
    weights = (np.ones(flat.size), i % 1009 + 1, i * 7919 % 1013 + 1)
    return shape + ":#" + " ".join(number(np.sum(flat * w)) for w in weights)


def number(v):
    v = float(v)
    return str(int(v)) if v == int(v) else repr(v)


def run(op, pattern, shapes, is_list, sizes, option):
    inputs = [fill(op, option, k, s) for k, s in enumerate(shapes)]
    x = inputs if is_list else inputs[0]
    if op == "einsum":
        return digest(einops.einsum(*inputs, pattern))
    if op == "rearrange":
        return digest(einops.rearrange(x, pattern, **sizes))
    if op == "repeat":
        return digest(einops.repeat(x, pattern, **sizes))
    if op == "reduce":
        return digest(einops.reduce(x, pattern, option, **sizes))
    if op == "pack":
        packed, packed_shapes = einops.pack(inputs, pattern)
        return digest(packed) + " | " + " ".join(show(s) for s in packed_shapes)
    if op == "unpack":
        return " | ".join(digest(y) for y in einops.unpack(x, option, pattern))
    if op == "parse_shape":
        return " ".join(f"{a}={n}" for a, n in einops.parse_shape(x, pattern).items())
    raise ValueError(op)


def show(shape):
    return "()" if len(shape) == 0 else ",".join(str(n) for n in shape)


def row(op, pattern, *shapes, option="-", is_list=False, **sizes):
    try:
        outcome = run(op, pattern, shapes, is_list, sizes, option)
    except Exception:  # einops raises EinopsError, and what it does not foresee as other exceptions
        outcome = "error"
    inputs = " ".join((["list"] if is_list else []) + [show(s) for s in shapes])
    given = " ".join(f"{a}={n}" for a, n in sizes.items()) or "-"
    if not isinstance(option, str):
        option = " ".join(show(s) for s in option) or "none"
    escaped = pattern.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")
    sys.stdout.write("\t".join([op, escaped, inputs or "none", given, option, outcome]) + "\n")


def rearrange_rows():
    def r(pattern, *shapes, **kw):
        row("rearrange", pattern, *shapes, **kw)

    r("a b -> b a", (3, 4))
    r("a b c -> c a b", (2, 3, 4))
    r("b h w c -> b c h w", (2, 3, 4, 5))
    r("b h w c -> (b h) w c", (2, 3, 4, 5))
    r("b h w c -> h (b w) c", (2, 3, 4, 5))
    r("b h w c -> b (c h w)", (2, 3, 4, 5))
    r("(b1 b2) h w c -> b1 b2 h w c", (6, 3, 4, 5), b1=2)
    r("(b1 b2) h w c -> (b1 h) (b2 w) c", (6, 3, 4, 5), b1=2)
    r("b (h h1) (w w1) c -> b h w (h1 w1 c)", (2, 4, 6, 3), h1=2, w1=3)
    r("b h w (h1 w1 c) -> b (h h1) (w w1) c", (1, 2, 3, 12), h1=2, w1=2)
    r("a (b c d) -> (d c) a b", (2, 24), b=2, d=3)
    r("(a b c) -> c b a", (24,), a=2, b=3)
    r("(a b c) -> c b a", (24,), a=2, b=3, c=4)
    r("(a b) (c d) -> (d a) (c b)", (6, 20), a=2, c=4)
    r("a -> a", (5,))
    r("a->a", (5,))
    r("->", ())
    r(" -> ", ())
    r("a 1 -> a", (3, 1))
    r("a -> a 1", (3,))
    r("a -> 1 a 1 1", (3,))
    r("1 a 1 -> a", (1, 3, 1))
    r("a () -> () a", (3, 1))
    r("() a -> a ()", (1, 3))
    r("a -> (a 1)", (3,))
    r("a b -> (1 a) (b ())", (3, 2))
    r("(a 1) -> a", (3,))
    r("1 -> ", (1,))
    r(" -> 1", ())
    r("-> 1 1", ())
    r("... -> ...", (2, 3))
    r("... a -> a ...", (2, 3, 4))
    r("a ... -> ... a", (2, 3, 4))
    r("a ... b -> b ... a", (2, 3, 4, 5))
    r("a ... b -> b ... a", (2, 5))
    r("a ... -> (...) a", (2, 3, 4))
    r("a ... -> a (...)", (2, 3, 4))
    r("a ... -> (a ...)", (2, 3, 4))
    r("a ... -> (... a)", (2, 3, 4))
    r("... a b -> ... (a b)", (2, 3, 4))
    r("... (a b) -> a ... b", (2, 3, 8), b=4)
    r("... -> (...)", (2, 3, 4))
    r("... -> (...)", ())
    r("... -> ... 1", ())
    r("a ... 1 -> ... a", (2, 3, 1))
    r("h   w->w\th", (2, 3))
    r("\n h w\n -> w h \n", (2, 3))
    r("( a b ) c->a( b c )", (6, 2), a=2)
    r("Batch H_1 w2 -> w2 Batch H_1", (2, 3, 4))
    r("größe 長さ -> 長さ größe", (2, 3))
    r("été Ωmega -> (Ωmega été)", (2, 3))
    r("a b -> b a", (0, 3))
    r("a b -> (a b)", (0, 3))
    r("(a b) -> a b", (0,), b=3)
    r("(a b) c -> a (b c)", (4, 0), a=2)
    r("n a b -> a n b", (2, 3), (2, 3), is_list=True)
    r("n a b -> a b n", (2, 3), (2, 3), (2, 3), is_list=True)
    r("n a b -> (n a) b", (2, 3), (2, 3), is_list=True)
    r("(n1 n2) a -> n2 a n1", (3,), (3,), (3,), (3,), is_list=True, n1=2)
    r("n -> n", (), (), is_list=True)
    r("n ... -> ... n", (2, 3), (2, 3), is_list=True)
    r("a b c d e f -> f e d c b a", (2, 1, 3, 2, 2, 2))
    r("a b -> (b a)", (30, 20))
    r("(a b) (c d) -> c (d b) a", (24, 60), a=6, d=5)

    # Rejected.
    r("a b -> a", (2, 3))
    r("a -> a b", (2,))
    r("a b -> a b c", (2, 3))
    r("a a -> a", (2, 2))
    r("a b -> a b a", (2, 3))
    r("a b", (2, 3))
    r("a b -> b -> a", (2, 3))
    r("a b -> b, a", (2, 3))
    r("(a b -> a b", (6,), a=2)
    r("a) b -> b a", (2, 3))
    r("((a b) c) -> a b c", (24,), a=2, b=3)
    r("a b -> ((a b))", (2, 3))
    r("(a b) -> a b", (6,))
    r("(a b) -> a b", (7,), a=2)
    r("(a b) -> a b", (6,), a=2, b=2)
    r("(a b) -> a b", (6,), a=2, c=3)
    r("a b -> b a", (2, 3), a=3)
    r("a b -> b a", (2, 3), a=2)
    r("a b c -> a b c", (2, 3))
    r("a -> a", (2, 3))
    r("a ... b -> a b", (2, 4, 3))
    r("a b -> a ... b", (2, 3))
    r("... a ... -> a ...", (2, 3))
    r("a .. -> a ..", (2, 3))
    r("a... -> a...", (2, 3))
    r("(a ...) -> a ...", (2,), a=2)
    r("a 1 -> a", (2, 3))
    r("a () -> a", (2, 3))
    r("a 3 -> a", (2, 3))
    r("a 3 -> a 3", (2, 3))
    r("a -> a 2", (2,))
    r("(2 a) -> a 2", (4,))
    r("a 0 -> a", (2, 0))
    r("2b a -> a 2b", (2, 3))
    r("_a b -> b _a", (2, 3))
    r("a_ b -> b a_", (2, 3))
    r("a _ -> a", (2, 1))
    r("a _ -> a _", (2, 3))
    r("a * -> * a", (2, 3))
    r("a-b -> a b", (2, 3))
    r("a:b -> a b", (2, 3))
    r("a b - > b a", (2, 3))
    r("a b => b a", (2, 3))
    r("(a b) -> a b", (6,), a=-2)
    r("(a b) -> a b", (0,), a=0)
    r("n a -> a n", (2,), (3,), is_list=True)
    r("(n m) a -> n m a", (2,), (2,), (2,), is_list=True, n=2)
    r("n -> n", is_list=True)


def repeat_rows():
    def r(pattern, *shapes, **kw):
        row("repeat", pattern, *shapes, **kw)

    r("a -> a b", (3,), b=2)
    r("a -> b a", (3,), b=2)
    r("a b -> a c b", (2, 3), c=4)
    r("a b -> (a c) b", (2, 3), c=2)
    r("a b -> (c a) b", (2, 3), c=2)
    r("h w -> (h h2) (w w2)", (2, 3), h2=2, w2=3)
    r("h w -> h w 3", (2, 3))
    r("h w -> 2 h 1 (w 3)", (2, 3))
    r("h w -> (2 h) w", (2, 3))
    r("-> 3", ())
    r("-> a b", (), a=2, b=3)
    r("1 -> a", (1,), a=4)
    r("a 1 b -> a 5 b", (2, 1, 3))
    r("a 1 -> a c", (2, 1), c=3)
    r("... -> ... n", (2, 3), n=2)
    r("... -> n ...", (2, 3), n=2)
    r("... a -> (... n) a", (2, 2, 3), n=2)
    r("a ... -> a n (...)", (2, 2, 3), n=2)
    r("(a b) -> a c b", (6,), a=2, c=2)
    r("a -> a b", (3,), b=1)
    r("a -> a b", (3,), b=0)
    r("a -> a b", (0,), b=2)
    r("a b -> b a", (2, 3))
    r("a -> a b c d", (2,), b=2, c=3, d=2)
    r("a b -> (b 4) (a 5)", (7, 6))
    r("n a -> n a k", (2,), (2,), is_list=True, k=2)
    r("größe -> größe 2", (3,))

    # Rejected.
    r("a -> a b", (3,))
    r("a b -> a c", (3, 2), c=2)
    r("a -> a a", (3,))
    r("a -> a b", (3,), b=-1)
    r("a -> a b", (3,), b=2, c=3)
    r("a -> a b", (3,), b=2, a=4)
    r("a 3 -> a 3", (2, 3))
    r("a -> a ...", (3,))
    r("a ... -> a", (3,))
    r("a b -> a b 2", (3,))
    r("a -> a 0", (3,))


def reduce_rows():
    def r(pattern, *shapes, option="sum", **kw):
        row("reduce", pattern, *shapes, option=option, **kw)

    for option in ("sum", "mean", "max", "min", "prod"):
        r("a b -> a", (3, 4), option=option)
        r("a b -> b", (3, 4), option=option)
        r("a b ->", (3, 4), option=option)
        r("a b c -> c a", (2, 3, 2), option=option)
        r("b c (h 2) (w 2) -> b c h w", (1, 2, 4, 6), option=option)
    for option in ("any", "all"):
        r("a b -> a", (3, 4), option=option)
        r("a b c -> b", (5, 4, 2), option=option)
    r("... a -> ...", (2, 3, 4))
    r("... a -> a", (2, 3, 4))
    r("a ... -> ...", (2, 3, 4))
    r("a ... -> a", (2, 3, 4), option="max")
    r("a ... b -> (b a)", (2, 3, 4), option="mean")
    r("... ->", (2, 3, 4))
    r("... -> ...", (2, 3, 4))
    r("... -> 1 ...", (2, 3))
    r("a b -> a 1", (2, 3))
    r("a b -> 1 1", (2, 3))
    r("a b -> () b", (2, 3), option="min")
    r("a b -> (a b)", (2, 3))
    r("a b -> b a", (2, 3), option="mean")
    r("->", ())
    r("a 3 -> a", (2, 3))
    r("a 1 -> a", (2, 1))
    r("a 1 () -> a", (2, 1, 1), option="max")
    r("(a b) -> a", (12,), b=4)
    r("(a b) -> b", (12,), b=4, option="max")
    r("(a b) (c d) -> b d", (6, 8), a=2, c=4)
    r("b (h h2) (w w2) c -> h w c", (2, 6, 4, 3), h2=3, w2=2, option="mean")
    r("b h w c -> b c", (4, 17, 19, 3), option="mean")
    r("b h w c -> (c b)", (4, 17, 19, 3), option="max")
    r("a b -> a", (3, 0))
    r("a b -> a", (3, 0), option="prod")
    r("a b -> b", (3, 0), option="max")
    r("n a -> a", (3,), (3,), (3,), is_list=True)
    r("n a b -> b", (2, 3), (2, 3), is_list=True, option="max")
    r("n ... -> ...", (2, 3), (2, 3), is_list=True, option="mean")

    # Rejected.
    r("a b -> a c", (2, 3))
    r("a b -> a 2", (2, 3))
    r("a b -> a", (2, 3), option="median")
    r("a b -> a", (3, 0), option="max")
    r("a b -> a", (2, 3, 4))
    r("a a -> a", (2, 2))
    r("a b -> a ...", (2, 3))
    r("a 2 -> a", (2, 3))
    r("(a b) -> a", (12,))
    r("(a b) -> a", (12,), b=5)
    r("a b -> a", (2, 3), c=3)
    r("a b -> ((a))", (2, 3))


def einsum_rows():
    def r(pattern, *shapes):
        row("einsum", pattern, *shapes)

    r("a b, b c -> a c", (3, 4), (4, 5))
    r("batch s1 hidden, batch s2 hidden -> batch s1 s2", (2, 3, 4), (2, 5, 4))
    r("a b -> b a", (3, 4))
    r("a b -> a", (3, 4))
    r("a b ->", (3, 4))
    r("i i -> i", (4, 4))
    r("i i ->", (4, 4))
    r("i j, i j -> i", (3, 4), (3, 4))
    r("i, j -> i j", (3,), (4,))
    r("i, i ->", (3,), (3,))
    r(", ->", (), ())
    r(", a -> a", (), (3,))
    r("a b, b c, c d -> a d", (2, 3), (3, 4), (4, 5))
    r("a b, c, d a -> b c d", (2, 3), (2,), (3, 2))
    r("a, a, a, a -> a", (3,), (3,), (3,), (3,))
    r("... a, a b -> ... b", (2, 3, 4), (4, 5))
    r("... a b, ... b c -> ... a c", (2, 3, 4), (2, 4, 5))
    r("... a b, ... b c -> ... a c", (2, 1, 3, 4), (5, 4, 2))
    r("... a, ... b -> a b ...", (2, 3), (2, 4))
    r("... a -> ...", (2, 3, 4))
    r("a ..., b ... -> a b", (2, 3), (4, 3))
    r("b h w c1, c1 c2 -> b c2 h w", (2, 7, 8, 6), (6, 9))
    r("i i j, j i -> j", (3, 3, 4), (4, 3))
    r("a b, b -> a", (0, 3), (3,))
    r("a b, b -> a", (3, 0), (0,))
    r("größe b, b -> größe", (3, 4), (4,))

    # Rejected, or by einops only.
    r("a b, b c -> a c", (3, 4), (5, 5))
    r("a b, b c -> a c", (3, 4))
    r("a b -> a", (3, 4), (3, 4))
    r("a b -> a c", (3, 4))
    r("a b -> a a", (3, 4))
    r("a b", (3, 4))
    r("i i -> i", (3, 4))
    r("a b -> (a b)", (3, 4))
    r("(a b), a -> b", (6,), (2,))
    r("a 1 -> a", (3, 1))
    r("a () -> a", (3, 1))
    r("a 3 -> a", (2, 3))
    r("a _ -> a", (2, 3))
    r("... a, ... a -> a", (2, 3), (2, 3))
    r("a -> a ...", (2,))
    r("... a -> ... ...", (2, 3))
    r("a b -> c", (3, 4))


def pack_rows():
    def p(pattern, *shapes):
        row("pack", pattern, *shapes, is_list=True)

    def u(pattern, shape, packed_shapes):
        row("unpack", pattern, shape, option=packed_shapes)

    p("* c", (2, 3), (3,), (4, 5, 3))
    p("b * c", (2, 5, 3), (2, 3), (2, 4, 5, 3))
    p("b *", (2,), (2, 3), (2, 4, 5))
    p("*", (), (3,), (2, 2))
    p("* a b", (2, 3, 4))
    p("h w *", (3, 4), (3, 4), (3, 4))
    p("*", (2, 0), (3,))
    p("a*b", (2, 3))
    p("  a   * ", (2, 3), (2,))
    p("größe *", (2, 3), (2,))
    p("a * b", (2, 3, 4), (2, 4, 4))
    p("a * b", (2, 3, 4), (3, 3, 4))
    p("a * b", (2, 3, 4), (2, 3, 5))
    p("a * b", (2, 3, 4), (2,))
    p("a b", (2, 3))
    p("* a *", (2, 3))
    p("a a *", (2, 2, 3))
    p("(a b) *", (2, 3))
    p("a 1 *", (2, 1, 3))
    p("_ *", (2, 3))
    p("... *", (2, 3))
    p("a * -> b", (2, 3))
    p("*")
    u("* c", (24, 3), [(2,), (), (4, 5), (1,)])
    u("b * c", (2, 26, 3), [(5,), (), (4, 5)])
    u("b *", (2, 10), [(3,), (-1,)])
    u("b *", (2, 10), [(2, 2), (-1, 3), ()])
    u("*", (6,), [(-1,)])
    u("*", (6,), [(6,), (-1,)])
    u("*", (6,), [(0,), (6,), (2, 0)])
    u("h w *", (2, 3, 5), [(), (4,)])
    u("*", (0,), [])
    u("b *", (2, 10), [(3,), (6,)])
    u("b *", (2, 10), [(3,), (8,)])
    u("b *", (2, 10), [(-1,), (-1,)])
    u("b *", (2, 10), [(-1, -1)])
    u("b *", (2, 10), [(11,), (-1,)])
    u("b *", (2, 10), [(3,), (-1, 4)])
    u("b *", (2, 10), [(-2,), (12,)])
    u("b * c", (2, 10), [(10,)])
    u("b c", (2, 10), [(10,)])
    u("*", (6,), [])


def parse_shape_rows():
    def r(pattern, *shapes):
        row("parse_shape", pattern, *shapes)

    r("a b c", (2, 3, 4))
    r("batch _ h w", (2, 3, 4, 5))
    r("_ _", (2, 3))
    r("a ... b", (2, 3, 4, 5))
    r("... a", (5,))
    r("a 1", (2, 1))
    r("a 3", (2, 3))
    r("", ())
    r("größe _", (2, 3))
    r("a b", (2, 3, 4))
    r("a b c", (2, 3))
    r("a a", (2, 2))
    r("a 1", (2, 3))
    r("a 4", (2, 3))
    r("a (b c)", (2, 3))
    r("a -> b", (2,))
    r("a ... ...", (2, 3))
    r("a *", (2, 3))


rearrange_rows()
repeat_rows()
reduce_rows()
einsum_rows()
pack_rows()
parse_shape_rows()
