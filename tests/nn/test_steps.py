"""`tile_nn.embedding` and `adamw`, against plain torch."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import tile_nn
from support.nn_kernels import EMULATED, Case, require_accurate, require_gradients
from tile_core.errors import TileError


def embedding(ids, weight, *, scale=1.0):
    rows = F.embedding(ids, weight)
    wide = torch.promote_types(weight.dtype, torch.float32)
    return (rows.to(wide) * scale).to(weight.dtype)


def adamw(
    param, grad, exp_avg, exp_avg_sq, step, lr, *, beta1=0.9, beta2=0.999, eps=1e-8,
    weight_decay=1e-2,
):  # fmt: skip
    """A step in the types of the arguments, or in float32."""
    dtypes = [x.dtype for x in (param, exp_avg, exp_avg_sq)]
    wide = torch.promote_types(param.dtype, torch.float32)
    param, grad, exp_avg, exp_avg_sq, lr = (
        x.to(wide) for x in (param, grad, exp_avg, exp_avg_sq, lr)
    )
    m = exp_avg.lerp(grad, 1 - beta1)
    v = exp_avg_sq * beta2 + (1 - beta2) * grad * grad
    first, second = 1 - beta1 ** step.item(), 1 - beta2 ** step.item()
    param = param * (1 - lr * weight_decay)
    param = param - lr / first * m / (v.sqrt() / second**0.5 + eps)
    return tuple(x.to(dtype) for x, dtype in zip((param, m, v), dtypes, strict=True))


def rows(*shape, **settings):
    def arguments(random):
        ids = torch.randint(0, 5, shape, generator=random)
        return {
            "ids": ids,
            "weight": torch.randn((5, 11), generator=random, dtype=torch.float64),
        }

    return Case(tile_nn.embedding, embedding, arguments, settings)


def step(number, *shape, **settings):
    def arguments(random):
        def normal():
            return torch.randn(shape, generator=random, dtype=torch.float64)

        made = {"param": normal(), "grad": normal(), "exp_avg": normal()}
        made |= {"exp_avg_sq": normal() ** 2, "step": torch.tensor(number)}
        return made | {"lr": torch.tensor(0.125, dtype=torch.float64)}

    return Case(tile_nn.adamw, adamw, arguments, settings)


CASES = {
    ("rows", "float32"): rows(3, 2),
    ("scaled", "bfloat16"): rows(7, scale=3.0),
    ("none", "float16"): rows(0),
    ("first step", "float32"): step(1, 7, 5),
    ("later", "bfloat16"): step(1000, 13, weight_decay=0.1),
    ("much later", "float64"): step(10**6, 3, beta2=0.95, eps=1e-3),
}


@pytest.mark.parametrize("row", CASES, ids=", ".join)
@pytest.mark.parametrize("target", ["cpu", "interpret"])
def test_on_the_host(target, row):
    require_accurate(CASES[row], row[1], target)


@pytest.mark.parametrize("target", EMULATED)
@pytest.mark.parametrize("row", [("scaled", "bfloat16"), ("later", "bfloat16")], ids=", ".join)
def test_emulated(row, target):
    require_accurate(CASES[row], row[1], target)


@pytest.mark.parametrize("row", [("rows", "float32"), ("scaled", "bfloat16")], ids=", ".join)
def test_gradients(row):
    require_gradients(CASES[row], row[1])


@pytest.mark.parametrize("wrong", [5, -1])
def test_a_number_that_is_no_row(wrong):
    with pytest.raises(TileError, match=r"\[TL6009\] .* outside of its 5 elements"):
        tile_nn.embedding(torch.tensor([0, wrong]), torch.randn(5, 3))


def test_another_step_is_the_same_kernel():
    given = [*CASES["first step", "float32"].tensors("float32").values()]
    tile_nn.adamw(*given)
    known = tile_nn.adamw.compiled(*given)
    given[4:] = torch.tensor(2), torch.tensor(0.5)
    assert tile_nn.adamw.compiled(*given) is known
