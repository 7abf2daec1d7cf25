"""`tile_nn.topk_softmax` and `grouped_topk`, against plain torch."""

from __future__ import annotations

import pytest
import torch

import tile_nn
from support.nn_kernels import EMULATED, Case, require_accurate, require_gradients


def topk_softmax(logits, topk, *, renormalize=True):
    p = torch.softmax(logits.float(), dim=-1)
    weights, ids = torch.topk(p, topk, dim=-1)
    return (weights / weights.sum(-1, keepdim=True) if renormalize else weights), ids.int()


def grouped_topk(
    logits, bias=None, *, topk, num_expert_group, topk_group, renormalize=True,
    routed_scaling_factor=1.0,
):  # fmt: skip
    scores = torch.sigmoid(logits if logits.dtype == torch.float64 else logits.float())
    choice = scores if bias is None else scores + bias
    grouped = choice.unflatten(-1, (num_expert_group, -1))
    best = grouped.topk(2, dim=-1).values.sum(-1).topk(topk_group, dim=-1).indices
    is_best = torch.zeros(grouped.shape[:-1], dtype=torch.bool).scatter(-1, best, True)
    left = grouped.masked_fill(~is_best[..., None], float("-inf")).flatten(-2)
    ids = left.topk(topk, dim=-1).indices
    weights = scores.gather(-1, ids)
    if renormalize:
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
    return (weights * routed_scaling_factor).float(), ids.int()


def logits(random, *shape):
    """Return logits without ties, also of 16 bits."""
    count = shape[-1]
    rows = torch.rand((*shape[:-1], count), generator=random).argsort(-1)
    return (rows - count // 2).double() / 8


def case(*shape, topk, **settings):
    def arguments(random):
        return {"logits": logits(random, *shape)}

    return Case(tile_nn.topk_softmax, topk_softmax, arguments, {"topk": topk, **settings})


def grouped(*shape, biased=True, **settings):
    def arguments(random):
        made = {"logits": logits(random, *shape)}
        bias = torch.rand(shape[-1:], generator=random).double() / 1000
        return made | ({"bias": bias} if biased else {})

    return Case(tile_nn.grouped_topk, grouped_topk, arguments, settings)


DEEPSEEK = {"topk": 4, "num_expert_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5}
CASES = {
    ("Mixtral", "float32"): case(7, 8, topk=2),
    ("Qwen2", "bfloat16"): case(3, 2, 13, topk=4, renormalize=False),
    ("all of them", "float16"): case(5, 3, topk=3),
    ("one", "float32"): case(5, 17, topk=1),
    ("DeepSeek", "float32"): grouped(5, 32, **DEEPSEEK),
    ("groups alone", "float32"): grouped(
        3, 12, biased=False, topk=2, num_expert_group=3, topk_group=1, renormalize=False
    ),
}


@pytest.mark.parametrize("row", CASES, ids=", ".join)
@pytest.mark.parametrize("target", ["cpu", "interpret"])
def test_on_the_host(target, row):
    require_accurate(CASES[row], row[1], target)


@pytest.mark.filterwarnings("ignore:.* is whole in each thread:tile_launch.errors.TileWarning")
@pytest.mark.parametrize("target", EMULATED)
def test_emulated(target):
    require_accurate(CASES["Qwen2", "bfloat16"], "bfloat16", target)


@pytest.mark.parametrize("row", [("Mixtral", "float32"), ("Qwen2", "bfloat16")], ids=", ".join)
def test_gradients(row):
    require_gradients(CASES[row], row[1])


def test_of_equal_logits_the_first_is_taken():
    weights, ids = tile_nn.topk_softmax(torch.zeros(3, 8), 2)
    assert torch.equal(ids, torch.tensor([[0, 1]] * 3, dtype=torch.int32))
    assert torch.equal(weights, torch.full((3, 2), 0.5))


def test_nothing():
    weights, ids = tile_nn.topk_softmax(torch.empty(0, 8), 2)
    assert weights.shape == ids.shape == (0, 2)
