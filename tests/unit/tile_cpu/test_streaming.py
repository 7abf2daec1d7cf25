"""Results too large for the caches: which are stored past them, and that they arrive."""

from dataclasses import replace

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.ir.parser import parse_kernel
from tile_core.ops.table import OPERATORS
from tile_cpu.lowering.streaming import streamed_buffers
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
