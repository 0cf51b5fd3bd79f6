"""The cases as data: what is computed, on which shapes, beside whom, and what is asked of the ratio."""

import dataclasses
import math

EINSUM_PEERS = ("torch", "numpy", "jax")
LIBRARIES = ("Eigen", "OpenBLAS", "oneDNN")
LONG_FAMILIES = ("dtypes",)  # so many cases that they are run where `--only` names them


@dataclasses.dataclass
class Case:
    family: str
    name: str
    op: str  # einsum, rearrange, repeat, reduce, windows, elements, small, fused, adamw, train, decode
    shapes: list
    peers: tuple
    pattern: str = ""
    sizes: dict = dataclasses.field(default_factory=dict)
    more: dict = dataclasses.field(default_factory=dict)  # what else the workers want to know
    # By operand, where it is not f32 of a normal distribution: integers ("below", n) or ("below", n, dtype), f32 that are
    # ("positive",), a float ("f64",) or ("f16",), or complex ("c64",) or ("c128",).
    data: dict = dataclasses.field(default_factory=dict)
    flops: float = 0  # of one call, for GFLOP/s
    bytes: float = 0  # read and written, for GB/s
    limits: tuple = ()  # libraries that stand beside it
    least: dict = dataclasses.field(default_factory=dict)  # what is asked of the ratio to each peer
    tolerance: float = 1e-4  # of the largest element

    def request(self):
        return {"op": self.op, "name": self.name, "pattern": self.pattern, "sizes": self.sizes} | self.more


def einsum(family, pattern, sizes, peers=EINSUM_PEERS, name="", **rest):
    """`sizes` by axis. FLOPs as of one pass over all axes for two operands; for more, none are stated."""
    inputs, output = pattern.split("->")
    shapes = [[sizes[axis] for axis in side.split()] for side in inputs.split(",")]
    flops = 2 * math.prod(sizes.values()) if len(shapes) == 2 else 0
    numbers = sum(math.prod(sizes[axis] for axis in set(side.split())) for side in [*inputs.split(","), output])
    title = name or f"{pattern.strip()}  {' '.join(str(size) for size in sizes.values())}"
    least = {"torch": 0.9} | rest.pop("least", {})
    if not output.split():  # numbers of either sign, all added up, would nearly cancel
        rest |= {"tolerance": 1e-3, "data": {i: ("positive",) for i in range(len(shapes))}}
    return Case(family, title, "einsum", shapes, peers, pattern, flops=flops, bytes=4 * numbers, least=least, **rest)


# From springer13/tccg: C-A-B with the leading axis first, as Fortran has them, and the sizes.
TCCG = """
abcde-efbad-cf    a48 b36 c24 d36 e48 f36
abcde-efcad-bf    a48 b24 c36 d36 e48 f36
abcd-dbea-ec      a96 b84 c24 d96 e96
abcde-ecbfa-fd    a48 b36 c36 d24 e48 f48
abcd-deca-be      a96 b24 c84 d96 e84
abc-bda-dc        a384 b384 c24 d384
abcd-ebad-ce      a96 b84 c24 d84 e96
abcdef-dega-gfbc  a24 b20 c20 d24 e20 f20 g24
abcdef-dfgb-geac  a24 b20 c20 d24 e20 f20 g24
abcdef-degb-gfac  a24 b20 c20 d24 e20 f20 g24
abcdef-degc-gfab  a24 b20 c20 d24 e20 f20 g24
abc-dca-bd        a384 b24 c376 d384
abcd-ea-ebcd      a96 b84 c84 d84 e96
abcd-eb-aecd      a96 b84 c84 d84 e96
abcd-ec-abed      a96 b84 c84 d84 e96
abc-adec-ebd      a96 b84 c84 d84 e96
ab-cad-dcb        a384 b376 c384 d384
ab-acd-dbc        a384 b376 c376 d384
abc-acd-db        a384 b376 c376 d384
abc-adc-bd        a384 b384 c376 d376
ab-ac-cb          a7248 b7240 c7248
abcd-aebf-fdec    a96 b84 c84 d84 e84 f96
abcd-eafd-fbec    a96 b84 c84 d84 e96 f96
abcd-aebf-dfce    a96 b84 c84 d96 e84 f84
""".split("\n")[1:-1]


def tccg(limit):
    """Sizes as given where the FLOPs are below `limit`, else all divided by one number, to multiples of 4."""
    cases = []
    for line in TCCG:
        spec, *given = line.split()
        sizes = {word[0]: int(word[1:]) for word in given}
        factor = (2 * math.prod(sizes.values()) / limit) ** (1 / len(sizes))
        if factor > 1:
            sizes = {axis: max(4, round(size / factor / 4) * 4) for axis, size in sizes.items()}
        c, a, b = (" ".join(reversed(part)) for part in spec.split("-"))
        case = einsum("TCCG", f"{a}, {b} -> {c}", sizes, name=spec + (f"  / {factor:.2f}" if factor > 1 else ""), least={"torch": 1.0})
        m, n, k = (math.prod(sizes[axis] for axis in sizes if (axis in a, axis in b, axis in c) == where)
                   for where in ((True, False, True), (False, True, True), (True, True, False)))
        case.more["gemm"] = {"m": m, "n": n, "k": k, "own_data": True}
        cases.append(case)
    # The compute-bound third: the most FLOPs for each byte.
    for case in sorted(cases, key=lambda case: case.flops / case.bytes)[-len(cases) // 3:]:
        case.limits = LIBRARIES
    return cases


def complex_numbers(limit):
    """Products and contractions of c64 and c128; NumPy's are OpenBLAS's cgemm and zgemm."""
    cases = []

    def add(dtype, case):
        case.data = {i: (dtype,) for i in range(len(case.shapes))}
        case.name = f"{dtype}  {case.name}"
        case.flops *= 4
        case.bytes *= 2 if dtype == "c64" else 4
        case.tolerance = 1e-4 if dtype == "c64" else 1e-10
        cases.append(case)

    for dtype in ("c64", "c128"):
        for size in (64, 128, 256, 512, 1024):
            for pattern in ("i k, k j -> i j", "i k, j k -> i j") if size >= 256 else ("i k, k j -> i j",):
                least = {"numpy": 0.9} if size >= 512 else {}
                add(dtype, einsum("complex", pattern, {"i": size, "j": size, "k": size}, ("torch", "numpy"), least=least))
        for rows in (1, 4, 16):
            add(dtype, einsum("complex", "i k, k j -> i j", {"i": rows, "j": 1024, "k": 1024}, ("torch", "numpy")))
    for case in tccg(limit / 4):
        case.family, case.peers, case.limits, case.more = "complex, TCCG", ("torch", "numpy"), (), {}
        add("c128", case)
    return cases


def gemm(quick):
    cases = []

    def add(pattern, sizes, ta=False, tb=False, batch=1, family="GEMM", name=""):
        m, n, k = sizes["i"], sizes["j"], sizes["k"]
        limits = LIBRARIES if min(m, n, k) >= 512 or family != "GEMM" else ()
        case = einsum(family, pattern, sizes, limits=limits, name=name,
                      more={"gemm": {"m": m, "n": n, "k": k, "ta": ta, "tb": tb, "batch": batch}})
        if min(m, n, k) >= 512:
            case.least["library"] = 0.95
        cases.append(case)

    for size in (64, 128, 256, 512, 1024, 2048, 4096)[:5 if quick else None]:
        for ta, tb in ((False, False), (True, False), (False, True), (True, True)):
            pattern = f"{'k i' if ta else 'i k'}, {'j k' if tb else 'k j'} -> i j"
            add(pattern, {"i": size, "j": size, "k": size}, ta, tb, name=f"{pattern}  {size}")
    for i, j, k in ((16384, 64, 64), (65536, 32, 128), (64, 16384, 64), (64, 64, 65536), (2048, 2048, 32), (768, 3072, 768)):
        add("i k, k j -> i j", {"i": i, "j": j, "k": k}, family="GEMM, tall and wide")
    for b, i, j, k in ((4096, 16, 16, 16), (1024, 32, 32, 32), (256, 64, 64, 64), (64, 128, 128, 128), (16, 512, 512, 64)):
        add("b i k, b k j -> b i j", {"b": b, "i": i, "j": j, "k": k}, batch=b, family="GEMM, batched")
    for size in (3, 4):
        for batch in (4096, 1 << 18):
            sizes = {"b": batch, "i": size, "j": size, "k": size}
            cases.append(einsum("GEMM, batched", "b i k, b k j -> b i j", sizes, limits=("Eigen, fixed size",),
                                least={"Eigen, fixed size": 1.0}))
            cases.append(einsum("GEMM, batched", "b k i, b k j -> b i j", sizes))
    return cases


def few_rows():
    """Products of few rows with weights in either order."""
    cases = []
    for dtype, size in (("f32", 4), ("f64", 8), ("bf16", 2)):
        for order in ("m k, n k -> m n", "m k, k n -> m n"):
            for rows in (1, 2, 3, 4, 8, 16):
                data = {i: ("f64",) for i in range(2)} if dtype == "f64" else {}
                case = einsum("few rows", order, {"m": rows, "n": 4096, "k": 4096}, ("torch",), f"{dtype}  {order}  {rows}",
                              data=data, limits=("processor",), least={"torch": 1.0, "processor": 0.85})
                case.more |= {"dtype": dtype, "flops": case.flops}
                case.bytes *= size / 4
                if dtype == "bf16":  # the result is in it, too
                    case.tolerance = 1e-2
                cases.append(case)
    return cases


def attention():
    cases = []
    for b, h, s, d in ((8, 12, 256, 64), (2, 8, 1024, 64), (12, 4, 64, 32)):
        sizes = {"b": b, "q": s, "h": h, "d": d, "k": s}
        for pattern in ("b q h d, b k h d -> b h q k", "b h q k, b k h d -> b q h d",
                        "b h q d, b h k d -> b h q k", "b h q k, b h k d -> b h q d"):
            cases.append(einsum("attention", pattern, sizes))
    sizes = {"b": 2, "q": 512, "g": 4, "r": 4, "d": 64, "k": 512}
    for pattern in ("b q g r d, b k g d -> b g r q k", "b g r q k, b k g d -> b q g r d"):
        cases.append(einsum("attention", pattern, sizes))
    return cases


def other_products():
    add = lambda pattern, **sizes: einsum("other contractions", pattern, sizes)
    return [
        add("i p x, i q x -> p q", i=64, p=512, x=64, q=512),
        add("i p x, i q x -> p q", i=128, p=64, x=128, q=64),
        add("a b e d, c e -> a b c d", a=32, b=32, e=64, d=32, c=64),
        add("a b c d, b d j -> a c j", a=32, b=32, c=32, d=32, j=1024),
        add("b n d, d h e -> b h n e", b=16, n=256, d=512, h=8, e=64),
        add("b c h w, c o -> b o h w", b=8, c=64, h=56, w=56, o=64),
        add("i, j -> i j", i=4096, j=4096),
        add("b i, b j -> b i j", b=64, i=256, j=256),
        add("i, i ->", i=1 << 22),
        add("b i, b i -> b", b=65536, i=64),
        add("i k, k -> i", i=4096, k=4096),
        add("k, k j -> j", k=4096, j=4096),
        add("b i k, b k -> b i", b=64, i=256, k=256),
        add("i j, i j -> i j", i=2048, j=2048),
        add("b i i -> b i", b=256, i=256),
        add("i i -> i", i=4096),
        add("b i i -> b", b=256, i=256),
        add("i i ->", i=4096),
        add("i j, j i ->", i=2048, j=2048),
    ]


def chains():
    """Networks of the shapes of opt_einsum's benchmarks and examples: products of matrices of uneven sizes, the
    transformation of four indices, and rings and ladders of tensors."""
    peers = EINSUM_PEERS + ("opt_einsum",)
    add = lambda pattern, **sizes: einsum("chains", pattern, sizes, peers, tolerance=1e-3)
    return [
        add("a b, b c, c d -> a d", a=512, b=32, c=512, d=64),
        add("i j, j k, k l, l m -> i m", i=256, j=512, k=64, l=512, m=16),
        add("e a, f b, a b c d, g c, h d -> e f g h", e=24, a=24, f=24, b=24, c=24, d=24, g=24, h=24),
        add("b d i k, a c a j, i k a b, a j a c, a b d k -> d", a=12, b=13, c=14, d=15, i=16, j=17, k=18),
        add("a b, b c, c d, d e, e f, f a ->", a=96, b=128, c=96, d=128, e=96, f=128),
        add("a b x, b c y, c d z, x y z -> a d", a=48, b=48, x=16, c=48, y=16, d=48, z=16),
        add("a i j, i k b, j l c, k l d -> a b c d", a=12, i=16, j=16, k=16, b=12, l=16, c=12, d=12),
        add("a b, a c, c d, b e, d f, e f, f g -> g", a=64, b=64, c=64, d=64, e=64, f=64, g=64),
        add("a b c, a d, b e, c f, d g, e h, f i, g h i ->", a=24, b=24, c=24, d=24, e=24, f=24, g=24, h=24, i=24),
        add("b i, b j, b k, i j k o -> b o", b=256, i=16, j=16, k=16, o=32),
    ]


def permutations():
    cases = []

    def add(pattern, shape, inner_stays, op="rearrange", family="rearrangements", limits=("memcpy",), **sizes):
        least = {"torch": 1.0} | ({"memcpy": 0.8 if inner_stays else 0.6} if op == "rearrange" else {})
        title = f"{pattern}  {' '.join(map(str, shape))}"
        cases.append(Case(family, title, op, [list(shape)], ("torch", "numpy", "jax", "einops"), pattern, sizes,
                          bytes=8 * math.prod(shape), limits=limits, least=least, tolerance=0))

    for rows, columns in ((512, 512), (2048, 2048), (4096, 4096), (4095, 2049), (1 << 20, 7), (64, 65536)):
        add("i j -> j i", (rows, columns), False)
    add("b i j -> b j i", (256, 128, 96), False)
    add("b c h w -> b h w c", (16, 64, 56, 56), False)
    add("b h w c -> b c h w", (16, 56, 56, 64), False)
    add("b c h w -> b h w c", (32, 3, 224, 224), False)
    add("b s (h d) -> b h s d", (16, 512, 768), True, h=12)
    add("b h s d -> b s (h d)", (16, 12, 512, 64), True)
    add("b s (t h d) -> t b h s d", (8, 512, 2304), True, t=3, h=12)
    add("b (h p) (w q) c -> b h w (p q c)", (16, 128, 128, 32), True, p=2, q=2)
    add("b h w (p q c) -> b (h p) (w q) c", (16, 64, 64, 128), True, p=2, q=2)
    add("b c (h p) (w q) -> b (c p q) h w", (16, 16, 128, 128), False, p=2, q=2)
    add("a b c d e f -> f e d c b a", (16, 12, 14, 10, 18, 16), False)
    add("a b c d e f -> c a e b d f", (16, 12, 14, 10, 8, 32), True)
    add("a b c d e f -> d b f a c e", (16, 12, 14, 10, 18, 16), False)
    for pattern, shape, sizes in (("h w -> h w c", (1024, 1024), {"c": 4}), ("h w -> (h k) (w l)", (1024, 1024), {"k": 2, "l": 2}),
                                  ("b c -> b s c", (64, 768), {"s": 128}), ("b s g d -> b s (g r) d", (8, 512, 4, 64), {"r": 4})):
        add(pattern, shape, False, "repeat", "repeats", (), **sizes)
        cases[-1].bytes = 4 * math.prod(shape) * (1 + math.prod(sizes.values()))
    return cases


def small_permutations():
    """Matrices and images that the caches of levels 1 and 2 hold, of elements of each size."""
    cases = []
    for dtype, size in (("i8", 1), ("bf16", 2), ("f32", 4), ("f64", 8)):
        for pattern, shape in (*(("i j -> j i", (side, side)) for side in (64, 128, 256, 512)), ("i j -> j i", (100, 60)),
                               ("i j -> j i", (65, 127)), ("i j -> j i", (1000, 33)), ("i j -> j i", (33, 1000)),
                               ("b i j -> b j i", (16, 50, 70)), ("b i j -> b j i", (32, 32, 32)), ("h w c -> c h w", (64, 64, 3)),
                               ("b s h d -> b h s d", (2, 32, 4, 64))):
            more = {"dtype": dtype} if dtype == "bf16" else {}
            data = {"i8": {0: ("below", 127, "i8")}, "f64": {0: ("f64",)}}.get(dtype, {})
            least = {"torch": 1.0, "memcpy": 0.8 if pattern.startswith("b s h d") else 0.6}
            cases.append(Case("small rearrangements", f"{dtype}  {pattern}  {' '.join(map(str, shape))}", "rearrange", [list(shape)],
                              ("torch",), pattern, more=more, data=data, bytes=2 * size * math.prod(shape), limits=("memcpy",),
                              least=least, tolerance=0))
    return cases


def reductions():
    cases = []
    for reduction, pattern, shape in (
            *(("sum", f"a b c -> {kept}", (256, 128, 512)) for kept in ("b c", "a c", "a b", "c", "b", "")),
            ("mean", "b c h w -> b c", (32, 256, 28, 28)), ("mean", "b h w c -> b c", (32, 28, 28, 256)),
            ("max", "a b -> a", (4096, 4096)), ("max", "a b -> b", (4096, 4096)),
            ("max", "b c (h 2) (w 2) -> b c h w", (32, 64, 56, 56)), ("max", "b (h 2) (w 2) c -> b h w c", (32, 56, 56, 64)),
            ("sum", "a b -> a", (1 << 20, 8)), ("sum", "a b -> b", (1 << 20, 8)),
            *(("sum", pattern, (rows, length)) for pattern in ("a b -> a", "a b -> b")
              for rows, length in ((100000, 3), (1 << 16, 16), (1 << 15, 32), (1 << 14, 64), (8, 16384), (3, 100000)))):
        title = f"{reduction}  {pattern}  {' '.join(map(str, shape))}"
        cases.append(Case("reductions", title, "reduce", [list(shape)], ("torch", "numpy", "jax", "einops"), pattern,
                          more={"reduction": reduction}, bytes=4 * math.prod(shape), least={"torch": 1.0}))
    return cases


def reductions_of_eight_bytes():
    """Of i64 and f64."""
    cases = []
    for dtype, data in (("i64", ("below", 100)), ("f64", ("f64",))):
        for reduction, pattern, shape in (
                *((reduction, pattern, shape) for shape in ((2000, 2000), (8, 500000), (500000, 8), (1000, 100), (64, 64))
                  for reduction, pattern in (("sum", "a b -> a"), ("max", "a b -> b"), ("sum", "a b ->"))),
                *(("sum", f"a b c d -> {kept}", (40, 30, 20, 50)) for kept in ("a c", "b d", "c", "a b d")),
                ("max", "b c (h 2) (w 2) -> b c h w", (16, 32, 64, 64)), ("sum", "b c (h 8) (w 8) -> b c h w", (16, 32, 64, 64))):
            title = f"{dtype} {reduction}  {pattern}  {' '.join(map(str, shape))}"
            cases.append(Case("reductions of 8 bytes", title, "reduce", [list(shape)], ("torch", "numpy"), pattern,
                              more={"reduction": reduction}, data={0: data}, bytes=8 * math.prod(shape)))
    return cases


BYTES = {"f64": 8, "f32": 4, "bf16": 2, "f16": 2, "i64": 8, "i32": 4, "i8": 1, "u8": 1, "bool": 1}
FLOATS = ("f64", "f32", "bf16", "f16")


def dtypes():
    """What people reach for in each dtype, in the first-level caches, in those behind, and in memory."""
    cases = []
    shapes = ((64, 64), (512, 512), (2048, 4096))

    def add(dtype, title, pattern, shape, more, operands=1, mask=False, result=None):
        is_float = dtype in FLOATS
        kind = {"f64": ("f64",), "f16": ("f16",), "bf16": ("positive",), "f32": ("normal",)}.get(dtype) or ("below", 2 if dtype == "bool" else 100, dtype)
        if is_float and title.startswith("sum"):
            kind = {"bf16": ("positive",), "f32": ("positive",)}.get(dtype, kind)
        data = {i: kind for i in range(operands)} | ({operands: ("below", 2, "bool")} if mask else {})
        more = more | ({"dtype": "bf16"} if dtype == "bf16" else {})
        numbers = math.prod(shape)
        bytes_ = numbers * (operands * BYTES[dtype] + mask + (BYTES[result] if result else 0))
        peers = ("torch",) if "bf16" in (dtype, result) else ("torch", "numpy")
        tolerance = {"bf16": 1e-2, "f16": 1e-2}.get(dtype, 1e-4) if is_float else 1e-2 if result in ("bf16", "f16") else 1e-6
        text = f"{dtype} {title}  {' '.join(map(str, shape))}"
        cases.append(Case("dtypes", text, more.pop("op", "elements"), [list(shape)] * (operands + mask), peers, pattern, more=more,
                          data=data, bytes=bytes_, least={"torch": 0.9}, tolerance=tolerance))

    for dtype in BYTES:
        for shape in shapes:
            binary = ("logical_and",) if dtype == "bool" else ("add", "mul", "maximum")
            for name in binary:
                add(dtype, name, "", shape, {"name": name}, 2, result=dtype)
            add(dtype, "less", "", shape, {"name": "less"}, 2, result="bool")
            add(dtype, "where", "", shape, {"name": "where"}, 2, True, result=dtype)
            others = {"f32": ("f64", "bf16", "f16", "i32", "u8", "bool"), "i64": ("f32", "i32", "f64"), "i32": ("f32", "i64", "i8"),
                      "bf16": ("f32",), "f16": ("f32", "bf16"), "f64": ("f32", "i64"), "bool": ("f32", "i64")}.get(dtype, ("f32", "i32", "bool"))
            for to in others:
                add(dtype, f"to {to}", "", shape, {"name": "to", "to": to}, result=to)
            for reduction in ("any", "all", "sum") if dtype == "bool" else ("sum", "max", "mean"):
                for pattern in ("a b -> a", "a b -> b", "a b ->"):
                    add(dtype, f"{reduction} {pattern}", pattern, shape, {"op": "reduce", "reduction": reduction})
            add(dtype, "turned", "a b -> b a", shape, {"op": "rearrange"}, result=dtype)
            if dtype != "bool":
                add(dtype, "argmax", "a [b]", shape, {"name": "argmax"})
            add(dtype, "cumsum", "a [b]", shape, {"name": "cumsum"}, result=dtype if dtype in FLOATS else "i64")
    return cases


def pairs(quick):
    """A function of all pairs of rows, reduced: what einsum does for products."""
    cases = []
    peers = ("torch", "torch.compile", "ein eager")

    def add(name, title, operands, result, points, backward=(False,), **rest):
        for b in backward:
            shapes = operands + ([result] if b else [])
            cases.append(Case("pairs", title + (", backward" if b else ""), "fused", shapes, peers, "",
                              more={"name": name, "backward": b, "dtype": "f32"}, flops=2 * points,
                              least={"torch": 3.0}, **rest))

    n, d = (1000, 64) if quick else (2000, 64)
    add("distances", f"squared distances {n} {n} {d}", [[n, d], [n, d]], [n, n], n * n * d, (False, True))
    n = 512 if quick else 1024
    add("max_plus", f"max-plus {n} {n} {n}", [[n, n], [n, n]], [n, n], n ** 3)
    add("logsumexp_plus", f"logsumexp-plus {n} {n} {n}", [[n, n], [n, n]], [n, n], n ** 3)
    n = 2000 if quick else 5000
    add("kernel_sums", f"Gaussian kernel sums {n} {n} 3", [[n, 3], [n, 3], [n]], [n], n * n * 3, (False, True), tolerance=1e-3)
    return cases


def fused(dtype="f32"):
    """Forward, and forward and backward."""
    cases = []
    family = "fused chains" if dtype == "f32" else f"fused chains of {dtype}"
    peers = ("torch", "torch.compile", "jax", "ein eager") if dtype == "f32" else ("torch", "torch.compile")
    least = {"torch": 1.5, "torch.compile": 1.0}
    size = {"f64": 8, "f32": 4, "bf16": 2}[dtype]
    rest = {"least": least}
    if dtype == "bf16":  # PyTorch adds up the gradients of weights in it: of 4096 rows they are off by 0.12
        rest |= {"tolerance": 0.2}

    def data(operands):
        return {i: ("f64",) for i in range(operands)} if dtype == "f64" else {}

    def add(name, title, pattern, operands, results, flow=None):
        for backward in (False, True):
            # bytes as if every operand were read once and every result written once
            shapes = operands + (results if backward else [])
            numbers = sum(map(math.prod, operands + results)) + (sum(map(math.prod, results + operands)) if backward else 0)
            cases.append(Case(family, f"{title}{', backward' if backward else ''}", "fused", shapes, peers, pattern,
                              more={"name": name, "backward": backward, "dtype": dtype}, data=data(len(shapes)),
                              bytes=size * numbers, **rest))

    for shape, pattern in (([8, 12, 256, 256], "b h q [k]"), ([4096, 1024], "b [v]"), ([64, 32000], "b [v]")):
        add("softmax", f"softmax {' '.join(map(str, shape))}", pattern, [shape], [shape])
    for x in ([8, 512, 768], [768, 128]):
        c = [x[-1]]
        text = " ".join(map(str, x))
        pattern = "b s [c]" if len(x) == 3 else "t [c]"
        add("layer_norm", f"layer norm {text}", pattern, [x, c, c], [x])
        add("residual_norm", f"residual + layer norm {text}", pattern, [x, x, c, c], [x, x])
    add("rms_norm", "RMS norm 8 512 768", "b s [c]", [[8, 512, 768], [768]], [[8, 512, 768]])
    for x in ([8, 512, 3072], [768, 512]):
        text = " ".join(map(str, x))
        add("gelu", f"GELU {text}", "", [x], [x])
        add("bias_gelu", f"bias + GELU {text}", "", [x, [x[-1]]], [x])
    for rows, words in ((768, 65), (2048, 8192)):
        case = Case(family, f"cross-entropy {rows} {words}, backward", "fused", [[rows, words], [rows]], peers, "b [v], b",
                    more={"name": "cross_entropy", "backward": True, "dtype": dtype}, data=data(1) | {1: ("below", words)},
                    bytes=2 * size * rows * words, **rest)
        cases.append(dataclasses.replace(case, name=f"cross-entropy {rows} {words}", more=case.more | {"backward": False},
                                         bytes=size * rows * words))
        cases.append(case)
    # The attention of nn::Attention: causal, no matrix of scores in memory.
    for x in ([8, 12, 1024, 64], [8, 12, 256, 64], [1, 8, 4096, 64]) if dtype == "f32" else ():
        add("attention", f"causal attention {' '.join(map(str, x))}", "", [x] * 3, [x])
    width = 384
    layers = ((width, 3 * width), (width, width), (width, 4 * width), (4 * width, width))
    shapes = [shape for inner, outer in layers for shape in ([inner, outer], [outer])] * 2
    cases.append(Case(family, "AdamW, 16 tensors of 3.5 M", "adamw", shapes * 2, peers + ("torch fused",),
                      more={"dtype": dtype}, data=data(2 * len(shapes)), bytes=7 * size * sum(map(math.prod, shapes)), **rest))
    return cases


def small():
    cases = []
    for size in (2, 4, 8, 16):
        for name in ("einsum, literal", "einsum, run-time pattern"):
            least = {"torch": 20, "einops": 20} if size == 4 else {}
            cases.append(Case("call overhead", f"{name}  {size}", "small", [[size, size]] * 2,
                              EINSUM_PEERS + ("opt_einsum", "einops"), "i k, k j -> i j", more={"name": name}, least=least))
    cases.append(Case("call overhead", "rearrange a b c -> c b a  2 3 4 (a view)", "small", [[2, 3, 4]], ("torch", "numpy", "einops"),
                      "a b c -> c b a", more={"name": "rearrange (a view)"}))
    cases.append(Case("call overhead", "reduce a b c -> b  2 3 4", "small", [[2, 3, 4]], ("torch", "numpy", "jax", "einops"),
                      "a b c -> b", more={"name": "reduce"}))
    cases.append(Case("call overhead", "x + y  2 3 4", "small", [[2, 3, 4]] * 2, ("torch", "numpy", "jax"), more={"name": "add"}))
    return cases


MODEL = {"vocabulary": 65, "n_layer": 4, "n_head": 4, "n_embd": 128}  # of `ein train`


def training():
    cases = []
    for dtype in ("f32", "bf16"):
        more = MODEL | {"block_size": 64, "dtype": dtype}
        cases.append(Case("training step", f"Transformer 4 x 128, batch 12 x 64, {dtype}", "train", [[12, 64]] * 2,
                          ("torch", "torch.compile"), more=more, data={0: ("below", 65), 1: ("below", 65)},
                          least={"torch": 2.0, "torch.compile": 1.2}, tolerance=1e-4 if dtype == "f32" else 1e-2))
    return cases


def decoding():
    """Token by token, with a cache that grows."""
    return [Case("decoding", "Transformer 4 x 128, 256 tokens", "decode", [[256]], ("torch", "ein eager"),
                 more=MODEL | {"block_size": 256}, data={0: ("below", 65)})]


# The convolutions of ResNet-50: side, channels in and out, window, step, margin.
RESNET50 = [
    (224, 3, 64, 7, 2, 3),
    (56, 64, 64, 1, 1, 0), (56, 64, 64, 3, 1, 1), (56, 64, 256, 1, 1, 0), (56, 256, 64, 1, 1, 0),
    (56, 256, 128, 1, 1, 0), (56, 128, 128, 3, 2, 1), (56, 256, 512, 1, 2, 0),
    (28, 128, 512, 1, 1, 0), (28, 512, 128, 1, 1, 0), (28, 128, 128, 3, 1, 1),
    (28, 512, 256, 1, 1, 0), (28, 256, 256, 3, 2, 1), (28, 512, 1024, 1, 2, 0),
    (14, 256, 1024, 1, 1, 0), (14, 1024, 256, 1, 1, 0), (14, 256, 256, 3, 1, 1),
    (14, 1024, 512, 1, 1, 0), (14, 512, 512, 3, 2, 1), (14, 1024, 2048, 1, 2, 0),
    (7, 512, 2048, 1, 1, 0), (7, 2048, 512, 1, 1, 0), (7, 512, 512, 3, 1, 1),
]


def window(axis, step=1, margin=0):
    """What a pattern reads along an axis of an image: "{2*y + ky - 1}"."""
    return "{" + f"{step}*" * (step > 1) + f"{axis} + k{axis}" + f" - {margin}" * (margin > 0) + "}"


def with_backward(case, result):
    """The case, and with the gradients of its operands, whose cotangent has the shape of the result."""
    both = dataclasses.replace(case, family=case.family + ", backward", shapes=case.shapes + [result], flops=3 * case.flops,
                               bytes=2 * case.bytes, more=case.more | {"backward": True}, peers=("torch",), limits=(),
                               tolerance=10 * case.tolerance)
    return [case, both]


def convolutions(quick):
    """Those of ResNet-50 on one image, with channels last as ein's users may write them, and first as PyTorch's do."""
    cases = []
    for layout in ("nhwc", "nchw"):
        for side, inner, outer, size, step, margin in RESNET50[::4] if quick else RESNET50:
            y, x = window("y", step, margin), window("x", step, margin)
            after = (side + 2 * margin - size) // step + 1
            if layout == "nhwc":
                pattern = f"b {y} {x} c, ky kx c o -> b y x o"
                shapes, result = [[1, side, side, inner], [size, size, inner, outer]], [1, after, after, outer]
            else:
                pattern = f"b c {y} {x}, o c ky kx -> b o y x"
                shapes, result = [[1, inner, side, side], [outer, inner, size, size]], [1, outer, after, after]
            case = Case("convolutions", f"{layout} {size}x{size}/{step} {side} {inner}->{outer}", "windows", shapes,
                        ("torch", "torch packed"), pattern, flops=2 * math.prod(result) * inner * size * size,
                        bytes=4 * sum(map(math.prod, [*shapes, result])), least={"torch": 1.0},
                        more={"call": "einsum", "as": layout, "step": step, "margin": margin})
            cases += with_backward(case, result)
    return cases


def windows(quick):
    """Convolutions of single channels, pools and stencils, which have little to compute for each element."""
    cases = []

    def add(family, title, pattern, shapes, result, call="einsum", sizes={}, **more):
        numbers = sum(map(math.prod, [*shapes, result]))
        case = Case(family, title, "windows", shapes, ("torch",), pattern, sizes, {"call": call} | more, bytes=4 * numbers,
                    limits=("memcpy",), least={"torch": 1.0})
        cases.extend([case] if family == "stencils" else with_backward(case, result))

    for side, channels in ((112, 64), (28, 256)):
        y, x = window("y", margin=1), window("x", margin=1)
        image, planes = [1, side, side, channels], [1, channels, side, side]
        add("windows", f"depthwise 3x3 nhwc {side} {channels}", f"b {y} {x} c, ky kx c -> b y x c", [image, [3, 3, channels]], image,
            **{"as": "depthwise nhwc", "margin": 1})
        add("windows", f"depthwise 3x3 nchw {side} {channels}", f"b c {y} {x}, c ky kx -> b c y x", [planes, [channels, 3, 3]], planes,
            **{"as": "depthwise nchw", "margin": 1})
    add("windows", "causal depthwise 8 1024 256", "b {t + k - 3} c, k c -> b t c", [[8, 1024, 256], [4, 256]], [8, 1024, 256],
        sizes={"t": 1024}, **{"as": "causal btc"})
    add("windows", "causal depthwise 8 256 1024", "b c {t + k - 3}, c k -> b c t", [[8, 256, 1024], [256, 4]], [8, 256, 1024],
        sizes={"t": 1024}, **{"as": "causal bct"})
    y, x = window("y", 2, 1), window("x", 2, 1)
    for reduction in ("max", "mean"):
        for layout, pattern, shape, result in (("nhwc", f"b {y} {x} c -> b y x c", [4, 112, 112, 64], [4, 56, 56, 64]),
                                               ("nchw", f"b c {y} {x} -> b c y x", [4, 64, 112, 112], [4, 64, 56, 56])):
            add("windows", f"{reduction} pool 3x3/2 {layout} 4 112 64", pattern, [shape], result, "reduce", {"ky": 3, "kx": 3},
                **{"as": f"{reduction} {layout}", "reduction": reduction})
    for side in (512, 2048):
        add("stencils", f"3x3 {side} {side}", f"{window('y', margin=1)} {window('x', margin=1)}, ky kx -> y x", [[side, side], [3, 3]],
            [side, side], **{"as": "stencil", "margin": 1})
    add("stencils", f"5 of {1 << 22}", "{x + k - 2}, k -> x", [[1 << 22], [5]], [1 << 22], **{"as": "line", "margin": 2})
    return cases


def all_cases(quick=False, flops=1e11):
    contractions = other_products() + few_rows() + attention() + chains() + gemm(quick) + tccg(flops)
    of_windows = convolutions(quick) + windows(quick)
    chains_of_maps = fused() + fused("f64") + fused("bf16") + pairs(quick)
    numbers = dtypes() + complex_numbers(flops)
    return small() + permutations() + small_permutations() + reductions() + reductions_of_eight_bytes() + numbers + contractions + of_windows + chains_of_maps + training() + decoding()
