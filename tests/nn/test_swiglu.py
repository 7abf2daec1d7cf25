"""`tile_nn.swiglu` and `tile_nn.silu_and_mul`, against plain torch."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import tile_nn
from support.nn_kernels import EMULATED, HOST, Case, in_turn, require_accurate, require_gradients


def two(gate, up):
    return F.silu(gate) * up


def packed(x):
    gate, up = x.chunk(2, dim=-1)
    return F.silu(gate) * up


def case(*shape, scale=1.0):
    def of_two(random):
        both = scale * torch.randn(2, *shape, generator=random, dtype=torch.float64)
        return {"gate": both[0], "up": both[1]}

    return Case(tile_nn.swiglu, two, of_two)


def case_in_one(*shape):
    def of_one(random):
        return {"x": torch.randn(shape, generator=random, dtype=torch.float64)}

    return Case(tile_nn.silu_and_mul, packed, of_one)


CASES = {
    "two": case(7, 13),
    "far from 0": case(3, 41, scale=60.0),
    "packed": case_in_one(5, 2, 22),
    "packed, one row": case_in_one(2),
}


@pytest.mark.parametrize(("name", "dtype"), in_turn(CASES))
@pytest.mark.parametrize("target", HOST)
def test_on_the_host(target, dtype, name):
    require_accurate(CASES[name], dtype, target)


@pytest.mark.parametrize("target", EMULATED)
def test_emulated(target):
    require_accurate(CASES["packed"], "bfloat16", target)


@pytest.mark.parametrize("name", CASES)
def test_gradients(name):
    require_gradients(CASES[name], "float32")


def test_nothing():
    assert tile_nn.silu_and_mul(torch.empty(0, 6)).shape == (0, 3)
    assert tile_nn.swiglu(torch.empty(3, 0), torch.empty(3, 0)).shape == (3, 0)


def test_what_is_not_finite():
    gate = torch.tensor([float("-inf"), float("inf"), float("nan"), -1e4, 1e4])
    assert torch.equal(tile_nn.swiglu(gate, torch.ones(5)).isnan(), F.silu(gate).isnan())
