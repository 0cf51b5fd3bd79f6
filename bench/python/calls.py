"""What a call from Python takes, beside others, in one run and by turns: nanoseconds, the least of some rounds.

usage: scripts/python-module bench
"""

import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import einops
import numpy as np
import opt_einsum

import ein
from ein import einops as drop_in

try:
    import torch
except ImportError:
    torch = None

ROUNDS, CALLS = 15, 2000


def families():
    a = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    yield "einsum of 4 × 4, NumPy", {
        "ein": lambda: ein.einsum(a, a, "i k, k j -> i j"),
        "numpy": lambda: np.einsum("ik,kj->ij", a, a),
        "a @ a": lambda: a @ a,
        "einops": lambda: einops.einsum(a, a, "i k, k j -> i j"),
        "opt_einsum": lambda: opt_einsum.contract("ik,kj->ij", a, a),
    }
    yield "transpose, NumPy", {
        "ein": lambda: ein.rearrange(a, "i j -> j i"),
        "ein.einops": lambda: drop_in.rearrange(a, "i j -> j i"),
        "numpy": lambda: a.T,
        "einops": lambda: einops.rearrange(a, "i j -> j i"),
    }
    yield "mean of 4 × 4, NumPy", {
        "ein": lambda: ein.reduce(a, "i j -> i", "mean"),
        "ein.einops": lambda: drop_in.reduce(a, "i j -> i", "mean"),
        "numpy": lambda: a.mean(1),
        "einops": lambda: einops.reduce(a, "i j -> i", "mean"),
    }
    big = np.random.default_rng(0).standard_normal((256, 256)).astype(np.float32)
    yield "einsum of 256 × 256, NumPy", {
        "ein": lambda: ein.einsum(big, big, "i k, k j -> i j"),
        "a @ a": lambda: big @ big,
    }
    if torch is None:
        return
    torch.set_num_threads(1)
    t = torch.from_numpy(a)
    yield "einsum of 4 × 4, PyTorch", {
        "ein": lambda: ein.einsum(t, t, "i k, k j -> i j"),
        "torch": lambda: torch.einsum("ik,kj->ij", t, t),
        "a @ a": lambda: t @ t,
        "einops": lambda: einops.einsum(t, t, "i k, k j -> i j"),
    }
    yield "transpose, PyTorch", {
        "ein": lambda: ein.rearrange(t, "i j -> j i"),
        "ein.einops": lambda: drop_in.rearrange(t, "i j -> j i"),
        "torch": lambda: t.T,
        "einops": lambda: einops.rearrange(t, "i j -> j i"),
    }


def timed(function, calls):
    begin = time.perf_counter_ns()
    for _ in range(calls):
        function()
    return (time.perf_counter_ns() - begin) / calls


def main():
    ein.set_num_threads(1)
    for family, functions in families():
        calls = {}
        for name, function in functions.items():
            calls[name] = max(5, min(CALLS, int(5e7 / (timed(function, 5) * ROUNDS))))
        least = dict.fromkeys(functions, float("inf"))
        for _ in range(ROUNDS):
            for name, function in functions.items():
                least[name] = min(least[name], timed(function, calls[name]))
        print(f"{family}: " + ", ".join(f"{name} {time_:,.0f}" for name, time_ in least.items()))


main()
