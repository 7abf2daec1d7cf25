"""`tile_nn.rms_norm`, against the formula in plain torch."""

from __future__ import annotations

import pytest
import torch

import tile_nn
from support.nn_kernels import EMULATED, HOST, Case, in_turn, require_accurate, require_gradients


def meant(x, weight, residual, *, eps=1e-6, offset=0.0, casting_mode="llama"):
    """The norm as models write it."""
    wide = torch.promote_types(x.dtype, torch.float32)
    if residual is not None:
        x = residual = x + residual
    y = x.to(wide) * torch.rsqrt(x.to(wide).square().mean(-1, keepdim=True) + eps)
    if casting_mode == "llama":
        y = y.to(x.dtype) if weight is None else (weight + offset) * y.to(x.dtype)
    else:
        y = (y if weight is None else y * (weight.to(wide) + offset)).to(x.dtype)
    return y if residual is None else (y, residual)


def case(*shape, weight=True, residual=False, scale=1.0, **settings):
    def arguments(random):
        return {
            "x": scale * torch.randn(shape, generator=random, dtype=torch.float64),
            "weight": torch.randn(shape[-1], generator=random).double() if weight else None,
            "residual": torch.randn(shape, generator=random).double() if residual else None,
        }

    return Case(tile_nn.rms_norm, meant, arguments, settings)


CASES = {
    "llama": case(7, 13),
    "gemma": case(3, 2, 17, offset=1.0, casting_mode="gemma"),
    "residual": case(5, 31, residual=True),
    "no weight": case(2, 19, weight=False, eps=1e-3),
    "one element": case(4, 1),
    "one row": case(101),
    "large": case(3, 67, scale=100.0),
    "small": case(3, 67, scale=1e-3, casting_mode="gemma"),
}


@pytest.mark.parametrize(("name", "dtype"), in_turn(CASES))
@pytest.mark.parametrize("target", HOST)
def test_on_the_host(target, dtype, name):
    require_accurate(CASES[name], dtype, target)


@pytest.mark.parametrize("target", EMULATED)
def test_emulated(target):
    require_accurate(CASES["residual"], "float16", target)


@pytest.mark.parametrize(
    ("name", "dtype"), [("llama", "float32"), ("gemma", "bfloat16"), ("residual", "float32")]
)
def test_gradients(name, dtype):
    require_gradients(CASES[name], dtype)


def test_nothing():
    for rows, columns in ((0, 8), (3, 0)):
        y = tile_nn.rms_norm(torch.empty(rows, columns), torch.empty(columns))
        assert y.shape == (rows, columns)


def test_rows_of_zeros_and_of_what_is_not_finite():
    x = torch.zeros(4, 8)
    x[1, 3], x[2, 5] = float("inf"), float("nan")
    y = tile_nn.rms_norm(x, torch.ones(8))
    assert torch.equal(y.isnan().any(-1), torch.tensor([False, True, True, False]))
    assert torch.equal(y[[0, 3]], torch.zeros(2, 8))


def test_a_norm_in_a_function_is_a_part_of_its_kernel():
    import numpy as np

    import tile_api as tile

    @tile.function
    def scaled(x, w):
        return tile_nn.rms_norm(x, w) * 2

    x, w = np.ones((5, 12), "float32"), np.ones(12, "float32")
    assert len(scaled.kernels(x, w)) == 1
