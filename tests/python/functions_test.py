"""Functions of functions: compile, map, grad, vmap."""

import gc
import weakref

import numpy as np
import pytest

import ein

rng = np.random.default_rng(11)


def array(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# --- map ---


def test_map_is_numpys_broadcasting():
    x, y = array(3, 5), array(4, 5)
    wanted = ((x[:, None] - y[None]) ** 2).sum(-1)
    found = ein.map(x, y, "i d, j d -> i j", lambda a, b: (a - b) * (a - b), "sum")
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    np.testing.assert_array_equal(ein.map(x, y, "i d, j d -> i j d", lambda a, b: a - b), x[:, None] - y[None])
    np.testing.assert_allclose(ein.map(x, y, "i d, j d -> i j", ein.add, reduction="min"),
                               (x[:, None] + y[None]).min(-1), rtol=1e-6)
    halves = ein.map(x, "i (h d) -> i d", lambda a: a, "max", h=5)
    np.testing.assert_array_equal(halves, x.max(1, keepdims=True))


def test_map_takes_what_is_outside():
    x, scale = array(3, 4), ein.Tensor(array(4))
    found = ein.map(x, "i j -> i j", lambda a: a * scale)
    np.testing.assert_allclose(found, x * np.asarray(scale), rtol=1e-6)


def test_errors_of_map():
    x = array(3, 4)
    with pytest.raises(ein.Error, match="function of elements is missing"):
        ein.map(x, "i j -> i j")
    with pytest.raises(ein.Error) as caught:
        ein.map(x, x.T, "i j, i j -> i j", lambda a, b: a)
    assert caught.value.kind == "size" and "^" in str(caught.value)
    with pytest.raises(ZeroDivisionError):  # what the function raises comes through
        ein.map(x, "i j -> i j", lambda a: a / (1 // 0))
    with pytest.raises(ein.Error, match="2 tensors"):
        ein.map(x, "i j -> i j", lambda a: (a, a))


def test_functions_of_elements_by_names():
    x, y = array(3), array(4)
    np.testing.assert_array_equal(ein.sub(x, y, "i, j -> i j"), x[:, None] - y)
    mask, scores = array(3, 4) > 0, array(2, 5, 3, 4)
    np.testing.assert_array_equal(ein.where(mask, scores, -np.inf, "q k, b h q k -> b h q k"),
                                  np.where(mask, scores, -np.inf))
    with pytest.raises(ein.Error, match="two sizes"):
        ein.add(x, y, "i, i -> i")


# --- compile ---


def test_compiled_functions_are_the_plain_ones():
    calls = []

    def attend(q, k, v):
        calls.append(q.shape)
        weights = ein.softmax(ein.einsum(q, k, "b i d, b j d -> b i j"), "b i [j]")
        return ein.einsum(weights, v, "b i j, b j d -> b i d")

    compiled = ein.compile(attend)
    for n in (4, 4, 6, 4):
        q, k, v = (array(2, n, 8) for _ in range(3))
        found = compiled(q, k, v)
        assert type(found) is np.ndarray
        wanted = softmax(q @ k.transpose(0, 2, 1)) @ v
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert len(calls) == 2  # one trace for each length
    assert compiled.cost()["model"] > 0 and compiled.memory()["peak"] > 0
    assert compiled._repr_svg_().startswith("<svg")
    assert "contract" in compiled.text() and str(compiled.graph())
    assert compiled.account()["flops.forward"] > 0


def test_one_trace_serves_all_lengths():
    traces = []

    def f(x, y):
        traces.append(1)
        return ein.einsum(x, y, "b s c, b s -> b c")

    compiled = ein.compile(f, "b=2 s c=3", "b=2 s")
    for s in (5, 7, 64, 5):
        x, y = array(2, s, 3), array(2, s)
        np.testing.assert_allclose(compiled(x, y), np.einsum("bsc,bs->bc", x, y), rtol=1e-4, atol=1e-5)
    assert len(traces) == 1
    with pytest.raises(ein.Error):
        compiled(array(2, 5, 3), array(2, 6))
    with pytest.raises(ein.Error, match="types"):
        compiled(array(2, 5, 3))


def test_forms_of_results():
    x = array(3)
    assert ein.compile(lambda a: None)(x) is None
    one = ein.compile(lambda a: (a + 1,))(x)
    assert isinstance(one, tuple) and len(one) == 1
    pair = ein.compile(lambda a: [a + 1, a * 2])(x)
    assert isinstance(pair, list)
    np.testing.assert_array_equal(pair[1], x * 2)
    turns = iter([lambda a: a, lambda a: (a, a)])
    changing = ein.compile(lambda a: next(turns)(a + 0))
    changing(x)
    with pytest.raises(ein.Error, match="same in each call"):
        changing(array(4))


def test_errors_come_through():
    def fails(x):
        raise KeyError("of the function")

    with pytest.raises(KeyError, match="of the function"):
        ein.compile(fails)(array(3))
    with pytest.raises(ein.Error, match="has not been called"):
        ein.compile(lambda x: x).cost()
    with pytest.raises(ein.Error) as caught:
        ein.compile(lambda x: ein.einsum(x, x, "i j, j j -> i"))(array(3, 4))
    assert "^" in str(caught.value)


def test_state_from_outside_is_read_anew():
    state = ein.Tensor(array(3))
    compiled = ein.compile(lambda x: x * state)
    x = array(3)
    compiled(x)
    state.fill(2)
    np.testing.assert_array_equal(compiled(x), 2 * x)


def test_a_training_step():
    x, y = array(16, 4), array(16)
    w = ein.zeros((4,))
    w.requires_grad = True

    def step(x, y):
        w.zero_grad()
        loss = ein.mse_loss(ein.einsum(x, w, "b i, i -> b"), y)
        loss.backward()
        with ein.no_grad():
            w.copy_from(w - w.grad * 0.1)
        return loss

    compiled = ein.compile(step)
    losses = [float(compiled(x, y)) for _ in range(100)]
    assert losses[-1] < losses[0]
    best = np.linalg.lstsq(x, y, rcond=None)[0]
    np.testing.assert_allclose(losses[-1], np.mean((x @ best - y) ** 2), rtol=1e-2)


def test_collected_with_its_function():
    class Holder:
        pass

    holder = Holder()
    holder.compiled = ein.compile(lambda x: x if holder else x)
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None


def test_threads_trace_at_once(in_threads):
    compiled = ein.compile(lambda x, y: ein.einsum(x, y, "i k, k j -> i j"))
    failures = []

    def work(seed):
        own = np.random.default_rng(seed)
        for n in range(1, 12):
            x, y = own.standard_normal((n, 5)), own.standard_normal((5, n))
            if not np.allclose(compiled(x, y), x @ y):
                failures.append(n)

    in_threads(work)
    assert failures == []


# --- derivatives ---


def test_grad():
    x, y = array(3, 4, dtype=np.float64), array(4, dtype=np.float64)

    def f(x, y):
        return ein.reduce(ein.sin(ein.einsum(x, y, "i j, j -> i")), "i ->", "sum")

    value, (dx, dy) = ein.value_and_grad(f)(x, y)
    assert type(value) is np.ndarray and type(dx) is np.ndarray
    np.testing.assert_allclose(value, np.sin(x @ y).sum())
    np.testing.assert_allclose(dx, np.cos(x @ y)[:, None] * y)
    np.testing.assert_allclose(dy, np.cos(x @ y) @ x)
    np.testing.assert_allclose(ein.grad(lambda x: f(x, y))(x), dx)


def test_second_derivatives():
    x = array(5, dtype=np.float64)

    def slope(x):
        return ein.reduce(ein.grad(lambda z: ein.reduce(z * z * z, "i ->", "sum"))(x), "i ->", "sum")

    np.testing.assert_allclose(ein.grad(slope)(x), 6 * x)
    compiled = ein.compile(ein.grad(slope))
    np.testing.assert_allclose(compiled(x), 6 * x)


def test_gradients_of_tensors():
    x = ein.Tensor(array(3))
    x.requires_grad = True
    (g,) = ein.gradients(ein.einsum(x, x, "i, i ->"), [x])
    np.testing.assert_allclose(g, 2 * np.asarray(x), rtol=1e-6)
    assert x.grad is None
    with pytest.raises(ein.Error, match="no argument"):
        ein.grad(lambda: ein.ones(()))()


def test_vmap():
    x, w = array(6, 3), array(3)
    found = ein.vmap(lambda a: ein.einsum(a, w, "i, i ->"), "n")(x)
    np.testing.assert_allclose(found, x @ w, rtol=1e-5)
    per_example = ein.vmap(ein.grad(lambda a: ein.einsum(a, a, "i, i ->")), "n")(x)
    np.testing.assert_allclose(per_example, 2 * x, rtol=1e-6)
