"""Quotients of integers that their type cannot hold."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api.language as T
from support.arrays import poisoned


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_the_lowest_integer_over_minus_one_wraps(run, dtype):
    """The machine's own instruction would end the process."""

    @T.prim_func
    def main(A: T.Tensor((20,), dtype), B: T.Tensor((20,), dtype), C: T.Tensor((2, 20), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(20):
                C[0, i] = A[i] // B[i]
                C[1, i] = A[i] % B[i]

    a, b, c = (
        np.full(20, np.iinfo(dtype).min, dtype),
        np.array([-1, 3] * 10, dtype),
        poisoned(2, 20, dtype=dtype),
    )
    run(main, a, b, c)
    lowest = int(a[0])
    assert c[0].tolist() == [lowest, lowest // 3] * 10
    assert c[1].tolist() == [0, lowest % 3] * 10
