"""Zeros keep their sign where one of two is chosen: compilers take one for the other."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T


@tile.jit(out_idx=[-1])
def chosen(dtype):
    @T.prim_func
    def main(x: T.Tensor((19,), dtype), out: T.Tensor((2, 19), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(19):
                out[0, i] = T.if_then_else(x[i] > 0, T.cast(0.0, dtype), T.cast(-0.0, dtype))
            for i in T.serial(19):
                out[1, i] = T.if_then_else(x[i] > 0, T.cast(-0.0, dtype), T.cast(0.0, dtype))

    return main


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_one_of_two_zeros(dtype):
    x = np.where(np.arange(19) % 3, 1, -1).astype(dtype)
    for target in ("cpu", "interpret"):
        found = tile.compile(chosen.get_tir(dtype), out_idx=[-1], target=target)(x)
        assert (found == 0).all()
        assert np.array_equal(np.signbit(found), [x < 0, x > 0])
