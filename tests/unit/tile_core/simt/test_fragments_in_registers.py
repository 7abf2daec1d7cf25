"""Fragments that registers hold, those that spill, and those that are too large for either."""

from __future__ import annotations

import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import OutOfScratch


def double(rows, columns, threads, dtype="float32"):
    @T.prim_func
    def kernel(A: T.Tensor((rows, columns), dtype)):
        with T.Kernel(1, threads=threads):
            held = T.alloc_fragment((rows, columns), dtype)
            T.copy(A, held)
            for i, j in T.Parallel(rows, columns):
                held[i, j] += held[i, j]
            T.copy(held, A)

    return kernel


@pytest.mark.parametrize(
    ("rows", "threads", "dtype", "target"),
    [
        (256, 128, "float32", "cuda:sm_80"),  # 512 registers: some are spilled
        (510, 128, "float32", "cuda:sm_90a"),  # the most that is taken: 1 020
        (1020, 128, "float16", "cuda:sm_80"),
        (1020, 256, "float32", "cuda:sm_70"),
        (1020, 128, "float32", "hip:gfx942"),  # which has 512 registers for each thread
    ],
)
def test_what_spills_is_lowered(rows, threads, dtype, target):
    tile.lower(double(rows, 256, threads, dtype), target=target)


@pytest.mark.parametrize(
    ("rows", "threads", "dtype", "target", "registers"),
    [
        (511, 128, "float32", "cuda:sm_80", 1022),
        (1022, 128, "float16", "cuda:sm_80@sim", 1022),
        (1 << 20, 1024, "int8", "cuda:sm_90a", 65536),
        (1025, 128, "float32", "hip:gfx942", 2050),
    ],
)
def test_what_no_machine_holds_is_refused(rows, threads, dtype, target, registers):
    with pytest.raises(OutOfScratch, match=f"takes {registers} registers of each of {threads}"):
        tile.lower(double(rows, 256, threads, dtype), target=target)
