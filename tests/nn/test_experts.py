"""`tile_nn.fused_experts`, one expert after another in plain torch."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import tile_nn
from support.nn_kernels import EMULATED, Case, require_accurate, require_gradients

GATES = {
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
}


def experts(x, gate_up, down, topk_weights, topk_ids, *, activation="silu", block_rows=32):
    wide = torch.promote_types(x.dtype, torch.float32)
    y = torch.zeros(x.shape, dtype=wide)
    for e in range(gate_up.shape[0]):
        token, k = torch.where(topk_ids == e)
        gate, up = F.linear(x[token], gate_up[e]).chunk(2, dim=-1)
        made = F.linear(GATES[activation](gate) * up, down[e]).to(wide)
        y = y.index_add(0, token, made * topk_weights[token, k, None].to(wide))
    return y.to(x.dtype)


def case(tokens, count, k, d=12, inner=6, ids=None, **settings):
    def arguments(random):
        def normal(*shape):
            return torch.randn(shape, generator=random, dtype=torch.float64)

        drawn = [torch.randperm(count, generator=random)[:k] for _ in range(tokens)]
        chosen = torch.stack(drawn).int() if ids is None else torch.tensor(ids)
        return {
            "x": normal(tokens, d),
            "gate_up": normal(count, 2 * inner, d) / d**0.5,
            "down": normal(count, d, inner) / inner**0.5,
            "topk_weights": normal(*chosen.shape).abs(),
            "topk_ids": chosen,
        }

    return Case(tile_nn.fused_experts, experts, arguments, settings)


CASES = {
    ("two of eight", "float32"): case(37, 8, 2, block_rows=4),
    ("all of them", "bfloat16"): case(13, 3, 3, block_rows=16),
    ("one token", "float16"): case(1, 16, 4),
    ("one expert", "float32"): case(19, 1, 1, block_rows=8, activation="gelu"),
    ("one for all", "float32"): case(
        9, 5, 2, ids=[[3, 3]] * 9, block_rows=4, activation="gelu_tanh"
    ),
    ("elsewhere", "float64"): case(
        5, 4, 2, ids=[[0, 4], [-1, 2], [-7, 10**6], [3, 3], [2, 0]], block_rows=2
    ),
}


@pytest.mark.parametrize("row", CASES, ids=", ".join)
@pytest.mark.parametrize("target", ["cpu", "interpret"])
def test_on_the_host(target, row):
    require_accurate(CASES[row], row[1], target)


@pytest.mark.filterwarnings("ignore:.* is whole in each thread:tile_launch.errors.TileWarning")
@pytest.mark.parametrize("target", EMULATED)
def test_emulated(target):
    require_accurate(CASES["all of them", "bfloat16"], "bfloat16", target)


@pytest.mark.parametrize(
    "row", [("two of eight", "float32"), ("elsewhere", "float64")], ids=", ".join
)
def test_gradients(row):
    require_gradients(CASES[row], row[1])


def test_any_number_of_tokens():
    given = CASES["two of eight", "float32"].tensors("float32")
    for tokens in (2, 5, 11, 23, 30):
        few = given | {n: given[n][:tokens] for n in ("x", "topk_weights", "topk_ids")}
        torch.testing.assert_close(tile_nn.fused_experts(**few), experts(**few))


def test_a_token_does_no_harm_to_others():
    given = CASES["two of eight", "float32"].tensors("float32")
    wanted = tile_nn.fused_experts(**given, block_rows=4)
    given["x"][5] = float("nan")
    found = tile_nn.fused_experts(**given, block_rows=4)
    others = torch.arange(37) != 5
    assert torch.equal(found[others], wanted[others])
    assert found[5].isnan().all()


def test_nothing():
    given = CASES["two of eight", "float32"].tensors("float32")
    none = given | {n: given[n][:0] for n in ("x", "topk_weights", "topk_ids")}
    assert tile_nn.fused_experts(**none).shape == (0, 12)
    without = given | {n: given[n][:, :0] for n in ("topk_weights", "topk_ids")}
    assert torch.equal(tile_nn.fused_experts(**without), torch.zeros(37, 12))
