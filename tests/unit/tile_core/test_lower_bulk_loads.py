"""Copies that ask for the engine are made by it where they stand, or the reason is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import UnsupportedOnTarget


def rounds(count: int) -> Any:
    """Return a kernel that copies a tile in bulk several times, and uses it in between."""

    @T.prim_func
    def kernel(A: T.Tensor((count * 64, 64), "float32"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as bx:
            tile_s = T.alloc_shared((64, 64), "float32")
            total = T.alloc_fragment((64, 64), "float32")
            T.clear(total)
            for k in T.serial(count):
                T.copy(A[k * 64, 0], tile_s, prefer_instruction="tma")
                for i, j in T.Parallel(64, 64):
                    total[i, j] = total[i, j] * 2 + tile_s[j, i]
            T.copy(total, C)

    return kernel


@pytest.mark.parametrize("count", [1, 2, 5])
def test_every_thread_sees_the_tile(count: int) -> None:
    """All checks are on: a missing wait, or a tile filled while it is read, would be an error."""
    compiled = tile.compile(rounds(count), target="cuda:sm_90a@sim")
    assert "tile::tma_load<2>" in compiled.get_kernel_source()
    a = np.random.default_rng(0).integers(-3, 4, (count * 64, 64)).astype("float32")
    c = np.full((64, 64), np.nan, "float32")
    compiled(a, c)
    expected = np.zeros((64, 64), "float32")
    for k in range(count):
        expected = expected * 2 + a[k * 64 : k * 64 + 64].T
    np.testing.assert_array_equal(c, expected)


def asking(columns: int, *, to_tensor: bool) -> Any:
    """Return a kernel with one copy that asks for the engine."""

    @T.prim_func
    def kernel(A: T.Tensor((64, columns), "float16"), C: T.Tensor((64, columns), "float16")):
        with T.Kernel(1, threads=128) as bx:
            tile_s = T.alloc_shared((64, columns), "float16")
            if to_tensor:
                T.copy(A, tile_s)
                T.copy(tile_s, C, prefer_instruction="tma")
            else:
                T.copy(A, tile_s, prefer_instruction="tma")
                T.copy(tile_s, C)

    return kernel


UNEVEN = "sm_90a cannot make this copy in bulk: rows of 12 elements are no multiple of 16 bytes"


@pytest.mark.parametrize(
    ("target", "columns", "to_tensor", "reason"),
    [
        ("cuda:sm_90a@sim", 12, False, UNEVEN),
        ("cuda:sm_90a@sim", 12, True, UNEVEN),
        (
            "cuda:sm_80@sim",
            64,
            False,
            "sm_80 cannot make this copy in bulk: it has no tensor memory accelerator",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(
    target: str, columns: int, to_tensor: bool, reason: str
) -> None:
    with pytest.raises(UnsupportedOnTarget) as refused:
        tile.compile(asking(columns, to_tensor=to_tensor), target=target)
    assert refused.value.message == reason
    assert refused.value.hint == "leave prefer_instruction out: T.copy finds a way"
    assert refused.value.span is not None


def test_small_tiles_begin_where_the_engine_can() -> None:
    """Two tiles of 64 bytes: the second does not follow the first at once."""

    @T.prim_func
    def kernel(A: T.Tensor((4, 8), "int32"), C: T.Tensor((4, 4), "int32")):
        with T.Kernel(1, threads=32) as bx:
            left = T.alloc_shared((4, 4), "int32")
            right = T.alloc_shared((4, 4), "int32")
            T.copy(A[0:4, 0:4], left, prefer_instruction="tma")
            T.copy(A[0:4, 4:8], right, prefer_instruction="tma")
            for i, j in T.Parallel(4, 4):
                C[i, j] = left[i, j] * 10 + right[j, i]

    compiled = tile.compile(kernel, target="cuda:sm_90a@sim")
    assert compiled.get_kernel_source().count("tile::tma_load<2>") == 2
    a = np.arange(32, dtype="int32").reshape(4, 8)
    c = np.full((4, 4), -1, "int32")
    compiled(a, c)
    np.testing.assert_array_equal(c, a[:, :4] * 10 + a[:, 4:].T)
