# ruff: noqa: E501 - messages are compared as they are printed
"""TL4006: a schedule of a pipelined loop would change what the loop computes."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import ScheduleError

MISTAKES = [
    Mistake(
        "the next round adds before the sums are stored",
        """
        @T.prim_func
        def kernel(A: T.Tensor((64, 16), "float32"), B: T.Tensor((64, 16), "float32")):
            with T.Kernel(1, threads=32):
                part = T.alloc_shared((16, 16), "float32")
                total = T.alloc_fragment((16, 16), "float32")
                T.clear(total)
                for k in T.Pipelined(4, order=[0, 1, 2], stage=[0, 0, 1]):
                    T.copy(A[k * 16, 0], part)
                    for i, j in T.Parallel(16, 16):
                        total[i, j] += part[i, j]
                    T.copy(total, B[k * 16, 0])
        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL4006] order= and stage= run this statement of the next iteration before another one that must come first: both touch 'total'
         --> program.py:9:13
          |
        9 |             for i, j in T.Parallel(16, 16):
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: this one must come first
          --> program.py:11:13
           |
        11 |             T.copy(total, B[k * 16, 0])
           |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give it a later stage than the other, or a larger order in the same stage; without order= and stage= the compiler finds a schedule
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is ScheduleError
    assert str(error) == mistake.expected
