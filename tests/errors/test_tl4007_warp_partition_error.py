# ruff: noqa: E501 - messages are compared as they are printed
"""TL4007: the warps of a block cannot share a matrix product."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import WarpPartitionError

MISTAKES = [
    Mistake(
        "four warps divide neither 17 nor 34 pieces",
        """
        @T.prim_func
        def kernel(A: T.Tensor((272, 16), "float16"), B: T.Tensor((16, 272), "float16")):
            with T.Kernel(1, threads=128):
                a = T.alloc_shared((272, 16), "float16")
                b = T.alloc_shared((16, 272), "float16")
                c = T.alloc_fragment((272, 272), "float32")
                T.copy(A, a)
                T.copy(B, b)
                T.gemm(a, b, c, clear_accum=True)
        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL4007] 4 warps cannot partition a matrix product of 272 x 272 with policy Square: it has 17 x 34 pieces of 16 x 8, and no grid of warps divides them; without matrix instructions one thread has 578 accumulator registers, and 255 at most
         --> program.py:9:9
          |
        9 |         T.gemm(a, b, c, clear_accum=True)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use threads=544, or a tile with more divisors
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is WarpPartitionError
    assert str(error) == mistake.expected
