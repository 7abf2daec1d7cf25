"""Stores of single elements of four bits: races of elements are told, those of bytes are none."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import DataRace, TileError
from tile_sim import checking
from tile_sim.sources import SourceKernel

TARGET = "cuda:sm_80@sim"
TEXT = """
#include "tile.h"
TILE_KERNEL(64, 1) void halves(tile::gptr<tile::u8> A, tile::gptr<int> B) {
  const int t = threadIdx.x;
  auto space = tile::smem<tile::u8>(0, 64);
  tile::store_nibble(MEMORY + (t >> 1), (t & 1) * 4, tile::u8(t % 7));
  NEXT;
}
TILE_EXPORT(halves)
"""
MEMORY = {"global": "A", "shared": "space"}
BESIDE = "tile::store_nibble(MEMORY + (t >> 1), (t & 1 ^ 1) * 4, tile::u8(t % 5))"
OTHERS = "B[t] = MEMORY[(t + 62) % 64 >> 1]"
NEXT = {  # what a thread does next, and whether that is a race
    "nothing": ("", False),
    "stores what its neighbour stored": (BESIDE, True),
    "stores what its neighbour stored and waits before": (f"tile::sync(); {BESIDE}", False),
    "stores other bytes": (
        "tile::store_nibble(MEMORY + 32 + (t >> 1), (t & 1) * 4, tile::u8(1))", False
    ),
    "reads a half of its own": ("B[t] = MEMORY[t >> 1] >> (t & 1) * 4 & 15", False),
    "reads two halves of others": (OTHERS, True),
    "reads two halves of others and waits before": (f"tile::sync(); {OTHERS}", False),
    "writes bytes of others": ("if (t < 32) MEMORY[(t + 16) % 32] = 1", True),
    "writes bytes of others and waits before": (
        "tile::sync(); if (t < 32) MEMORY[(t + 16) % 32] = 1", False
    ),
    "waits and writes, and others store halves": (
        "tile::sync(); if (t < 32) MEMORY[t] = 1; "
        "if (t > 61) tile::store_nibble(MEMORY, 0, tile::u8(2))", True
    ),
}  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("form", NEXT)
def test_threads_of_one_block(form: str, memory: str) -> None:
    then, is_race = NEXT[form]
    text = TEXT.replace("NEXT", then).replace("MEMORY", MEMORY[memory])
    kernel = SourceKernel(text, "halves", block=64, shared_bytes=64, warp_size=32, file="halves.cu")
    arguments = {"A": np.zeros(64, np.uint8), "B": np.zeros(64, np.int32)}
    with checking("all", threads=1):
        if not is_race:
            kernel((1,), **arguments)
            return
        with pytest.raises(DataRace):
            kernel((1,), **arguments)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [("t % 7", "t % 17", "of the number 16, at bit 0"), ("(t & 1) * 4", "(t & 1) * 5", "at bit 5")],
)
def test_what_is_no_half_is_told(right: str, wrong: str, said: str) -> None:
    text = TEXT.replace("NEXT", "").replace("MEMORY", "A").replace(right, wrong)
    kernel = SourceKernel(text, "halves", block=64, shared_bytes=64, warp_size=32, file="halves.cu")
    with checking("all", threads=1), pytest.raises(TileError, match=said):
        kernel((1,), A=np.zeros(64, np.uint8), B=np.zeros(64, np.int32))


@pytest.mark.parametrize("reach", [7, 8], ids=["apart", "across"])
def test_blocks(reach: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((24,), "uint4")):
        with T.Kernel(3, threads=32) as bx:
            for i in T.Parallel(reach):
                A[bx * 7 + i] = T.cast(bx + 1, "uint4")

    kernel = tile.compile(main, target=TARGET)
    found = np.full(12, 0x5A, np.uint8)
    with checking("all"):
        if reach == 8:
            with pytest.raises(DataRace):
                kernel(found)
            return
        kernel(found)
    low_first = [n for byte in found.tolist() for n in (byte & 15, byte >> 4)]
    assert low_first == [1] * 7 + [2] * 7 + [3] * 7 + [5, 10, 5]


def test_nothing_beside_the_tensor_is_touched() -> None:
    """The word that is exchanged reaches beyond the end; what is accessed is one byte."""

    @T.prim_func
    def main(A: T.Tensor((2,), "uint4")):
        with T.Kernel(2, threads=32) as bx:
            A[bx] = T.cast(bx + 1, "uint4")

    around = np.full(9, 0x5A, np.uint8)
    with checking("all"):
        tile.compile(main, target=TARGET)(around[3:4])
    np.testing.assert_array_equal(around, [0x5A] * 3 + [0x21] + [0x5A] * 5)
