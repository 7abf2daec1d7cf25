"""Gradients of products whose factors are 0, as weights and masks are: those that torch has.

What a forward pass saves is a product with factors that do not change along a sum: to divide by
them, for the sum alone, is no way back.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tile_api.arrays.function import Function

PROGRAMS = {
    "a row": lambda a, b, c: (a * b).sum(-1),
    "a column": lambda a, b, c: (a * c).sum(0),
    "a mean": lambda a, b, c: (a * b).mean(-1) ** 2,
    "deviations": lambda a, b, c: (a * b - (a * b).mean(-1)[:, None]) ** 2,
    "a product": lambda a, b, c: (a * b) @ a.T,
    "products": lambda a, b, c: ((a * b) @ a.T) @ (a * b * c),
    "an outer product": lambda a, b, c: (c[:, None] * c) @ (c[:, None] * c),
    "a chain": lambda a, b, c: ((a * b).sum(-1)[:, None] * c).sum(0),
    "twice": lambda a, b, c: (a * c).sum(-1) * (a * c * c).sum(-1),
    "powers": lambda a, b, c: (a**2 * b).sum(-1) + (a**3 * b).sum(-1),
    "running sums": lambda a, b, c: (a * b).cumsum(-1),
    "a norm": lambda a, b, c: ((a * a * b * b).sum(-1) + 1) ** 0.5,
    "a shifted norm": lambda a, b, c: (a - b) / (((a - b) ** 2).sum(-1) + 1)[:, None],
    "a shifted root": lambda a, b, c: (a - b) / (((a - b) ** 2).mean(-1) + 1)[:, None] ** 0.5,
    "weights": lambda a, b, c: (a * b).sum(-1) / ((b * b).sum() + 1),
}


@pytest.mark.parametrize("target", ["interpret", "cpu"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_factors_may_be_zero(name: str, target: str) -> None:
    function, random = PROGRAMS[name], np.random.default_rng(3)
    arrays = [random.integers(-2, 3, shape).astype("float64") for shape in ((4, 5), (4, 1), (5,))]
    tensors = [torch.tensor(x, requires_grad=True) for x in arrays]
    result = function(*tensors)
    cotangent = random.integers(-3, 4, result.shape).astype("float64")
    wanted = torch.autograd.grad(result, tensors, torch.tensor(cotangent), allow_unused=True)
    _, pull = Function(function, target=target).vjp(*arrays)
    for got, right, x in zip(pull(cotangent), wanted, arrays, strict=True):
        exact = np.zeros(x.shape) if right is None else right.numpy()
        np.testing.assert_allclose(got, exact, rtol=1e-12, atol=1e-12)
