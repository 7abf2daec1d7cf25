"""`tile_nn.layer_norm`, `geglu` and `gelu_and_mul`, against plain torch."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import tile_nn
from support.nn_kernels import EMULATED, HOST, Case, in_turn, require_accurate, require_gradients


def layer_norm(x, weight, bias, residual, *, eps=1e-5):
    if residual is not None:
        x = residual = x + residual
    wide = torch.promote_types(x.dtype, torch.float32)
    weight, bias = (None if p is None else p.to(wide) for p in (weight, bias))
    y = F.layer_norm(x.to(wide), x.shape[-1:], weight, bias, eps).to(x.dtype)
    return y if residual is None else (y, residual)


def geglu(gate, up, *, approximate="tanh"):
    return F.gelu(gate, approximate=approximate) * up


def gelu_and_mul(x, *, approximate="none"):
    return geglu(*x.chunk(2, dim=-1), approximate=approximate)


def norm(*shape, affine=True, residual=False, mean=0.0, **settings):
    def arguments(random):
        def normal(*sizes):
            return torch.randn(sizes, generator=random, dtype=torch.float64)

        columns = shape[-1:]
        return {
            "x": mean + normal(*shape),
            "weight": normal(*columns) if affine else None,
            "bias": normal(*columns) if affine else None,
            "residual": normal(*shape) if residual else None,
        }

    return Case(tile_nn.layer_norm, layer_norm, arguments, settings)


def gate(kernel, meant, names, *shape, scale=1.0, **settings):
    def arguments(random):
        made = scale * torch.randn(len(names), *shape, generator=random, dtype=torch.float64)
        return dict(zip(names, made, strict=True))

    return Case(kernel, meant, arguments, settings)


CASES = {
    "norm": norm(7, 13),
    "norm of a sum": norm(3, 2, 31, residual=True, eps=1e-6),
    "norm alone": norm(5, 17, affine=False),
    "far from 0": norm(3, 101, mean=1000.0),
    "one element": norm(4, 1),
    "tanh": gate(tile_nn.geglu, geglu, ("gate", "up"), 5, 11),
    "erf": gate(tile_nn.geglu, geglu, ("gate", "up"), 3, 2, 7, approximate="none", scale=4.0),
    "packed": gate(tile_nn.gelu_and_mul, gelu_and_mul, ("x",), 5, 26),
    "packed tanh": gate(tile_nn.gelu_and_mul, gelu_and_mul, ("x",), 7, 2, approximate="tanh"),
}


@pytest.mark.parametrize(("name", "dtype"), in_turn(CASES))
@pytest.mark.parametrize("target", HOST)
def test_on_the_host(target, dtype, name):
    require_accurate(CASES[name], dtype, target)


@pytest.mark.parametrize("target", EMULATED)
def test_emulated(target):
    require_accurate(CASES["norm of a sum"], "bfloat16", target)


@pytest.mark.parametrize("name", ["norm of a sum", "norm alone", "tanh", "packed"])
def test_gradients(name):
    require_gradients(CASES[name], "float32")


def test_nothing():
    for rows, columns in ((0, 8), (3, 0)):
        assert tile_nn.layer_norm(torch.empty(rows, columns)).shape == (rows, columns)
    assert tile_nn.gelu_and_mul(torch.empty(0, 6)).shape == (0, 3)
