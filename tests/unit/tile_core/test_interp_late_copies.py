"""Asynchronous copies that arrive as late as they may: mistakes that luck would hide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api.language as T
from tile_core.errors import DataRace, UninitialisedRead
from tile_core.interp import InterpretOptions, interpret

LATE = InterpretOptions(late_copies=True)


def run(function: Any, options: InterpretOptions = LATE) -> np.ndarray[Any, Any]:
    source, target = np.arange(16, dtype=np.int32), np.full(16, -1, np.int32)
    interpret(function.kernel, [source, target], options=options)
    return target


def test_data_is_there_after_the_wait() -> None:
    @T.prim_func
    def main(A: T.Tensor((16,), "int32"), B: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=16):
            S = T.alloc_shared((2, 8), "int32")
            T.async_copy(A[0:8], S[0, 0:8])
            T.async_copy(A[8:16], S[1, 0:8])
            T.ptx_wait_group(1)
            T.copy(S[0, 0:8], B[0:8])
            T.ptx_wait_group(0)
            T.copy(S[1, 0:8], B[8:16])

    np.testing.assert_array_equal(run(main), np.arange(16))


def test_data_is_not_there_before() -> None:
    @T.prim_func
    def main(A: T.Tensor((16,), "int32"), B: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=16):
            S = T.alloc_shared((2, 8), "int32")
            T.async_copy(A[0:8], S[0, 0:8])
            T.async_copy(A[8:16], S[1, 0:8])
            T.ptx_wait_group(1)
            T.copy(S[1, 0:8], B[8:16])

    assert run(main, InterpretOptions())[8] == 8
    with pytest.raises(UninitialisedRead, match="S"):
        run(main)


def test_sources_must_not_change_meanwhile() -> None:
    @T.prim_func
    def main(A: T.Tensor((16,), "int32"), B: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=16):
            S = T.alloc_shared((16,), "int32")
            T.async_copy(A, S)
            T.fill(A[3:5], 7)
            T.ptx_wait_group(0)
            T.copy(S, B)

    with pytest.raises(DataRace, match="'A' changes while"):
        run(main)


def test_what_arrives_late_overwrites() -> None:
    @T.prim_func
    def main(A: T.Tensor((16,), "int32"), B: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=16):
            S = T.alloc_shared((16,), "int32")
            T.async_copy(A, S)
            T.fill(S, 5)
            T.ptx_wait_group(0)
            T.copy(S, B)

    np.testing.assert_array_equal(run(main), np.arange(16))
