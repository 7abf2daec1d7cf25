"""Inputs of candidates whose kernels are told sizes and values when they are called."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import TuningError

QUICK = {"warmup": 0, "rep": 0.1}
NUMBERS = np.arange(64, dtype=np.float32)


def test_sizes_that_are_known_at_run_time(in_process):
    def make(**options):
        @tile.autotune(configs=[{"block": 16}], **QUICK, **options)
        @tile.jit(out_idx=[-1], target="cpu")
        def double(block=8):
            n = T.dynamic("n")

            @T.prim_func
            def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
                with T.Kernel(T.ceildiv(n, block)) as bx:
                    for i in T.Parallel(block):
                        B[bx * block + i] = A[bx * block + i] * 2

            return main

        return double

    with pytest.raises(TuningError, match="tuning needs a value for the dimension 'n' of A"):
        make().tune()
    kernel = make(sizes={"n": 128})()
    np.testing.assert_array_equal(kernel(NUMBERS), NUMBERS * 2)


def test_values_that_are_known_at_run_time(in_process):
    def make(**options):
        @tile.autotune(configs=[{"block": 16}, {"block": 32}], **{**QUICK, **options})
        @tile.jit(out_idx=[-1], target="cpu")
        def scale(block=16):
            @T.prim_func
            def main(A: T.Tensor((64,), "float32"), s: T.int32, B: T.Tensor((64,), "float32")):
                with T.Kernel(64 // block, threads=16) as bx:
                    for i in T.Parallel(block):
                        B[bx * block + i] = A[bx * block + i] * s

            return main

        return scale

    with pytest.raises(TuningError, match="tuning needs a value for the parameter 's'"):
        make()()
    seen = []
    options = {"sizes": {"s": 3}, "manual_check_prog": lambda *_: None}
    kernel = make(ref_prog=lambda a, s: seen.append(s) or a * s, **options)()
    np.testing.assert_array_equal(kernel(NUMBERS, 5), NUMBERS * 5)
    assert {*map(int, seen)} == {3}
