# ruff: noqa: E501 - messages are compared as they are printed
"""TL3003: nothing determines the layout of a buffer."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import LayoutUnknown

MISTAKES = [
    Mistake(
        "a loop that nothing bounds",
        """
        @T.prim_func
        def kernel(A: T.Tensor((T.dynamic("n"),), "float32"), O: T.Tensor((64,), "float32")):
            n = A.shape[0]
            with T.Kernel(1, threads=32):
                x = T.alloc_fragment((64,), "float32")
                T.clear(x)
                for i in T.Parallel(n):
                    x[i % 64] = A[i]
                T.copy(x, O)

        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL3003] a parallel loop of extents (?) touches a fragment, and nothing bounds what is known only at run time
         --> program.py:7:9
          |
        7 |         for i in T.Parallel(n):
          |         ^^^^^^^^^^^^^^^^^^^^^^^
        hint: loop over the whole tile, with an `if` around the body: for i in T.Parallel(64): if i < n: ...
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake: Mistake) -> None:
    error = mistake.error()
    assert type(error) is LayoutUnknown
    assert str(error) == mistake.expected
