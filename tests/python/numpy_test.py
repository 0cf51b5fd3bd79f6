"""Calls on NumPy arrays: values beside NumPy's own, memory, errors, threads."""

import sys
import threading
import tracemalloc

import numpy as np
import pytest

import ein

rng = np.random.default_rng(7)


def array(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(
    "pattern, letters, shapes",
    [
        ("i k, k j -> i j", "ik,kj->ij", [(4, 5), (5, 6)]),
        ("b s1 h, b s2 h -> b s1 s2", "bsh,bth->bst", [(2, 3, 4), (2, 5, 4)]),
        ("i j -> j i", "ij->ji", [(3, 4)]),
        ("i i -> i", "ii->i", [(4, 4)]),
        ("i, j -> i j", "i,j->ij", [(3,), (4,)]),
        ("a b, b c, c d -> a d", "ab,bc,cd->ad", [(2, 3), (3, 4), (4, 5)]),
        ("... k, k j -> ... j", "...k,kj->...j", [(2, 3, 4), (4, 5)]),
    ],
)
def test_einsum_is_numpys(pattern, letters, shapes):
    for dtype in (np.float32, np.float64, np.int64, np.complex64):
        operands = [(10 * array(*shape)).astype(dtype) for shape in shapes]
        result = ein.einsum(*operands, pattern)
        assert type(result) is np.ndarray
        assert result.dtype == dtype
        np.testing.assert_allclose(result, np.einsum(letters, *operands), rtol=1e-4, atol=1e-4)


def test_rearrangements():
    x = array(4, 6, 2)
    np.testing.assert_array_equal(ein.rearrange(x, "a (b c) d -> c d (a b)", c=3),
                                  x.reshape(4, 2, 3, 2).transpose(2, 3, 0, 1).reshape(3, 2, 8))
    np.testing.assert_array_equal(ein.repeat(x, "a b c -> a b r c", r=3), np.stack([x] * 3, axis=2))
    np.testing.assert_array_equal(ein.rearrange([x, x + 1], "n a b c -> a n (b c)"),
                                  np.stack([x, x + 1]).transpose(1, 0, 2, 3).reshape(4, 2, 12))
    q, k = ein.rearrange(x, "a (q + k) c -> a q c, a k c", q=2)
    assert q.shape == (4, 2, 2) and k.shape == (4, 4, 2)
    np.testing.assert_array_equal(np.concatenate([q, k], axis=1), x)


@pytest.mark.parametrize("reduction", ["sum", "mean", "max", "min", "prod", "logsumexp", "var"])
def test_reduce(reduction):
    x = array(4, 6, dtype=np.float64)
    wanted = {"prod": np.prod, "logsumexp": lambda a, axis: np.log(np.exp(a).sum(axis=axis))}
    function = wanted.get(reduction, getattr(np, reduction, None))
    np.testing.assert_allclose(ein.reduce(x, "a b -> a", reduction), function(x, axis=1))


def test_nothing_is_copied():
    x = array(1000, 1000)
    ein.rearrange(x, "a b -> b a")  # what the first call keeps
    tracemalloc.start()
    turned = ein.rearrange(x, "a b -> b a")
    repeated = ein.repeat(x, "a b -> a r b", r=1000)
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()
    assert np.shares_memory(turned, x) and turned.strides == x.T.strides
    turned[3, 5] = 7
    assert x[5, 3] == 7
    assert not repeated.flags.writeable  # its elements share memory
    assert ein.Tensor(x).numpy().ctypes.data == x.ctypes.data


def test_views_of_numpy_are_taken_as_they_are():
    x = array(6, 8)
    for view in (x[::-1, ::2], x.T, x[1:4, 3:], np.broadcast_to(x[0], (5, 8)), x[:0], x[2, 3]):
        tensor = ein.Tensor(view)
        assert tensor.shape == view.shape
        np.testing.assert_array_equal(np.asarray(tensor), view)
        if view.ndim == 2:
            np.testing.assert_allclose(ein.einsum(view, "i j -> j", sums_alone=True), view.sum(0), rtol=1e-5, atol=1e-6)


def test_read_only_arrays_stay_so():
    x = array(3, 4)
    x.flags.writeable = False
    assert not ein.rearrange(x, "a b -> b a").flags.writeable
    with pytest.raises(ein.Error, match="read-only"):
        ein.Tensor(x).fill(1)


def test_results_live_longer_than_operands():
    turned = ein.rearrange(array(300, 300), "a b -> b a")
    product = ein.einsum(array(300, 300), array(300, 300), "i k, k j -> i j")
    for _ in range(10):
        array(300, 300)
    assert np.isfinite(turned).all() and np.isfinite(product).all()
    x = ein.full((1000,), 3)
    kept = x.numpy()
    del x
    assert (kept == 3).all()


def test_errors_say_where():
    x, y = array(2, 3), array(4, 5)
    with pytest.raises(ein.Error) as caught:
        ein.einsum(x, y, "i k, k j -> i j")
    text = str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert caught.value.kind == "size" and caught.value.spans == [(2, 3), (5, 6)]
    assert "axis 'k' has two sizes: 3 in operand 1, 4 in operand 2" in text
    assert text.splitlines()[2] == "    ^  ^"
    for call, kind in [
        (lambda: ein.rearrange(x, "a b -> a"), "pattern"),
        (lambda: ein.rearrange(x, "a (b"), "syntax"),
        (lambda: ein.rearrange(x, "a b -> b a", c=3), "axis_argument"),
        (lambda: ein.rearrange(x, "a b -> b a", a=2.5), "value"),
        (lambda: ein.einsum(x, "i k, k j -> i j"), "arity"),
        (lambda: ein.einsum(x, y), "value"),
        (lambda: ein.reduce(x, "a b -> a", "average"), "reduction"),
        (lambda: ein.einsum(x, y, "i k, l j -> i l"), "pattern"),
        (lambda: ein.Tensor(np.array(["a"])), "dtype"),
        (lambda: ein.Tensor(np.zeros(3, dtype=">f4")), "dtype"),
        (lambda: ein.Tensor(np.zeros(4, dtype="i4,i1")["f0"]), "value"),
        (lambda: ein.Tensor(np.ma.masked_array(x, x > 0)), "value"),
        (lambda: ein.einsum(object(), "i -> i"), "value"),
        (lambda: ein.einsum(x, "a b -> b a", dtype="f31"), "dtype"),
    ]:
        with pytest.raises(ein.Error) as caught:
            call()
        assert caught.value.kind == kind, caught.value


def test_named_operations():
    x = array(3, 5, dtype=np.float64)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(ein.softmax(x, "a [b]"), e / e.sum(1, keepdims=True))
    np.testing.assert_allclose(ein.layer_norm(x, "a [b]", eps=0),
                               (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True))
    np.testing.assert_array_equal(ein.argmax(x, "a [b]"), x.argmax(1))
    values, positions = ein.sort(x, "a [b]", descending=True)
    np.testing.assert_array_equal(values, -np.sort(-x, axis=1))
    np.testing.assert_array_equal(np.take_along_axis(x, positions, 1), values)
    least, _ = ein.top_k(x, "a [b]", 2, least=True)
    np.testing.assert_array_equal(least, np.sort(x, axis=1)[:, :2])
    np.testing.assert_array_equal(ein.roll(x, "[a b]", [1, -2]), np.roll(x, (1, -2), axis=(0, 1)))
    np.testing.assert_array_equal(ein.pad(x, "[a] b", before=1, after=2, value=9),
                                  np.pad(x, ((1, 2), (0, 0)), constant_values=9))
    np.testing.assert_array_equal(ein.pad(x, "a [b]", 2, 1, mode="reflect"), np.pad(x, ((0, 0), (2, 1)), mode="reflect"))
    np.testing.assert_array_equal(ein.tril(x, "[i j]", diagonal=1), np.tril(x, 1))
    np.testing.assert_allclose(ein.quantile(x, "a [b]", [0.25, 0.5]), np.quantile(x, [0.25, 0.5], axis=1).T)
    np.testing.assert_array_equal(ein.histogram(x, "a [b]", bins=4, range=(-2, 2)),
                                  [np.histogram(row, bins=4, range=(-2, 2))[0] for row in x])
    np.testing.assert_array_equal(ein.one_hot(np.array([1, 3]), "n -> n [v]", v=4), np.eye(4)[[1, 3]])
    np.testing.assert_allclose(ein.inverse(x[:, :3], "[i j]"), np.linalg.inv(x[:, :3]))
    table, tokens = array(10, 4), np.array([[1, 2, 3]])
    np.testing.assert_array_equal(ein.gather(table, tokens, "[v] d, b s -> b s d"), table[tokens])
    loss = ein.cross_entropy(x, np.array([1, -100, 2]), "b [v], b", ignored=-100)
    log_p = x - np.log(np.exp(x).sum(1, keepdims=True))
    np.testing.assert_allclose(loss, -(log_p[0, 1] + log_p[2, 2]) / 2)


def test_pack_and_unpack():
    parts = [array(2, 3, 4), array(2, 5)]
    packed, shapes = ein.pack(parts, "b *")
    assert packed.shape == (2, 17) and shapes == [(3, 4), (5,)]
    for part, again in zip(parts, ein.unpack(packed, shapes, "b *")):
        np.testing.assert_array_equal(part, again)
    assert ein.parse_shape(parts[0], "a _ b") == {"a": 2, "b": 4}


def test_elements():
    x, y = array(3, 4), array(4)
    np.testing.assert_allclose(ein.exp(x), np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(ein.add(x, y), x + y)
    np.testing.assert_allclose(ein.mul(x, 2), x * 2)
    np.testing.assert_array_equal(ein.where(ein.greater(x, 0), x, 0), np.maximum(x, 0))


def test_graphs_and_cost():
    graph = ein.graph("einsum", (2, 3), (3, 4), "i k, k j -> i j")
    assert graph.cost()["model"] == 2 * 2 * 3 * 4
    assert graph.cost_formula()["model"] == "2·i·k·j"
    assert graph.cost()["bytes_read"] == 4 * (6 + 12)
    assert graph._repr_svg_().startswith("<svg")
    assert ein.graph("reduce", array(2, 3), "a b -> a", "sum").cost()["add"] == 4
    assert ein.graph("einsum", (10**6, 10**6), (10**6, 10**6), "i k, k j -> i j").cost()["model"] == 2 * 10**18
    with pytest.raises(ein.Error, match="no operation"):
        ein.graph("einsums", (2, 3), "i k -> k i")


def test_gradients():
    x = ein.Tensor(array(3, 4))
    x.requires_grad = True
    y = ein.einsum(x, x, "i j, i j ->")
    y.backward()
    np.testing.assert_allclose(x.grad, 2 * np.asarray(x), rtol=1e-6)
    with pytest.raises(ein.Error, match="gradients"):
        np.from_dlpack(x)
    with ein.no_grad():
        assert not (x * 2).requires_grad


def test_tensors():
    x = ein.arange(12).reshape((3, 4))
    assert x.shape == (3, 4) and x.dtype == "i64" and x.device == "cpu" and x.size == 12 and len(x) == 3
    assert x[1, 2].item() == 6 and x[-1, 1:3].shape == (2,)
    x[0] = 5
    assert (np.asarray(x)[0] == 5).all()
    assert np.from_dlpack(x).ctypes.data == np.asarray(x).ctypes.data
    assert repr(ein.ones((2,))) == "ein.Tensor([1, 1], dtype='f32')"
    assert float((ein.ones((2, 2)) @ ein.ones((2, 2)))[0, 0]) == 2
    assert ein.zeros((2,), "bf16").to("f32").dtype == "f32"
    with pytest.raises(ein.Error) as caught:
        ein.ones((2,)).to("cuda:99999")
    assert caught.value.kind == "device"


@pytest.mark.parametrize("seed", range(20))
def test_the_same_call_again(seed):
    """A call that was made before goes a shorter way: other elements, views that lie otherwise, other arguments."""
    own = np.random.default_rng(seed)
    pattern, sum_pattern = "i k, k j -> i j", "a (b c) -> b a"
    for _ in range(30):
        i, k, j = own.integers(1, 5, 3)
        dtype = own.choice([np.float32, np.float64, np.int64])
        x, y = ((10 * own.standard_normal(shape)).astype(dtype) for shape in ((i, k), (k, j)))
        if own.integers(2):
            x = x[::-1]
        if own.integers(2):
            y = np.asfortranarray(y)
        if own.integers(2):
            y = np.repeat(y, 2, axis=1)[:, ::-2]
        for _ in range(3):
            x[...] = (10 * own.standard_normal(x.shape)).astype(dtype)
            found = ein.einsum(x, y, pattern)
            assert found.dtype == dtype and found.flags.writeable and found.flags.owndata
            np.testing.assert_allclose(found, np.einsum("ik,kj->ij", x, y), rtol=1e-4, atol=1e-3)
            z = np.concatenate([x, x, x], axis=1)
            for c in (3, 1):
                name = str(own.choice(["sum", "max"]))
                wanted = getattr(z.reshape(i, -1, c), name)(2).T
                np.testing.assert_allclose(ein.reduce(z, sum_pattern, name, c=c), wanted, rtol=1e-4, atol=1e-3)
            turned = ein.rearrange(x, "a b -> b a")
            assert np.shares_memory(turned, x) and not turned.flags.owndata
            np.testing.assert_array_equal(turned, x.T)


def test_calls_again_keep_nothing_of_their_operands():
    x = array(4, 4)
    x.flags.writeable = False
    for call in (lambda: ein.einsum(x, x, "i k, k j -> i j"), lambda: ein.rearrange(x, "i j -> j i")):
        call(), call()
        before = sys.getrefcount(x)
        results = [call() for _ in range(100)]
        assert results[0] is not results[1]
        del results
        assert sys.getrefcount(x) == before
    assert not ein.rearrange(x, "i j -> j i").flags.writeable
    assert ein.einsum(x, x, "i k, k j -> i j").flags.writeable


def test_errors_of_calls_again():
    table = array(4, 2)
    for _ in range(3):
        ein.gather(table, np.array([1, 2]), "[v] d, n -> n d")
        with pytest.raises(ein.Error, match="7"):
            ein.gather(table, np.array([1, 7]), "[v] d, n -> n d")


def test_draws():
    ein.manual_seed(5)
    p = np.array([0.2, 0.0, 0.8])
    draws = np.concatenate([ein.multinomial(p, "[v]", 500) for _ in range(4)])
    assert set(draws) == {0, 2} and 0.1 < (draws == 0).mean() < 0.3
    assert len({tuple(draws[i:i + 500]) for i in range(0, 2000, 500)}) == 4


def test_threads_at_once(in_threads):
    x, y = array(64, 64), array(64, 64)
    wanted = ein.einsum(x, y, "i k, k j -> i j")
    failures = []

    def work(seed):
        own = np.random.default_rng(seed)
        for _ in range(200):
            n = int(own.integers(1, 40))
            a = own.standard_normal((n, n))
            if not np.array_equal(ein.einsum(x, y, "i k, k j -> i j"), wanted):
                failures.append("product")
            if not np.array_equal(ein.rearrange(a, "i j -> j i"), a.T):
                failures.append("transpose")
            try:
                ein.einsum(a, np.zeros(n + 1), "i j, j -> i")
                failures.append("no error")
            except ein.Error:
                pass

    in_threads(work)
    assert failures == []


def test_others_run_while_a_kernel_does():
    x = array(1200, 1200, dtype=np.float64)
    ticks = 0
    done = threading.Event()

    def multiply():
        ein.einsum(x, x, "i k, k j -> i j")
        done.set()

    thread = threading.Thread(target=multiply)
    thread.start()
    while not done.is_set():
        ticks += 1
    thread.join()
    assert ticks > 1000  # with the GIL held throughout it would be a handful


def test_what_python_lacks():
    """Every operation of ein's table is a function here, but for those that are listed with a reason."""
    lacking = {name for name, described in ein._ein._operations().items() if described is None}
    assert lacking == {
        "pack", "unpack", "parse_shape",  # functions of their own, as their results are no tensors alone
        "map_reduce",  # map with a reduction
        "place", "reshard",  # of a mesh of processes
        "layer",  # a type's, no call
    }
    for name in ein._ein._operations():
        if name not in lacking:
            assert "pattern" in getattr(ein, name).__doc__
