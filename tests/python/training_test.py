"""ein.nn, ein.optim, ein.data, safetensors, account."""

import numpy as np
import pytest

import ein
from ein import data, nn, optim

rng = np.random.default_rng(3)


class MLP(nn.Module):
    def __init__(self, dim, inner):
        super().__init__()
        self.up = nn.Linear(dim, inner)
        self.down = nn.Linear(inner, 1)
        scale = ein.ones((1,))
        scale.requires_grad = True
        self.scale = scale

    def forward(self, x):
        return ein.rearrange(self.down(ein.tanh(self.up(x))) * self.scale, "b 1 -> b")


def test_modules_know_their_parts():
    model = MLP(3, 8)
    names = [name for name, _ in model.named_parameters()]
    assert names == ["scale", "up.weight", "up.bias", "down.weight", "down.bias"]
    assert model.parameter_count() == 3 * 8 + 8 + 8 + 1 + 1
    assert set(model.state_dict()) == set(names)
    assert model.account()["parameters"] == model.parameter_count()
    model.eval()
    assert not model.is_training and not model.up.is_training
    with pytest.raises(ein.Error, match="taken|up"):
        model.up = nn.Linear(3, 8)
    with pytest.raises(NotImplementedError):
        nn.Module()(ein.ones((1,)))


def test_states_go_from_one_to_another(tmp_path):
    a, b = MLP(3, 8), MLP(3, 8)
    x = rng.standard_normal((5, 3)).astype(np.float32)
    path = str(tmp_path / "model.safetensors")
    ein.save_safetensors(path, a.state_dict(), {"made": "here"})
    assert b.load_state_dict(ein.load_safetensors(path)) == ([], [])
    np.testing.assert_array_equal(np.asarray(a(x)), np.asarray(b(x)))
    with pytest.raises(ein.Error, match="up.weight"):
        b.load_state_dict({})
    missing, unexpected = b.load_state_dict({"other": ein.ones((1,))}, strict=False)
    assert "up.weight" in missing and unexpected == ["other"]
    with pytest.raises(ein.Error) as caught:
        ein.load_safetensors(str(tmp_path / "absent"))
    assert caught.value.kind == "file"


@pytest.mark.parametrize("make", [
    lambda p: optim.SGD(p, learning_rate=0.1, momentum=0.9),
    lambda p: optim.AdamW(p, learning_rate=0.02),
    lambda p: optim.Adam(p, learning_rate=0.02, betas=(0.9, 0.99)),
    lambda p: optim.RMSProp(p, learning_rate=0.01),
    lambda p: optim.AdaGrad(p, learning_rate=0.1),
    lambda p: optim.LAMB(p, learning_rate=0.02),
])
def test_optimizers_learn(make):
    ein.manual_seed(1)
    model = MLP(2, 16)
    optimizer = make(model.parameters())
    x = rng.standard_normal((64, 2)).astype(np.float32)
    y = x[:, 0] * x[:, 1]

    @ein.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = ein.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    losses = [float(step(x, y)) for _ in range(150)]
    assert losses[-1] < 0.5 * losses[0]


def test_adamw_is_pytorchs(torch):
    start = rng.standard_normal((3, 4)).astype(np.float32)
    ours = ein.Tensor(start.copy())
    ours.requires_grad = True
    theirs = torch.nn.Parameter(torch.from_numpy(start.copy()))
    a = optim.AdamW([{"parameters": [ours], "weight_decay": 0.1}], learning_rate=0.01)
    b = torch.optim.AdamW([theirs], lr=0.01, weight_decay=0.1)
    for _ in range(5):
        for optimizer in (a, b):
            optimizer.zero_grad()
        ein.einsum(ours, ours, "i j, i j ->").backward()
        theirs.square().sum().backward()
        a.step()
        b.step()
    np.testing.assert_allclose(np.asarray(ours), theirs.detach().numpy(), rtol=1e-5)


def test_optimizers_say_what_is_wrong():
    with pytest.raises(ein.Error, match="parameter"):
        optim.SGD([])
    x = ein.ones((2,))
    x.requires_grad = True
    with pytest.raises(ein.Error, match="'lr'"):
        optim.SGD([{"parameters": [x], "lr": 1}])
    sgd = optim.SGD([x], learning_rate=0.5)
    assert sgd.learning_rate == 0.5
    with pytest.raises(ein.Error):
        sgd.learning_rate = float("nan")
    again = optim.SGD([x])
    again.load_state_dict(sgd.state_dict())
    assert again.learning_rate == 0.5


def test_schedules():
    cosine = optim.CosineWithWarmup(1.0, end=100, min_learning_rate=0.1, warmup_steps=9)
    assert cosine(0) == pytest.approx(0.1) and cosine(9) == pytest.approx(1) and cosine(100) == pytest.approx(0.1)
    assert optim.Linear(1.0, end=10)(5) == pytest.approx(0.5)
    assert optim.WSD(1.0, decay_begin=10, end=20)(15) == pytest.approx(0.5)
    assert optim.Constant(0.3)(7) == 0.3


def test_layers():
    x = rng.standard_normal((2, 4, 6)).astype(np.float32)
    layer = nn.Sequential(nn.LayerNorm(6), nn.Function(ein.gelu), nn.EinMix("b s i -> b s o", "i o", "o", i=6, o=3),
                          nn.Rearrange("b s o -> b o s"), nn.Reduce("b o s -> b o", "mean"), nn.Repeat("b o -> b r o", r=2))
    y = layer(x)
    assert y.shape == (2, 2, 3) and len(layer) == 6
    assert [name for name, _ in layer.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    ein.reduce(y, "... ->", "sum").backward()
    assert layer[2].weight.grad.shape == (6, 3)
    table = nn.Embedding(10, 3)
    np.testing.assert_array_equal(np.asarray(table(np.array([1, 4]))), np.asarray(table.weight.detach())[[1, 4]])
    assert nn.RMSNorm(6)(x).shape == x.shape
    dropout = nn.Dropout(0.5)
    dropout.eval()
    np.testing.assert_array_equal(np.asarray(dropout(x)), x)


def test_gradients_are_clipped():
    x = ein.Tensor(np.array([3.0, 4.0]))
    x.requires_grad = True
    ein.einsum(x, x, "i, i ->").backward()
    assert float(optim.clip_grad_norm([x], 1.0)) == pytest.approx(10)
    np.testing.assert_allclose(np.asarray(x.grad), [0.6, 0.8], rtol=1e-5)


def test_tokens_and_batches(tmp_path):
    ids = np.arange(100, dtype=np.uint16)
    path = str(tmp_path / "tokens.u16")
    data.save_tokens(path, data.Tokens(ids), "u16")
    tokens = data.Tokens.open(path, "u16")
    assert len(tokens) == 100 and tokens.type == "u16" and tokens.range() == (0, 99)
    train, validation = data.split(tokens, 0.9)
    assert len(train) == 90 and len(validation) == 10
    x, y = data.get_batch(train, 4, 8, seed=1, number=2)
    assert x.shape == (4, 8)
    np.testing.assert_array_equal(np.asarray(x)[:, 1:], np.asarray(y)[:, :-1])
    batches = data.BatchSampler(train, 4, 8, seed=1)
    batches.position = 2
    again, _ = next(batches)
    np.testing.assert_array_equal(np.asarray(again), np.asarray(x))
    with pytest.raises(ein.Error):
        data.get_batch(train, 4, 90, 0, 0)


def test_accounts_of_published_models():
    account = ein.account("llama-3.1-8b", context=8192, device="h100-sxm", devices=8)
    assert account["parameters.total"] == 8_030_261_248
    assert account.find("nothing") is None and account.find("parameters").key == "parameters"
    assert "parameters" in str(account) and isinstance(account.as_dict()["parameters"], dict)
    with pytest.raises(KeyError):
        account["nothing"]
    with pytest.raises(ein.Error) as caught:
        ein.account("no-such-model")
    assert caught.value.kind == "file"


def test_a_decoder_computes_logits():
    config = ein.nn.Decoder
    with pytest.raises(ein.Error):
        config("no-such-model")
