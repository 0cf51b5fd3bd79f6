"""ein.einops beside einops, on random patterns, and what it accepts beyond."""

import numpy as np
import pytest

import ein
from ein import einops as ours

theirs = pytest.importorskip("einops", reason="einops is not installed")


def random_pattern(rng):
    """An input, an output with the same axes, the shape, and the sizes that must be given."""
    names = [f"a{i}" for i in range(rng.integers(1, 6))]
    sizes = {name: int(rng.integers(1, 4)) for name in names}

    def grouped(order):
        groups, i = [], 0
        while i < len(order):
            count = int(rng.integers(1, 4))
            groups.append(order[i:i + count])
            i += count
        if rng.random() < 0.3:
            groups.insert(int(rng.integers(len(groups) + 1)), [])
        return groups

    def text(groups):
        return " ".join(g[0] if len(g) == 1 else "(" + " ".join(g) + ")" if g else "1" for g in groups)

    left = grouped(names)
    order = list(rng.permutation(names))
    shape = [int(np.prod([sizes[name] for name in g])) for g in left]
    given = {name: sizes[name] for g in left for name in g[1:]}
    return left, order, shape, given, grouped, text


@pytest.mark.parametrize("seed", range(150))
def test_random_patterns(seed):
    rng = np.random.default_rng(seed)
    left, order, shape, given, grouped, text = random_pattern(rng)
    x = rng.standard_normal(shape)
    pattern = f"{text(left)} -> {text(grouped(order))}"
    np.testing.assert_array_equal(ours.rearrange(x, pattern, **given), theirs.rearrange(x, pattern, **given), pattern)
    np.testing.assert_array_equal(ein.rearrange(x, pattern, **given), theirs.rearrange(x, pattern, **given), pattern)
    kept = order[:int(rng.integers(len(order) + 1))]
    pattern = f"{text(left)} -> {text(grouped(kept)) if kept else ''}"
    for reduction in ("sum", "mean", "max", "min", "prod"):
        for reduce in (ours.reduce, ein.reduce):
            np.testing.assert_allclose(reduce(x, pattern, reduction, **given),
                                       theirs.reduce(x, pattern, reduction, **given), err_msg=pattern)
    more = list(order)
    more.insert(int(rng.integers(len(order) + 1)), "r")
    pattern = f"{text(left)} -> {text(grouped(more))}"
    for repeat in (ours.repeat, ein.repeat):
        np.testing.assert_array_equal(repeat(x, pattern, r=2, **given), theirs.repeat(x, pattern, r=2, **given), pattern)


def test_errors_are_einops_and_ours():
    x = np.zeros((2, 6))
    for call in (lambda: ours.rearrange(x, "a (b c) -> a b c", b=4), lambda: ours.rearrange(x, "a b -> a"),
                 lambda: ours.reduce(x, "a b -> a", "median"), lambda: ours.rearrange(x, "a b c -> a b c"),
                 lambda: ours.repeat(x, "a b -> a b c"), lambda: ours.einsum(x, x, "a b, b a -> a")):
        with pytest.raises(ours.EinopsError) as caught:
            call()
        assert isinstance(caught.value, RuntimeError) and isinstance(caught.value, ein.Error)
    with pytest.raises(ours.EinopsError, match=r"\n +\^\^\^\^\^"):
        ours.rearrange(x, "a (b c) -> a b c", b=4)


def test_what_einops_refuses():
    x = np.arange(24.0).reshape(2, 12)
    np.testing.assert_array_equal(ours.rearrange(x, "b (h=4 d) -> b h d"), x.reshape(2, 4, 3))
    np.testing.assert_array_equal(ours.rearrange(x, "a (b (c d)) -> a b c d", b=2, c=3), x.reshape(2, 2, 3, 2))
    q, k, v = ours.rearrange(x.T, "(q + k + v) d -> q d, k d, v d", q=4, k=2)
    assert q.shape == (4, 2) and k.shape == (2, 2) and v.shape == (6, 2)
    windows = ours.rearrange(x, "b {2*y + ky} -> b y ky", ky=4)
    np.testing.assert_array_equal(windows, np.lib.stride_tricks.sliding_window_view(x, 4, axis=1)[:, ::2])
    np.testing.assert_allclose(ours.einsum(x, np.ones((3, 5)), "b (h d), d e -> b h e"),
                               x.reshape(2, 4, 3) @ np.ones((3, 5)))
    with pytest.raises(Exception):
        theirs.rearrange(x, "b (h=4 d) -> b h d")


def test_lists_are_stacked_and_functions_reduce():
    xs = [np.ones((2, 3)), np.zeros((2, 3))]
    np.testing.assert_array_equal(ours.rearrange(xs, "n a b -> a n b"), theirs.rearrange(xs, "n a b -> a n b"))
    median = lambda x, axes: np.median(x, axis=axes)  # noqa: E731
    x = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(ours.reduce(x, "a b -> b", median), np.median(x, 0))
    np.testing.assert_allclose(ours.einsum(x.astype(np.float32), x, "a b, c b -> a c"), x @ x.T)


def test_tensors_of_ein():
    x = ein.arange(12).reshape((3, 4))
    assert type(ours.rearrange(x, "a b -> b a")) is ein.Tensor
    assert ours.reduce(x, "a b -> a", "sum").shape == (3,)


def test_torch_tensors_are_einops(torch):
    rng = np.random.default_rng(3)
    for _ in range(50):
        left, order, shape, given, grouped, text = random_pattern(rng)
        x = torch.randn(shape)
        pattern = f"{text(left)} -> {text(grouped(order))}"
        mine, wanted = ours.rearrange(x, pattern, **given), theirs.rearrange(x, pattern, **given)
        assert torch.equal(mine, wanted) and (mine.data_ptr() == x.data_ptr()) == (wanted.data_ptr() == x.data_ptr())
