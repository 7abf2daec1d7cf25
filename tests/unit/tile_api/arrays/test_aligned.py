"""Reductions over one dimension bind one variable: what users write meets in one kernel."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from support.captured_arrays import assert_agrees, filled


def residual(x, w):
    return x + x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1) @ w


def beside(x, w):
    return x + x @ w * x.sum(axis=-1, keepdims=True)


def shadowed(x, w):
    e = x - x.max(axis=0)
    return e @ w + (e / (1 + (e * e).sum(axis=0))) @ w.T + (x @ x.T).max(axis=-1, keepdims=True)


def nested(x, w):
    inner = (x @ w - (x @ w).sum(axis=-1, keepdims=True)) @ w
    return x + inner * (inner @ inner.T).sum(axis=0)[:, None]


@pytest.mark.parametrize("function", [residual, beside, shadowed, nested])
def test_the_meaning_stays(function) -> None:
    x, w = (filled((6, 6), "float64", seed, low=1) for seed in (1, 2))
    assert_agrees(function, x, w)


@pytest.mark.parametrize("function", [residual, beside])
def test_one_kernel(function) -> None:
    x = np.random.default_rng(0).standard_normal((40, 64)).astype("float32")
    w = np.random.default_rng(1).standard_normal((64, 64)).astype("float32")
    compiled = tile.function(target="cpu")(function)
    assert compiled.source(x, w).count("@tile.jit") == 1
    np.testing.assert_allclose(compiled(x, w), function(x, w), rtol=1e-3, atol=1e-4)
