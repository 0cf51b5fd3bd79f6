"""Gradients of linear algebra by PyTorch, as the table in tests/linalg/linalg_gradient_test.cpp:

    python3 tests/peers/linalg_gradients.py

Results are squared, so that the signs of factors do not matter.
"""

import torch

torch.set_default_dtype(torch.float64)


def values(n, m):
    return torch.sin(1 + 3 * torch.arange(n)[:, None] + 5 * torch.arange(m) + 0.0)


def loss(*results):
    return sum((x.flatten() ** 2 * torch.cos(torch.arange(x.numel()) + 0.0)).sum() for x in results)


EYE = torch.eye(3)
B = values(3, 2) + 0.5
LINALG = torch.linalg
CASES = {
    "inverse": (3, 3, lambda x: [LINALG.inv(x + 3 * EYE)]),
    "det": (3, 3, lambda x: [LINALG.det(x + 3 * EYE)]),
    "cholesky": (3, 3, lambda x: [LINALG.cholesky(x @ x.T + EYE)]),
    "solve": (3, 3, lambda x: [LINALG.solve(x + 3 * EYE, B)]),
    "lstsq": (3, 2, lambda x: [LINALG.lstsq(x, B).solution]),
    "qr": (3, 2, lambda x: list(LINALG.qr(x))),
    "qr of a wide one": (2, 3, lambda x: list(LINALG.qr(x))),
    "svd": (3, 2, lambda x: list(LINALG.svd(x, full_matrices=False))),
    "svd of a wide one": (2, 3, lambda x: list(LINALG.svd(x, full_matrices=False))),
    "eigh": (3, 3, lambda x: list(LINALG.eigh(x + x.T))),
}
for name, (n, m, f) in CASES.items():
    x = values(n, m).requires_grad_(True)
    (gradient,) = torch.autograd.grad(loss(*f(x)), x)
    print(name, *("%.12g" % g for g in gradient.flatten().tolist()))
