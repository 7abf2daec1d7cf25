"""Vectors, tiles and batches that do not fit what they meet."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake

MISTAKES = [
    Mistake(
        "what a tile held before one value was added",
        """
        previous = T.atomic_add(A[0:2, :], 1.0, return_prev=True)
        """,
        """
        [TL1014] T.atomic_add cannot return the previous values of a whole tile
         --> program.py:6:20
          |
        6 |         previous = T.atomic_add(A[0:2, :], 1.0, return_prev=True)
          |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: update single elements in a T.Parallel loop to get them
        """,
    ),
    Mistake(
        "one value added to a tile in registers",
        """
        T.atomic_max(F, 1.0)
        """,
        """
        [TL2005] T.atomic_max updates memory that threads share, but 'F' is in local.fragment memory
         --> program.py:6:9
          |
        6 |         T.atomic_max(F, 1.0)
          |         ^^^^^^^^^^^^^^^^^^^^
        hint: update a global or shared buffer; nothing else needs to be atomic
        """,
    ),
    Mistake(
        "a slice with a step and a tile of another size",
        """
        T.copy(A[0, 0:16:2], S[0, 0:4])
        """,
        """
        [TL2001] a slice with a step has 8 elements, which S[1, 4] has not along one dimension
         --> program.py:6:9
          |
        6 |         T.copy(A[0, 0:16:2], S[0, 0:4])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: copy a slice of as many elements, or elements in a T.Parallel loop
        """,
    ),
    Mistake(
        "a vector of another length than a slice",
        """
        A[0, 0:8] = S[0, 0:16:4]
        """,
        """
        [TL2001] a vector of 4 values cannot be stored to 8 elements of 'A'
         --> program.py:6:9
          |
        6 |         A[0, 0:8] = S[0, 0:16:4]
          |         ^^^^^^^^^
        note: A is declared here
         --> program.py:2:12
          |
        2 | def kernel(A: T.Tensor((16, 16), "float32"), n: T.int32):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give the index T.Ramp(start, 1, n) and the value the same number of lanes
        """,
    ),
    Mistake(
        "batches of results that do not come out even",
        """
        total = T.alloc_reducer((6,), "float32")
        T.reducer_init(total)
        T.finalize_reducer(total, A[0, 0:6], batch=4)
        """,
        """
        [TL1002] T.finalize_reducer(total): 6 results make no batches of 4
         --> program.py:8:9
          |
        8 |         T.finalize_reducer(total, A[0, 0:6], batch=4)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give a batch that divides them, or leave it out
        """,
    ),
    Mistake(
        "a reducer finalised into another shape",
        """
        total = T.alloc_reducer((6,), "float32")
        T.reducer_init(total)
        T.finalize_reducer(total, A[0:2, 0:6])
        """,
        """
        [TL2001] T.finalize_reducer of total[6] does not give A[2, 6]
         --> program.py:8:9
          |
        8 |         T.finalize_reducer(total, A[0:2, 0:6])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give the destination the shape of the reducer
        """,
    ),
    Mistake(
        "batches of a reduction that do not come out even",
        """
        T.reduce_sum(F, S[0, :], dim=1, batch=5)
        """,
        """
        [TL1002] T.reduce_sum to S[1, 16]: 16 results make no batches of 5
         --> program.py:6:9
          |
        6 |         T.reduce_sum(F, S[0, :], dim=1, batch=5)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give a batch that divides them, or leave it out
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake: Mistake) -> None:
    assert str(mistake.error()) == mistake.expected
