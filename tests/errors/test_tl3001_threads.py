# ruff: noqa: E501 - messages are compared as they are printed
"""TL3001: fragments that do not suit the loop or the block they are for."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import LayoutError

MISTAKES = [
    Mistake(
        "more threads than the block has",
        """
        @T.prim_func
        def kernel(A: T.Tensor((64, 4), "float32"), O: T.Tensor((64, 4), "float32")):
            with T.Kernel(1, threads=32):
                x = T.alloc_fragment((64, 4), "float32")
                T.annotate_layout({x: T.Fragment((64, 4), lambda i, j: (i, j))})
                T.copy(A, x)
                T.copy(x, O)

        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL3001] the fragment is spread over 64 threads, and the block has 32
         --> program.py:5:9
          |
        5 |         T.annotate_layout({x: T.Fragment((64, 4), lambda i, j: (i, j))})
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: launch the kernel with threads=64, or give each thread more elements
        """,
        whole=True,
    ),
    Mistake(
        "a loop layout of another shape",
        """
        @T.prim_func
        def kernel(A: T.Tensor((64, 4), "float32"), O: T.Tensor((64, 4), "float32")):
            with T.Kernel(1, threads=32):
                wish = T.Fragment((4, 64), lambda i, j: (j % 32, i * 2 + j // 32))
                for i, j in T.Parallel(64, 4, loop_layout=wish):
                    O[i, j] = A[i, j]

        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL3001] the loop_layout of a loop over (64, 4) is a fragment of that shape, got one of (4, 64)
         --> program.py:5:9
          |
        5 |         for i, j in T.Parallel(64, 4, loop_layout=wish):
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write T.Fragment(extents, lambda i, j: (thread, slot))
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake: Mistake) -> None:
    error = mistake.error()
    assert type(error) is LayoutError
    assert str(error) == mistake.expected
