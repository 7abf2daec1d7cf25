"""What certainly leaves a tile is refused; what may never happen is not."""

from __future__ import annotations

import pytest

import tile_api.language as T
from tile_core.errors import IndexMismatch

SCOPES = {
    "fragment": T.alloc_fragment,
    "shared": T.alloc_shared,
    "local": T.alloc_local,
}


@pytest.mark.parametrize("scope", ["fragment", "shared"])
@pytest.mark.parametrize("extent", [8, 9, 64])
def test_data_parallel_loops(scope: str, extent: int) -> None:
    def trace() -> None:
        @T.prim_func
        def main(A: T.Tensor((64,), "int32")):
            with T.Kernel(1, threads=32):
                cells = SCOPES[scope]((8,), "int32")
                for i in T.Parallel(extent):
                    cells[i] = A[i]

    if extent == 8:
        trace()
    else:
        with pytest.raises(IndexMismatch, match=f"{extent - 1} is outside dimension 0 of 'cells'"):
            trace()


@pytest.mark.parametrize("scope", SCOPES)
def test_loads_in_rounds_of_loops(scope: str) -> None:
    with pytest.raises(IndexMismatch, match=r"-1 is outside dimension 0 of 'cells'.* k is 6"):

        @T.prim_func
        def main(A: T.Tensor((64,), "int32")):
            with T.Kernel(1, threads=32):
                cells = SCOPES[scope]((8,), "int32")
                cells[0] = 1
                for k in T.serial(0, 8, 2):
                    A[k] = A[k] + cells[5 - k]


@pytest.mark.parametrize("scope", ["fragment", "shared"])
def test_what_may_never_happen(scope: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), n: T.int32):
        with T.Kernel(1, threads=32):
            cells = SCOPES[scope]((8,), "int32")
            for i in T.Parallel(64):
                if i < 8:
                    cells[i] = A[i]
            for i in T.Parallel(64):
                A[i] = T.if_then_else(i < 8, cells[i], 0)
            for k in T.serial(n):
                for i in T.Parallel(9):
                    cells[i] = k
            for k in T.serial(0):
                for i in T.Parallel(9):
                    cells[i] = k
            for k in T.serial(9):
                if k == n:
                    break
                A[k] = cells[k]
            for i in T.Parallel(n):
                cells[i] = A[i]
            for i in T.Parallel(64):
                cells[i % 8] = i // 8
