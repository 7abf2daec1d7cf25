"""Random copies between tiles: whole, from a first element on, and parts; in loops and not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tile_api as tile
import tile_api.language as T
from tile_core.errors import TileError

ALLOCATE = {"shared": T.alloc_shared, "fragment": T.alloc_fragment}
SHAPES = st.lists(st.sampled_from((1, 2, 3, 4, 8, 16)), min_size=1, max_size=3).map(tuple)
DTYPES = st.sampled_from(("float32", "float16", "int8", "int32"))


@st.composite
def sides(draw: st.DrawFn) -> tuple[Any, ...]:
    scope = draw(st.sampled_from(tuple(ALLOCATE)))
    return scope, draw(SHAPES), draw(DTYPES), draw(st.sampled_from(("whole", "head", "part")))


def spelled(buffer: Any, shape: tuple[int, ...], how: str) -> Any:
    if how == "whole":
        return buffer
    if how == "head":
        return buffer[(0,) * len(shape)]
    return buffer[tuple(slice(n // 2, max(n // 2 + 1, n - 1)) for n in shape)]


def copies(source: Any, target: Any, threads: int, is_pipelined: bool) -> Any:
    (scope, shape, dtype, how), (to_scope, to_shape, to_dtype, to_how) = source, target

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(to_shape, to_dtype)):
        with T.Kernel(1, threads=threads):
            a = ALLOCATE[scope](shape, dtype)
            b = ALLOCATE[to_scope](to_shape, to_dtype)
            T.copy(B, b)
            if is_pipelined:
                for _ in T.Pipelined(3, num_stages=2):
                    T.copy(A, a)
                    T.copy(spelled(a, shape, how), spelled(b, to_shape, to_how))
            else:
                T.copy(A, a)
                T.copy(spelled(a, shape, how), spelled(b, to_shape, to_how))
            T.copy(b, B)

    return main


@pytest.mark.in_turn(3)
@pytest.mark.filterwarnings("ignore:a pipelined loop does not overlap its iterations")
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80@sim", "hip:gfx942@sim"])
def test_all_targets_agree(target: str) -> None:
    @settings(max_examples=25)
    @given(sides(), sides(), st.sampled_from((32, 128)), st.booleans())
    def agrees(source: Any, to: Any, threads: int, is_pipelined: bool) -> None:
        try:
            main = copies(source, to, threads, is_pipelined)
        except TileError:
            return  # the shapes do not fit
        given = np.arange(math.prod(source[1])).reshape(source[1]) % 9 - 4
        ours, theirs = (np.full(to[1], 7, to[2]) for _ in range(2))
        for name, result in (("interpret", ours), (target, theirs)):
            tile.compile(main, target=name)(given.astype(source[2]), result)
        np.testing.assert_array_equal(theirs, ours)

    agrees()


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80@sim", "hip:gfx942@sim"])
def test_heads_of_tiles_that_products_spread(target: str) -> None:
    """Products fix how both tiles are spread: elements go from thread to thread."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"),
        B: T.Tensor((64, 64), "float16"),
        C: T.Tensor((32, 32), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a, b = (T.alloc_shared((64, 64), "float16") for _ in range(2))
            large = T.alloc_fragment((64, 64), "float32")
            small = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, large, clear_accum=True)
            T.gemm(a[0:32, 0:64], b[0:64, 0:32], small, clear_accum=True)
            T.copy(large[32, 16], small)
            T.copy(small, C)

    a, b = (np.random.default_rng(k).integers(-2, 3, (64, 64)).astype("float16") for k in (0, 1))
    c = np.zeros((32, 32), "float32")
    tile.compile(main, target=target)(a, b, c)
    wanted = a.astype("float32") @ b.astype("float32")
    np.testing.assert_array_equal(c, wanted[32:64, 16:48])
