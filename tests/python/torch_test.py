"""PyTorch: gradients, views, torch.compile, layers."""

import pickle

import pytest

import ein


def test_gradients_are_pytorchs(torch):
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    y = torch.randn(2, 5, 4, dtype=torch.float64, requires_grad=True)
    pattern = "b i k, b j k -> b i j"
    assert torch.autograd.gradcheck(lambda a, b: ein.einsum(a, b, pattern), (x, y))
    assert torch.autograd.gradgradcheck(lambda a, b: ein.einsum(a, b, pattern), (x, y))
    for call in (lambda a: ein.softmax(a, "a b [c]"), lambda a: ein.layer_norm(a, "a [b c]"),
                 lambda a: ein.reduce(a, "a b c -> a", "logsumexp"), lambda a: ein.sort(a, "a [b] c")[0],
                 lambda a: ein.rearrange(a, "a b c -> c (b a)"), lambda a: ein.repeat(a, "a b c -> a r c b", r=2),
                 lambda a: ein.rearrange([a, 2 * a], "n a b c -> (n a) b c"),
                 lambda a: ein.einsum(a, "a b c -> a c b")):
        assert torch.autograd.gradcheck(call, (x,))


def test_a_gradient_goes_to_one_of_two(torch):
    x, y = torch.randn(3, 4), torch.randn(4, 5, requires_grad=True)
    ein.einsum(x, y, "i k, k j -> i j").sum().backward()
    assert torch.allclose(y.grad, x.sum(0)[:, None].expand(4, 5), atol=1e-5)
    with torch.no_grad():
        assert not ein.einsum(x, y, "i k, k j -> i j").requires_grad
    with pytest.raises(ein.Error, match="gradient"):
        ein.exp(y)


def test_second_derivatives_that_are_not_there(torch):
    x = torch.randn(3, 4, requires_grad=True)
    with pytest.raises(ein.Error, match="einsum alone"):
        torch.autograd.grad(ein.softmax(x, "a [b]").square().sum(), x, create_graph=True)


def test_the_same_call_again(torch):
    pattern = "i k, k j -> i j"
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        for n in (3, 4, 3):
            x, y = (10 * torch.randn(n, 4)).to(dtype), (10 * torch.randn(5, 4)).to(dtype).T
            for _ in range(3):
                x += 1
                found = ein.einsum(x, y, pattern)
                assert type(found) is torch.Tensor and found.dtype == dtype
                assert torch.allclose(found.float(), (x.double() @ y.double()).float(), rtol=2e-2, atol=1e-1)
    x, y = torch.randn(3, 4), torch.randn(4, 5)
    for _ in range(3):
        kept = ein.einsum(x, y, pattern)
    wanted = kept.clone()
    for _ in range(3):
        ein.einsum(x + 1, y, pattern)
    assert torch.equal(kept, wanted)  # its memory is its own
    y.requires_grad = True
    ein.einsum(x, y, pattern).sum().backward()
    assert torch.allclose(y.grad, x.sum(0)[:, None].expand(4, 5), atol=1e-5)
    conjugate = torch.randn(3, 4, dtype=torch.complex64).conj()
    with_numpy = ein.einsum(x, y.detach().numpy(), pattern)
    assert type(with_numpy) is torch.Tensor
    for _ in range(2):
        assert torch.allclose(ein.einsum(conjugate, "i j -> j i"), conjugate.T)


def test_negatives_that_are_not_in_memory(torch):
    x = torch.randn(3, 4, dtype=torch.complex64)
    for plain, negative in ((x.imag, x.conj().imag), (x.imag[0, 0], x.conj().imag[0, 0])):
        assert negative.is_neg()
        names = "i j"[: 2 * negative.ndim]
        for one in (plain, negative, negative, plain):
            assert torch.equal(ein.einsum(one, one.abs(), f"{names}, {names} -> {names}"), one * one.abs())
            assert torch.equal(ein.einsum(one, f"{names} -> {names}"), one)


def test_views_stay_views(torch):
    x = torch.randn(4, 6, requires_grad=True)
    y = ein.rearrange(x, "a (b c) -> c b a", c=2)
    assert y._is_view() and y.data_ptr() == x.data_ptr()
    plain = torch.randn(4, 6)
    turned = ein.einops.rearrange(plain, "a b -> b a")
    turned[0, 1] = 5
    assert plain[1, 0] == 5


def test_a_model_of_einsums_is_the_plain_one(torch):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 8, 16, requires_grad=True) for _ in range(3))
    scores = ein.einsum(q, k, "b h i d, b h j d -> b h i j") / 4
    ours = ein.einsum(ein.softmax(scores, "b h i [j]"), v, "b h i j, b h j d -> b h i d")
    ours.square().sum().backward()
    gradients = [x.grad.clone() for x in (q, k, v)]
    for x in (q, k, v):
        x.grad = None
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    theirs.square().sum().backward()
    assert torch.allclose(ours, theirs, atol=1e-5)
    for g, x in zip(gradients, (q, k, v)):
        assert torch.allclose(g, x.grad, atol=1e-4, rtol=1e-4)


def test_compiles_without_a_break(torch):
    from ein import einops
    from ein import torch as of_torch

    def f(x, y):
        z = einops.rearrange(x, "b (h d) -> b h d", h=2)
        z = einops.reduce(of_torch.einsum(z, y, "b h d, e d -> b h e"), "b h e -> b e", "mean")
        return einops.repeat(z, "b e -> b e r", r=3)

    x, y = torch.randn(4, 6), torch.randn(5, 3)
    # The traced graph alone: no compiler of C++ is wanted for it.
    compiled = torch.compile(f, backend="eager", fullgraph=True)
    assert torch.allclose(compiled(x, y), f(x, y), atol=1e-6)
    dynamic = torch.compile(f, backend="eager", fullgraph=True, dynamic=True)
    for n in (4, 5, 7):
        assert torch.allclose(dynamic(torch.ones(n, 6), y), f(torch.ones(n, 6), y), atol=1e-6)


def test_layers(torch):
    from ein.torch import EinMix, Rearrange, Reduce, Repeat

    x = torch.randn(2, 3, 4, 4)
    layers = torch.nn.Sequential(
        Reduce("b c (h 2) (w 2) -> b c h w", "max"), Rearrange("b c h w -> b (c h w)"),
        EinMix("b i -> b (o p)", weight_shape="i o p", bias_shape="o p", i=12, o=5, p=2), Repeat("b o -> b o r", r=2))
    y = layers(x)
    assert y.shape == (2, 10, 2)
    y.sum().backward()
    assert layers[2].weight.grad.shape == (12, 5, 2)
    again = pickle.loads(pickle.dumps(layers))
    assert torch.equal(again(x), y)
    assert repr(layers[0]) == "Reduce('b c (h 2) (w 2) -> b c h w', 'max')"
