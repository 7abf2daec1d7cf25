"""Results too large for the caches: which are stored past them, and that they arrive."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.ir.parser import parse_kernel
from tile_core.ops.operator_table import OPERATORS
from tile_cpu.lowering.cache_hints import streamed_buffers
from tile_cpu.machine import MACHINES

TEXT = """\
kernel k(A: global float32[4096], B: global float32[4096], C: global float32[4096]):
  launch bx: int32 in (4) threads tx: int32, ty: int32, tz: int32 in (1, 1, 1):
    for n: int32 in range(0, 2, 1) serial:
      parallel i: int32 in (512):
        B[bx * 1024 + n * 512 + i] = A[bx * 1024 + n * 512 + i]
"""


def streamed(text: str, l3_bytes: int) -> list[str]:
    machine = replace(MACHINES["x86-64-v4"], l3_bytes=l3_bytes)
    return [b.name for b in streamed_buffers(parse_kernel(text, OPERATORS, str), machine)]


def test_a_result_that_does_not_fit_is_streamed() -> None:
    assert streamed(TEXT, 3 * 4096 * 4) == ["B"]


def test_a_result_that_fits_is_not() -> None:
    assert streamed(TEXT, 3 * 4096 * 4 + 1) == []


@pytest.mark.parametrize(
    "changed",
    [
        "B[bx * 1024 + n * 512 + i] = B[bx * 1024 + n * 512 + i] + A[i]",  # read as well
        "B[bx * 1024 + i] = A[i]",  # once per round of n
        "A[bx * 1024 + n * 512 + i] = A[i]",
    ],
)
def test_what_is_read_or_written_again_is_not_streamed(changed: str) -> None:
    text = TEXT.replace(TEXT.splitlines()[-1].strip(), changed)
    assert streamed(text, 1) == []


@pytest.mark.parametrize("offset", [0, 1, 16])
def test_streamed_results_arrive_at_any_alignment(offset: int) -> None:
    rows, columns = 4200, 1000  # with the source, more than 32 MiB

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "int32"), C: T.Tensor((rows, columns), "int32")):
        with T.Kernel(T.ceildiv(rows, 60)) as bx:
            for i, j in T.Parallel(60, columns):
                C[bx * 60 + i, j] = A[bx * 60 + i, j] * 2 + 1

    kernel = tile.compile(main, target="cpu:x86-64-v3")
    assert "tile_stream_i32x8" in kernel.ir("lowered")
    a = np.arange(rows * columns, dtype="int32").reshape(rows, columns)
    memory = np.full(rows * columns + 64, -1, "int32")
    c = memory[offset : offset + rows * columns].reshape(rows, columns)
    kernel(a, c)
    np.testing.assert_array_equal(c, a * 2 + 1)
    assert (memory[offset + rows * columns :] == -1).all()


def stream(columns: int, block: int, function: Callable[[Any], Any]) -> Any:
    """Return the AVX2 kernel ``C = function(A)`` of 72 rows, `block` elements a program."""

    @T.prim_func
    def main(A: T.Tensor((72, columns), "float32"), C: T.Tensor((72, columns), "float32")):
        with T.Kernel(columns // block, 72) as (bx, by):
            for i in T.Parallel(block):
                C[by, bx * block + i] = function(A[by, bx * block + i])

    return tile.compile(main, target="cpu:x86-64-v3")


@pytest.mark.parametrize("offset", [0, 1, 8])
def test_what_is_read_and_translated_ahead_arrives_at_any_alignment(offset: int) -> None:
    columns = 2**16  # with the result, more than 32 MiB
    kernel = stream(columns, 2**12, T.floor)
    assert "tile_enter_i32x8" in kernel.ir("lowered")
    assert "prefetcht1" in kernel.asm  # further along A
    assert "prefetcht0" in kernel.asm  # the pages of C
    a = (np.arange(72 * columns, dtype="float32") / 2).reshape(72, columns)
    memory = np.full(72 * columns + 64, -1, "float32")
    c = memory[offset : offset + 72 * columns].reshape(72, columns)
    kernel(a, c)
    np.testing.assert_array_equal(c, np.floor(a))
    assert (memory[offset + 72 * columns :] == -1).all()


@pytest.mark.parametrize(
    ("columns", "block", "function"),
    [
        (2**16, 2**12, lambda x: x + x),  # moves: many reads are in flight by themselves
        (2**12, 2**12, T.floor),  # fits the caches
    ],
)
def test_what_is_not_read_ahead(columns: int, block: int, function: Callable[[Any], Any]) -> None:
    kernel = stream(columns, block, function)
    assert "tile_enter" not in kernel.ir("lowered")
    assert "prefetch" not in kernel.asm


def test_short_stretches_are_not_read_beyond_their_ends() -> None:
    kernel = stream(2**16, 2**10, T.floor)
    assert "tile_enter_i32x8" in kernel.ir("lowered")
    assert "llvm.prefetch" not in kernel.ir("lowered")


@pytest.mark.parametrize("rows", [2, 512])
def test_sums_of_long_rows_are_read_ahead(rows: int) -> None:
    """A loop that only reads waits where a page ends; of small tensors nothing is far away."""

    @T.prim_func
    def main(A: T.Tensor((rows, 2**14), "float32"), C: T.Tensor((rows,), "float32")):
        with T.Kernel(rows) as by:
            a, total = T.alloc_fragment((1, 4096), "float32"), T.alloc_fragment((1,), "float32")
            T.fill(total, 0.0)
            for k in T.serial(4):
                T.copy(A[by : by + 1, k * 4096 : k * 4096 + 4096], a)
                T.reduce_sum(a, total, dim=1, clear=False)
            T.copy(total, C[by : by + 1])

    text = tile.compile(main, target="cpu:x86-64-v3").ir("lowered")
    assert ("llvm.prefetch" in text) is (rows == 512)


def test_narrow_elements_are_streamed_half_a_register_at_a_time() -> None:
    rows, columns = 256, 2**16  # with the result, more than 32 MiB

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float16"), C: T.Tensor((rows, columns), "float16")):
        with T.Kernel(columns // 4096, rows) as (bx, by):
            for i in T.Parallel(4096):
                C[by, bx * 4096 + i] = T.floor(A[by, bx * 4096 + i])

    kernel = tile.compile(main, target="cpu:x86-64-v3")
    assert "tile_enter_i16x8" in kernel.ir("lowered")
    a = (np.arange(rows * columns, dtype="int32") % 4096 / 4).astype("float16")
    c = np.full_like(a, -1)
    kernel(a.reshape(rows, columns), c.reshape(rows, columns))
    np.testing.assert_array_equal(c, np.floor(a))
