"""Each thing that Hopper's copy engine does, alone: ranks, types, swizzles, edges, sums.

Kernels that use many of them at once are elsewhere; where one of those fails on hardware, these
say which part of the engine is not as we think.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.testing.oracle import numbers, poison

TARGET = "cuda:sm_90a@sim"
SHAPES = {1: (40,), 2: (5, 40), 3: (3, 5, 40), 4: (2, 3, 5, 40), 5: (2, 2, 3, 5, 40)}
BOXES = {1: (16,), 2: (4, 16), 3: (2, 4, 16), 4: (2, 2, 4, 16), 5: (1, 2, 2, 4, 16)}
BEGINS = {1: (32,), 2: (3, 32), 3: (2, 3, 32), 4: (1, 2, 3, 32), 5: (1, 1, 2, 3, 32)}
"""By rank: a tensor, a box, and where the box begins, so that it hangs over every edge."""


TYPES = (
    "uint8", "int8", "float8_e4m3fn", "float8_e5m2", "int16", "float16", "bfloat16", "int32",
    "uint32", "float32", "int64", "uint64", "float64",
)  # fmt: skip


def inside(rank: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Return the part of the tensor that the box covers, and the part of the box."""
    ends = zip(BEGINS[rank], BOXES[rank], SHAPES[rank], strict=True)
    kept = [(begin, min(begin + extent, size)) for begin, extent, size in ends]
    return tuple(slice(*k) for k in kept), tuple(slice(0, stop - start) for start, stop in kept)


def compiled(function: Any, *calls: str) -> Any:
    """Return a kernel whose text makes these calls."""
    kernel = tile.compile(function, target=TARGET)
    for call in calls:
        assert call in kernel.get_kernel_source()
    return kernel


@pytest.mark.parametrize("rank", SHAPES)
def test_boxes_that_hang_over_edges_are_filled_with_zeros(rank: int) -> None:
    shape, box, begin = SHAPES[rank], BOXES[rank], BEGINS[rank]

    @T.prim_func
    def load(A: T.Tensor(shape, "float32"), C: T.Tensor(box, "float32")):
        with T.Kernel(1, threads=128) as bx:
            tile_s = T.alloc_shared(box, "float32")
            T.copy(A[begin], tile_s, prefer_instruction="tma")
            T.copy(tile_s, C)

    a = numbers(np.random.default_rng(rank), shape, "float32", 1, 9)
    c, expected = poison(box, "float32"), np.zeros(box, "float32")
    theirs, ours = inside(rank)
    expected[ours] = a[theirs]
    compiled(load, f"tma_load<{rank}>")(a, c)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("rank", SHAPES)
def test_boxes_that_hang_over_edges_write_nothing_there(rank: int) -> None:
    shape, box, begin = SHAPES[rank], BOXES[rank], BEGINS[rank]

    @T.prim_func
    def store(A: T.Tensor(box, "float32"), C: T.Tensor(shape, "float32")):
        with T.Kernel(1, threads=128) as bx:
            tile_s = T.alloc_shared(box, "float32")
            T.copy(A, tile_s)
            T.copy(tile_s, C[begin], prefer_instruction="tma")

    rng = np.random.default_rng(rank)
    a, c = numbers(rng, box, "float32", 1, 9), numbers(rng, shape, "float32", -9, 0)
    expected = c.copy()
    theirs, ours = inside(rank)
    expected[theirs] = a[ours]
    compiled(store, f"tma_store<{rank}>")(a, c)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", TYPES)
def test_types_come_and_go_by_boxes(dtype: str) -> None:
    """Threads turn the tile in between; the next tensor begins where the engine may not write."""
    width = 64

    @T.prim_func
    def turn(A: T.Tensor((50, width), dtype), C: T.Tensor((width, 64), dtype)):
        with T.Kernel(1, threads=128) as bx:
            there = T.alloc_shared((64, width), dtype)
            back = T.alloc_shared((width, 64), dtype)
            T.copy(A[0:64, :], there, prefer_instruction="tma")
            for i, j in T.Parallel(width, 64):
                back[i, j] = there[j, i]
            T.copy(back, C, prefer_instruction="tma")

    a = numbers(np.random.default_rng(5), (50, width), dtype)
    c = poison((width, 64), dtype)
    kernel = compiled(turn, "tma_load<2>", "tma_store<2>")
    kernel(a, c)
    wanted = np.zeros((64, width), a.dtype)
    wanted[:50] = a
    np.testing.assert_array_equal(c.view(np.uint8), np.ascontiguousarray(wanted.T).view(np.uint8))


SWIZZLES = {
    128: T.make_full_bank_swizzled_layout,
    64: T.make_half_bank_swizzled_layout,
    32: T.make_quarter_bank_swizzled_layout,
}


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("width", SWIZZLES)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_chunks_of_rows_change_places_as_threads_think(width: int, dtype: str) -> None:
    """The engine writes a swizzled tile, threads read it; and the other way round."""
    columns = width // np.dtype(dtype).itemsize

    @T.prim_func
    def turn(A: T.Tensor((80, columns), dtype), C: T.Tensor((80, columns), dtype)):
        with T.Kernel(5, threads=64) as bx:
            there = T.alloc_shared((16, columns), dtype)
            back = T.alloc_shared((16, columns), dtype)
            T.annotate_layout({there: SWIZZLES[width](there), back: SWIZZLES[width](back)})
            T.copy(A[bx * 16, 0], there, prefer_instruction="tma")
            for i, j in T.Parallel(16, columns):
                back[i, j] = there[15 - i, columns - 1 - j]
            T.copy(back, C[bx * 16, 0], prefer_instruction="tma")

    a = np.random.default_rng(width).integers(0, 100, (80, columns)).astype(dtype)
    c = poison((80, columns), dtype)
    kernel = compiled(turn, "tma_load<2>", "tma_store<2>")
    kernel(a, c)
    np.testing.assert_array_equal(c, a.reshape(5, 16, columns)[:, ::-1, ::-1].reshape(80, columns))


@pytest.mark.parametrize("begin", [-3, 61])
def test_boxes_may_begin_before_a_tensor_and_end_behind_it(begin: int) -> None:
    @T.prim_func
    def move(A: T.Tensor((64, 32), "float16"), C: T.Tensor((64, 32), "float16"), at: T.int32):
        with T.Kernel(1, threads=128) as bx:
            tile_s = T.alloc_shared((16, 32), "float16")
            T.copy(A[at : at + 16, :], tile_s, prefer_instruction="tma")
            for i, j in T.Parallel(16, 32):
                C[i, j] = tile_s[i, j]

    a = numbers(np.random.default_rng(0), (64, 32), "float16", 1, 9)
    c = np.zeros((64, 32), "float16")
    rows = np.arange(begin, begin + 16)
    expected = np.where(((rows >= 0) & (rows < 64))[:, None], a[rows.clip(0, 63)], 0)
    compiled(move, "tma_load<2>")(a, c, begin)
    np.testing.assert_array_equal(c[:16], expected)


def test_the_largest_boxes() -> None:
    """256 rows of 128 bytes are one box; 256 rows of 256 bytes are two."""

    @T.prim_func
    def through(A: T.Tensor((300, 128), "float16"), C: T.Tensor((256, 128), "float16")):
        with T.Kernel(1, threads=128) as bx:
            tile_s = T.alloc_shared((256, 128), "float16")
            T.copy(A[44:300, :], tile_s, prefer_instruction="tma")
            T.copy(tile_s, C, prefer_instruction="tma")

    a = numbers(np.random.default_rng(0), (300, 128), "float16")
    c = poison((256, 128), "float16")
    compiled(through, "tma_load<2>", "tma_store<2>")(a, c)
    np.testing.assert_array_equal(c, a[44:])


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("kind", ["add", "max", "min"])
@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_boxes_are_combined_with_what_is_there(rank: int, kind: str) -> None:
    """Four blocks at once; integers are exact in any order."""
    shape, box, begin = SHAPES[rank], BOXES[rank], BEGINS[rank]
    update = {"add": T.atomic_add, "max": T.atomic_max, "min": T.atomic_min}[kind]
    ends = tuple(slice(b, b + n) for b, n in zip(begin, box, strict=True))

    @T.prim_func
    def combine(A: T.Tensor((4, *box), "int32"), C: T.Tensor(shape, "int32")):
        with T.Kernel(4, threads=128) as bx:
            tile_s = T.alloc_shared(box, "int32")
            T.copy(A[(bx, *(0,) * rank)], tile_s)
            update(C[ends], tile_s)

    rng = np.random.default_rng(rank)
    a, c = numbers(rng, (4, *box), "int32", -9, 10), numbers(rng, shape, "int32", -9, 10)
    expected = c.copy()
    theirs, ours = inside(rank)
    fold = {"add": np.add, "max": np.maximum, "min": np.minimum}[kind]
    for part in a:
        expected[theirs] = fold(expected[theirs], part[ours])
    compiled(combine, f"tma_reduce_{kind}<{rank}>")(a, c)
    np.testing.assert_array_equal(c, expected)


STRIDES = {
    "padded": ((3, 6, 40), (6 * 48, 48, 1)),
    "rows in another order": ((3, 6, 40), (48, 3 * 48, 1)),
    "rows that overlap": ((3, 6, 40), (16, 32, 1)),
    "rows that are the same": ((3, 6, 40), (48, 0, 1)),
}
"""Tensors whose rows do not simply follow each other: shape, and strides in elements."""


@pytest.mark.parametrize("name", STRIDES)
def test_rows_lie_anywhere(name: str) -> None:
    shape, strides = STRIDES[name]

    @T.prim_func
    def load(A: T.StridedTensor(shape, strides, "float32"), C: T.Tensor((2, 4, 16), "float32")):
        with T.Kernel(1, threads=128) as bx:
            tile_s = T.alloc_shared((2, 4, 16), "float32")
            T.copy(A[1, 2, 8], tile_s, prefer_instruction="tma")
            T.copy(tile_s, C)

    last = sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    memory = np.arange(last + 1, dtype="float32")
    a = np.lib.stride_tricks.as_strided(memory, shape, [4 * s for s in strides])
    c = poison((2, 4, 16), "float32")
    compiled(load, "tma_load<3>")(a, c)
    np.testing.assert_array_equal(c, a[1:3, 2:6, 8:24])
