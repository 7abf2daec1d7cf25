"""Bulk copies: boxes of tensors of every rank, rows of bytes, stores and reductions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tile_core.errors import InternalError, MisalignedAccess, MissingWait, OutOfBounds, TileError
from tile_sim import checking
from tile_sim.sources import SourceKernel
from tile_sim.tensor_maps import Boxes

MODES = ["late", "early", "random"]


def swizzled(flat: np.ndarray, swizzle: int) -> np.ndarray:
    """Return bytes with their chunks of 16 exchanged in rows of `swizzle` bytes."""
    if not swizzle:
        return flat
    rows = flat.reshape(-1, swizzle // 16, 16)
    out = np.empty_like(rows)
    per_line = 128 // swizzle  # rows in 128 bytes, which is how far the pattern looks
    for row in range(len(rows)):
        pattern = row // per_line % (swizzle // 16)
        for chunk in range(swizzle // 16):
            out[row, chunk ^ pattern] = rows[row, chunk]
    return out.reshape(flat.shape)


def expected_box(array, box, steps, at, swizzle, fill):
    """Return the bytes of a box, innermost coordinates first, by looking at every element."""
    counts = [-(-size // step) for size, step in zip(box, steps, strict=True)]
    values = np.empty(counts[::-1], array.dtype)
    for index in itertools.product(*(range(n) for n in counts[::-1])):
        place = [c + i * s for c, i, s in zip(at[::-1], index, steps[::-1], strict=True)]
        inside = all(0 <= p < n for p, n in zip(place, array.shape, strict=True))
        values[index] = array[tuple(place)] if inside else (np.nan if fill == "nan" else 0)
    return swizzled(np.frombuffer(values.tobytes(), np.uint8), swizzle)


def load_kernel(rank: int, cpp: str, count: int, size: int) -> SourceKernel:
    at = ", ".join(f"int(at[{i}])" for i in range(rank))
    text = f"""#include "tile.h"
TILE_KERNEL(32, 1) void load(TILE_TENSOR_MAP(A), tile::gptr<const int> at, tile::gptr<tile::u8> O) {{
  const int tid = threadIdx.x;
  tile::sptr<{cpp}> s = tile::smem<{cpp}>(0, {count});
  tile::sptr<tile::u64> full = tile::smem<tile::u64>(32768, 1);
  if (tid == 0) {{
    tile::mbarrier_init(full + 0, 1);
    tile::fence_mbarrier_init();
    tile::mbarrier_arrive_expect_tx(full + 0, {count * size});
    tile::tma_prefetch(A);
    tile::tma_load<{rank}>(s + 0, A, full + 0, {at});
  }}
  tile::sync();
  tile::mbarrier_wait(full + 0, 0);
  for (int i = tid; i < {count * size}; i += 32) {{
    O[i] = tile::view<tile::u8>(s)[i];
  }}
}}
TILE_EXPORT(load)
"""  # noqa: E501
    return SourceKernel(text, "load", block=32, shared_bytes=32776)


CASES = {
    "1 dimension": ((100,), (64,), (1,), (3,), 0, "zero", "float32"),
    "2 dimensions": ((20, 72), (32, 8), (1, 1), (16, 5), 64, "zero", "float16"),
    "3 dimensions": ((5, 9, 64), (64, 4, 2), (1, 1, 1), (0, 7, 1), 128, "zero", "float16"),
    "4 dimensions": ((3, 4, 6, 16), (16, 4, 2, 2), (1, 1, 1, 1), (0, 3, 3, 2), 32, "zero", "int16"),
    "5 dimensions": (
        (2, 3, 4, 5, 32), (32, 3, 2, 2, 2), (1, 1, 1, 1, 1), (0, 4, 3, 2, 1), 32, "zero", "uint8",
    ),
    "before the start": ((20, 72), (32, 8), (1, 1), (-5, -3), 64, "zero", "float16"),
    "wholly outside": ((20, 72), (32, 8), (1, 1), (80, 4), 0, "zero", "float32"),
    "filled with NaN": ((20, 64), (64, 8), (1, 1), (40, 17), 128, "nan", "float16"),
    "every second row": ((20, 64), (64, 8), (1, 2), (0, 3), 128, "zero", "float16"),
    "every third of two dimensions": (
        (7, 9, 16), (16, 6, 5), (1, 3, 2), (0, -3, 1), 64, "zero", "int32",
    ),
}  # fmt: skip
CPP = {"float16": "half_t", "float32": "float", "int16": "tile::i16", "uint8": "tile::u8",
       "int32": "int"}  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("async_mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_boxes_are_loaded(name, async_mode):
    shape, box, steps, at, swizzle, fill, dtype = CASES[name]
    array = np.random.default_rng(0).integers(1, 100, shape).astype(dtype)
    expected = expected_box(array, box, steps, at, swizzle, fill)
    kernel = load_kernel(len(box), CPP[dtype], len(expected) // array.itemsize, array.itemsize)
    out = np.full(len(expected), 0xEE, np.uint8)
    with checking("all", async_mode=async_mode):
        boxes = Boxes(array, box, swizzle, fill, steps)
        kernel(1, A=boxes, at=np.array(at, np.int32), O=out)
    found, wanted = out.view(dtype), expected.view(dtype)
    np.testing.assert_array_equal(found, wanted)


STORES = {
    "tma_store": lambda old, new: new,
    "tma_reduce_add": lambda old, new: old + new,
    "tma_reduce_min": np.minimum,
    "tma_reduce_max": np.maximum,
}


def store_kernel(function: str, dtype: str) -> SourceKernel:
    width = 128 // np.dtype(dtype).itemsize
    text = f"""#include "tile.h"
TILE_KERNEL(32, 1) void store(TILE_TENSOR_MAP(A), int x, int y) {{
  const int tid = threadIdx.x;
  tile::sptr<{CPP[dtype]}> s = tile::smem<{CPP[dtype]}>(0, {8 * width});
  for (int row = 0; row < 8; ++row) {{
    for (int i = tid; i < {width}; i += 32) {{
      s[row * {width} + ((i * {128 // width} / 16 ^ row) * {16 * width // 128}) + i % {16 * width // 128}] = {CPP[dtype]}(float(row * 7 - i % 5));
    }}
  }}
  tile::fence_proxy_async();
  tile::sync();
  if (tid == 0) {{
    tile::{function}<2>(A, s + 0, x, y);
    tile::tma_store_commit();
    tile::tma_store_wait<0>();
  }}
}}
TILE_EXPORT(store)
"""  # noqa: E501
    return SourceKernel(text, "store", block=32, shared_bytes=1024)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("async_mode", MODES)
@pytest.mark.parametrize(
    ("function", "dtype"),
    [(f, d) for f in STORES for d in ("float32", "int32", "float16")
     if d != "float32" or f in ("tma_store", "tma_reduce_add")],
)  # fmt: skip
def test_boxes_are_stored(function, dtype, async_mode):
    """Elements outside are left out; the rest of the tensor stays."""
    width = 128 // np.dtype(dtype).itemsize
    rng = np.random.default_rng(1)
    array = rng.integers(-20, 20, (20, 2 * width)).astype(dtype)
    wanted = array.copy()
    tile = (np.arange(8)[:, None] * 7 - np.arange(width) % 5).astype(dtype)
    rows, columns = slice(15, 20), slice(width + 8, 2 * width)
    part = tile[:5, : width - 8]
    wanted[rows, columns] = STORES[function](wanted[rows, columns], part)
    with checking("all", async_mode=async_mode):
        store_kernel(function, dtype)(1, A=Boxes(array, (width, 8), 128), x=width + 8, y=15)
    np.testing.assert_array_equal(array, wanted)


@pytest.mark.parametrize("how", ["min", "max"])
def test_engines_only_add_floats_of_32_bits(how):
    array = np.zeros((20, 64), np.float32)
    with pytest.raises(InternalError, match="no engine combines such elements so"):
        store_kernel(f"tma_reduce_{how}", "float32")(1, A=Boxes(array, (32, 8), 128), x=0, y=0)


ROWS = """#include "tile.h"
TILE_KERNEL(64, 1) void rows(tile::gptr<const float> A, tile::gptr<float> B, tile::gptr<float> C) {
  const int tid = threadIdx.x;
  tile::sptr<float> s = tile::smem<float>(0, 64);
  tile::sptr<tile::u64> full = tile::smem<tile::u64>(256, 1);
  if (tid == 0) {
    tile::mbarrier_init(full + 0, 1);
    tile::fence_mbarrier_init();
    tile::mbarrier_expect_tx(full + 0, 256);
    tile::bulk_load(s + 0, A + 4, 256, full + 0);
    tile::mbarrier_arrive(full + 0);
  }
  tile::sync();
  tile::mbarrier_wait(full + 0, 0);
  s[tid] = s[tid] * 2.0f;
  tile::fence_proxy_async();
  tile::sync();
  if (tid == 0) {
    tile::bulk_store(B + 8, s + 0, 256);
    tile::tma_store_commit();
    tile::bulk_reduce_add(C + 0, s + 32, 128);
    tile::tma_store_commit();
    tile::tma_store_wait_read<1>();
    tile::tma_store_wait_read<0>();
  }
}
TILE_EXPORT(rows)
"""


def _rows(text: str = ROWS) -> None:
    A, B, C = np.arange(80, dtype="f"), np.zeros(80, "f"), np.ones(32, "f")
    SourceKernel(text, "rows", block=64, shared_bytes=264)(1, A=A, B=B, C=C)
    np.testing.assert_array_equal(B[8:72], A[4:68] * 2)
    np.testing.assert_array_equal(B[:8], 0)
    np.testing.assert_array_equal(C, 1 + A[36:68] * 2)


@pytest.mark.parametrize("async_mode", MODES)
def test_rows_of_bytes(async_mode):
    with checking("all", async_mode=async_mode):
        _rows()


@pytest.mark.parametrize(
    ("before", "after", "error", "message"),
    [
        ("A + 4, 256, full", "A + 4, 250, full", InternalError, "multiples of 16"),
        ("A + 4, 256", "A + 3, 256", MisalignedAccess, "A[3]"),
        ("A + 4, 256", "A + 20, 256", OutOfBounds, "outside"),
        ("s + 0, A + 4", "s + 4, A + 4", OutOfBounds, "outside"),
        ("<1>();\n    tile::tma_store_wait_read<0>", "<1>();\n    tile::tma_store_wait_read<1>",
         MissingWait, "when the block ends"),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_copied(before, after, error, message):
    assert before in ROWS
    with pytest.raises(error) as caught:
        _rows(ROWS.replace(before, after))
    assert message in str(caught.value)


def test_memory_of_a_store_is_not_touched_before_it_is_read():
    text = ROWS.replace(
        "    tile::tma_store_wait_read<1>();\n",
        "    s[63] = 0.0f;  tile::tma_store_wait_read<1>();\n",
    )
    with checking("all"), pytest.raises(MissingWait) as caught:
        _rows(text)
    assert "writes element 63 of s, which the store of thread 0 may still read" in str(caught.value)


def test_what_a_store_brings_is_there_only_after_all_of_it():
    change = ("tile::tma_store_wait_read<0>();", "C[20] = 1.0f;  tile::tma_store_wait_read<0>();")
    text = ROWS.replace(*change).replace("C + 0, s + 32", "C + 8, s + 32")
    kernel = SourceKernel(text, "rows", block=64, shared_bytes=264)
    arrays = {"A": np.arange(80, dtype="f"), "B": np.zeros(80, "f"), "C": np.ones(64, "f")}
    with checking("race"), pytest.raises(TileError, match="the store of thread 0 may still write"):
        kernel(1, **arrays)
    whole = text.replace("C[20] = 1.0f;  tile::tma_store_wait_read<0>", "tile::tma_store_wait<0>")
    kernel = SourceKernel(
        whole.replace("wait<0>();", "wait<0>();  C[20] = 1.0f;"), "rows", block=64, shared_bytes=264
    )
    with checking("all"):
        kernel(1, **arrays)


def test_maps_that_no_engine_has():
    array = np.zeros((8, 64), np.float16)
    kernel = load_kernel(2, "half_t", 512, 2)
    for box, swizzle, message in [
        ((64, 300), 0, "boxes of"), ((4, 8), 0, "rows have 8 bytes"), ((64, 8), 64, "under"),
        ((64,), 0, "2 dimensions"),
    ]:  # fmt: skip
        arguments = {"at": np.zeros(2, np.int32), "O": np.zeros(1024, np.uint8)}
        with pytest.raises(InternalError, match=message):
            kernel(1, A=Boxes(array, box, swizzle), **arguments)


def test_a_box_is_aligned():
    text = load_kernel(1, "float", 64, 4)
    changed = "\n".join(text.text).replace("s + 0, A", "s + 4, A").replace("(0, 64)", "(0, 128)")
    kernel = SourceKernel(changed, "load", block=32, shared_bytes=32776)
    arguments = {"at": np.zeros(1, np.int32), "O": np.zeros(256, np.uint8)}
    with pytest.raises(MisalignedAccess, match="no multiple of"):
        kernel(1, A=Boxes(np.zeros(64, np.float32), (64,)), **arguments)
