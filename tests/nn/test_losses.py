"""`tile_nn.cross_entropy` and `linear_cross_entropy`, against plain torch."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

import tile_nn
from support.nn_kernels import EMULATED, Case, require_accurate, require_gradients
from tile_core.errors import TileError

ROWS, CLASSES, D = 7, 23, 12
TARGET = torch.tensor([3, -100, 0, 22, 22, 5, 11])


def loss_of(logits, target, softcap=0.0, z_loss=0.0, reduction="mean", **settings):
    if softcap:
        logits = softcap * torch.tanh(logits / softcap)
    loss = F.cross_entropy(logits, target.long(), reduction="none", **settings)
    counts = target != settings.get("ignore_index", -100)
    loss = loss + z_loss * torch.logsumexp(logits, -1).square() * counts
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / counts.sum()


def wide(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


def meant(logits, target, **settings):
    return loss_of(wide(logits), target, **settings)


def linear(x, weight, target, bias=None, **settings):
    """Logits are rounded, as models have them."""
    return loss_of(wide(F.linear(x, weight, bias)), target, **settings)


def case(target=TARGET, scale=1.0, **settings):
    def arguments(random):
        logits = torch.randn((len(target), CLASSES), generator=random, dtype=torch.float64)
        return {"logits": scale * logits, "target": target}

    return Case(tile_nn.cross_entropy, meant, arguments, settings)


def fused(biased=False, **settings):
    def arguments(random):
        def normal(*shape):
            return torch.randn(shape, generator=random, dtype=torch.float64)

        made = {"x": normal(ROWS, D), "weight": normal(CLASSES, D), "target": TARGET}
        return made | ({"bias": normal(CLASSES)} if biased else {})

    return Case(tile_nn.linear_cross_entropy, linear, arguments, settings)


ROW_BY_ROW = {
    ("mean", "float32"): case(),
    ("sum", "bfloat16"): case(reduction="sum", label_smoothing=0.1),
    ("each", "float16"): case(reduction="none", z_loss=0.01),
    ("another number is ignored", "float64"): case(TARGET.clamp(0), ignore_index=22),
    ("32 bits", "float32"): case(TARGET.int(), label_smoothing=0.2, z_loss=0.1),
    ("large, capped", "float32"): case(scale=100.0, softcap=30.0, reduction="none"),
    ("large", "bfloat16"): case(scale=1000.0, reduction="none"),
    ("product", "float32"): fused(label_smoothing=0.1, z_loss=0.01),
    ("product, biased", "bfloat16"): fused(biased=True, reduction="none"),
    ("product, capped", "float64"): fused(softcap=2.0, reduction="sum"),
}


@pytest.mark.parametrize("row", ROW_BY_ROW, ids=", ".join)
@pytest.mark.parametrize("target", ["cpu", "interpret"])
def test_on_the_host(target, row):
    require_accurate(ROW_BY_ROW[row], row[1], target)


@pytest.mark.parametrize("target", EMULATED)
def test_emulated(target):
    require_accurate(ROW_BY_ROW["product, biased", "bfloat16"], "bfloat16", target)


@pytest.mark.parametrize("row", [*ROW_BY_ROW][1::2], ids=", ".join)
def test_gradients(row):
    require_gradients(ROW_BY_ROW[row], row[1])


def test_rows_that_are_all_ignored():
    logits = torch.randn(3, 5, requires_grad=True)
    target = torch.full((3,), -100)
    assert math.isnan(tile_nn.cross_entropy(logits, target).item())
    loss = tile_nn.cross_entropy(logits, target, reduction="sum")
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(logits.grad, torch.zeros(3, 5))


def test_an_ignored_row_may_hold_anything():
    logits = torch.randn(2, 5)
    logits[1] = float("nan")
    logits.requires_grad_()
    target = torch.tensor([2, -100])
    loss = tile_nn.cross_entropy(logits, target)
    loss.backward()
    assert torch.allclose(loss, F.cross_entropy(logits[:1], target[:1]))
    assert torch.equal(logits.grad[1], torch.zeros(5))


@pytest.mark.parametrize("wrong", [5, -1, -99, 10**9])
def test_a_target_that_is_no_class(wrong):
    target = torch.tensor([2, wrong])
    with pytest.raises(TileError, match=r"\[TL6009\] .* outside of its 5 elements"):
        tile_nn.cross_entropy(torch.randn(2, 5), target)
    with pytest.raises(TileError, match=r"\[TL6009\] .* outside of its 5 elements"):
        tile_nn.linear_cross_entropy(torch.randn(2, 3), torch.randn(5, 3), target)


def test_nothing():
    none = torch.empty(0, dtype=torch.int64)
    assert tile_nn.cross_entropy(torch.empty(0, 5), none, reduction="none").shape == (0,)
    assert tile_nn.cross_entropy(torch.empty(0, 5), none, reduction="sum").item() == 0
