"""Compares ein's counts with those of PyTorch's FlopCounterMode.

    pip install torch
    python tests/peers/flop_counter.py build/tools/ein

Runs on PyTorch's meta device: shapes only, no arithmetic. Prints a line per case and exits with 1 if one is not
what docs/cost.md says.
"""

import json
import subprocess
import sys

import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode


def ein_counts(ein, operation, pattern, shapes, *more):
    words = [ein, "cost", operation, pattern, "--json", *more]
    for shape in shapes:
        words += ["--shape", ",".join(map(str, shape))]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def torch_flops(function, shapes):
    operands = [torch.empty(shape, device="meta") for shape in shapes]
    with FlopCounterMode(display=False) as counter:
        function(*operands)
    return counter.get_total_flops()


def einsum(equation):
    return lambda *operands: torch.einsum(equation, *operands)


def causal_attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def softmax_attention(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2), -1) @ v


Q, K = (2, 3, 128, 64), (2, 3, 100, 64)
SCORES, WEIGHTS = ("b h q d, b h k d -> b h q k", [Q, K]), ("b h q k, b h k d -> b h q d", [(2, 3, 128, 100), K])
SQUARE_SCORES = ("b h q d, b h k d -> b h q k", [Q, Q])
SQUARE_WEIGHTS = ("b h q k, b h k d -> b h q d", [(2, 3, 128, 128), Q])

# name; PyTorch's function and shapes; ein's calls, whose matmul_only counts are added; whether both agree.
CASES = [
    ("mm", einsum("bd,dk->bk"), [(1024, 256), (256, 64)], [("b d, d k -> b k", None)], True),
    ("bmm", einsum("bqd,bkd->bqk"), [(8, 128, 64), (8, 100, 64)], [("b q d, b k d -> b q k", None)], True),
    ("linear with bias", F.linear, [(1024, 256), (64, 256), (64,)],
     [("b d, k d -> b k", [(1024, 256), (64, 256)])], True),
    ("leading axes", einsum("abd,dk->abk"), [(4, 8, 32), (32, 2)], [("a b d, d k -> a b k", None)], True),
    ("attention", softmax_attention, [Q, K, K], [SCORES, WEIGHTS], True),
    ("fused attention", F.scaled_dot_product_attention, [Q, K, K], [SCORES, WEIGHTS], True),
    ("the same, causal", causal_attention, [Q, Q, Q], [SQUARE_SCORES, SQUARE_WEIGHTS], True),
    ("outer product", einsum("i,j->ij"), [(30,), (40,)], [("i, j -> i j", None)], True),
    ("product by element", einsum("ij,ij->ij"), [(30, 40), (30, 40)], [("i j, i j -> i j", None)], True),
    ("matrix and vector", torch.mv, [(30, 40), (40,)], [("i j, j -> i", None)], False),
    ("dot product", torch.dot, [(40,), (40,)], [("i, i ->", None)], False),
]


def main(ein):
    failures = 0
    print(f"PyTorch {torch.__version__}")
    for name, function, shapes, calls, agree in CASES:
        theirs = torch_flops(function, shapes)
        ours = sum(ein_counts(ein, "einsum", pattern, own or shapes)["flops.matmul_only"] for pattern, own in calls)
        as_documented = (theirs == ours) == agree
        failures += not as_documented
        print(f"{name:20} PyTorch {theirs:>12,}  ein {ours:>12,}  "
              + ("same" if theirs == ours else "differ") + ("" if as_documented else ", NOT as documented"))
    # Three operands: PyTorch multiplies from the left (unless opt_einsum is installed), ein in the cheapest order.
    chain = [(9, 100), (100, 100), (100, 2)]
    ours = ein_counts(ein, "einsum", "i j, j k, k l -> i l", chain)
    print(f"{'chain of three':20} PyTorch {torch_flops(einsum('ij,jk,kl->il'), chain):>12,}  "
          f"ein {ours['ordered.flops.matmul_only']:>12,}  in the cheapest order")
    # What PyTorch does not count at all.
    ours = ein_counts(ein, "reduce", "b c -> b", [(64, 1000)], "--by", "logsumexp")
    theirs = torch_flops(lambda x: torch.logsumexp(x, 1), [(64, 1000)])
    failures += theirs != 0 or ours["flops.matmul_only"] != 0
    print(f"{'logsumexp':20} PyTorch {theirs:>12,}  ein {ours['flops.matmul_only']:>12,}  (model {ours['flops.model']:,})")
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: flop_counter.py path/to/ein")
    sys.exit(main(sys.argv[1]))
