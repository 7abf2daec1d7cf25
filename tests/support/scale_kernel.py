"""A printed kernel with functions of the user, for tests of compilers and of what they say."""

from __future__ import annotations

import linecache

from tile_core.codegen import PrintedSource
from tile_core.errors import Span

TEXT = """\
#include "tile.h"

__device__ float twice(float x) {
  return 2.0f * x;
}

// scale for sm_80
TILE_KERNEL(128, 1) void scale(tile::gptr<float> A) {
  const int tid = threadIdx.x;
  A[tid] = twice(A[tid]);
}
TILE_EXPORT(scale)
"""
PROGRAM = """\
@T.prim_func
def scale(A: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128):
        for i in T.Parallel(128):
            A[i] = T.call_extern("float32", "twice", A[i])
"""


def scale_source() -> PrintedSource:
    """Return the kernel, its C text and the program of the user it came from."""
    linecache.cache["program.py"] = (len(PROGRAM), None, PROGRAM.splitlines(True), "program.py")
    lines = {number: Span("<source 1>", number - 2, 0, 30) for number in (3, 4, 5)}
    lines[8] = Span("program.py", 3, 9, 33)
    lines[10] = Span("program.py", 5, 19, 58)
    return PrintedSource(TEXT, lines, ("scale",))
