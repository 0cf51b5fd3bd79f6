"""Writes rows.tsv: functions of complex numbers, their gradients and second gradients by PyTorch.

    python3 tests/data/complex/make.py > tests/data/complex/rows.tsv

Each row: a name; the value; the gradient g of loss(value); the gradient of loss(g). Numbers are real
and imaginary parts in turn, of z (2, 2). tests/complex_gradient_test.cpp has the same functions.
"""

import torch

torch.set_default_dtype(torch.float64)
I = torch.arange(2)[:, None] + 0.0
J = torch.arange(2) + 0.0
Z = torch.complex(torch.sin(1 + 3 * I + 5 * J), torch.cos(2 + 2 * I - 3 * J))
W = torch.complex(torch.cos(1 + I - 2 * J), torch.sin(3 * I + J + 0.5))


def loss(x):
    weights = torch.cos(torch.arange(x.numel()) + 0.0)
    x = torch.view_as_real(x).square().sum(-1) if x.is_complex() else x.square()
    return (x.flatten() * weights).sum()


def numbers(x):
    x = torch.view_as_real(x) if x.is_complex() else x
    return " ".join("%.15g" % v for v in x.detach().flatten().tolist())


CASES = {
    "mul": lambda z: z * W,
    "square": lambda z: z * z,
    "div": lambda z: W / z,
    "divided": lambda z: z / W,
    "reciprocal": lambda z: 1 / z,
    "add_number": lambda z: z + (2 - 1j),
    "pow_3": lambda z: z**3,
    "pow_minus_2": lambda z: z**-2,
    "pow_half": lambda z: z**0.5,
    "pow": lambda z: z**W,
    "exponent": lambda z: W**z,
    "exp": torch.exp,
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "log": torch.log,
    "log2": torch.log2,
    "log1p": torch.log1p,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "asin": torch.asin,
    "acos": torch.acos,
    "atan": torch.atan,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "silu": lambda z: z * torch.sigmoid(z),
    "abs": torch.abs,
    "angle": torch.angle,
    "conj": lambda z: torch.conj_physical(z) * W,
    "real": lambda z: torch.real(z * z),
    "imag": lambda z: torch.imag(z * z),
    "complex": lambda z: torch.complex(z.real * z.imag, z.real - z.imag.square()),
    "polar": lambda z: torch.polar(z.real**2, z.imag),
    "where": lambda z: torch.where(z.real > 0, z * z, z * W),
    "einsum": lambda z: torch.einsum("ab,bc->ac", z, z * W),
    "hadamard": lambda z: torch.einsum("ab,ab->ab", z, z),
    "three": lambda z: torch.einsum("ab,cb,cd->ad", z, W, z),
    "outer": lambda z: torch.einsum("ab,cd->abcd", z, W),
    "trace": lambda z: torch.einsum("aa->", z) * z,
    "sum": lambda z: (z * z).sum(0),
    "mean": lambda z: (z * z).mean(1),
    "prod": lambda z: z.prod(0),
    "var": lambda z: torch.var(z * z, 0, correction=0),
    "std": lambda z: torch.std(z * z, 1, correction=0),
    "cumsum": lambda z: torch.cumsum(z * z, 1),
    "cumprod": lambda z: torch.cumprod(z * z, 1),
    "flip": lambda z: torch.flip(z, [1]) * z,
    "c64": lambda z: z.to(torch.complex64).to(torch.complex128) * z,
    "real_operand": lambda z: z * W.real,
}
for name, f in CASES.items():
    z = Z.clone().requires_grad_(True)
    value = f(z)
    (gradient,) = torch.autograd.grad(loss(value), z, create_graph=True)
    second = torch.zeros_like(z)
    if gradient.requires_grad:
        (second,) = torch.autograd.grad(loss(gradient), z)
    print(name, numbers(value), numbers(gradient), numbers(second), sep="\t")
