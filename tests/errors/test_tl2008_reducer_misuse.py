# ruff: noqa: E501 - messages are compared as they are printed
"""TL2008: the init, update, finalize protocol of a reducer is broken."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import ReducerMisuse

MISTAKES = [
    Mistake(
        "not initialised",
        """
        total = T.alloc_reducer((16,), "float32", op="sum")
        for i, j in T.Parallel(16, 16):
            T.reducer_update(total[i], A[i, j])
        """,
        """
        [TL2008] the reducer 'total' is updated before it is initialised
         --> program.py:8:13
          |
        8 |             T.reducer_update(total[i], A[i, j])
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: total is declared here
         --> program.py:6:17
          |
        6 |         total = T.alloc_reducer((16,), "float32", op="sum")
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: open it before the loop: T.reducer_init(total)
        """,
    ),
    Mistake(
        "not finalised",
        """
        total = T.alloc_reducer((16,), "float32", op="sum")
        T.reducer_init(total)
        for i, j in T.Parallel(16, 16):
            T.reducer_update(total[i], A[i, j])
        """,
        """
        [TL2008] the reducer 'total' is initialised and never finalised in this block
         --> program.py:7:9
          |
        7 |         T.reducer_init(total)
          |         ^^^^^^^^^^^^^^^^^^^^^
        note: total is declared here
         --> program.py:6:17
          |
        6 |         total = T.alloc_reducer((16,), "float32", op="sum")
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: end the block with T.finalize_reducer(total, dst)
        """,
    ),
    Mistake(
        "finalised and never initialised",
        """
        total = T.alloc_reducer((16,), "float32", op="sum")
        row = T.alloc_fragment((16,), "float32")
        T.finalize_reducer(total, row)
        """,
        """
        [TL2008] the reducer 'total' is finalised and was never initialised
         --> program.py:8:9
          |
        8 |         T.finalize_reducer(total, row)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: total is declared here
         --> program.py:6:17
          |
        6 |         total = T.alloc_reducer((16,), "float32", op="sum")
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: open it first: T.reducer_init(total)
        """,
    ),
    Mistake(
        "initialised twice",
        """
        total = T.alloc_reducer((16,), "float32", op="sum")
        row = T.alloc_fragment((16,), "float32")
        T.reducer_init(total)
        T.reducer_init(total)
        T.finalize_reducer(total, row)
        """,
        """
        [TL2008] the reducer 'total' is initialised again before it is finalised
         --> program.py:9:9
          |
        9 |         T.reducer_init(total)
          |         ^^^^^^^^^^^^^^^^^^^^^
        note: total is declared here
         --> program.py:6:17
          |
        6 |         total = T.alloc_reducer((16,), "float32", op="sum")
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: close it first: T.finalize_reducer(total, dst)
        """,
    ),
    Mistake(
        "finalised in every round",
        """
        total = T.alloc_reducer((16,), "float32", op="sum")
        row = T.alloc_fragment((16,), "float32")
        T.reducer_init(total)
        for k in T.serial(4):
            T.finalize_reducer(total, row)
        """,
        """
        [TL2008] the reducer 'total' is finalised in a loop inside the block that initialised it
          --> program.py:10:13
           |
        10 |             T.finalize_reducer(total, row)
           |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: total is declared here
         --> program.py:6:17
          |
        6 |         total = T.alloc_reducer((16,), "float32", op="sum")
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: move T.finalize_reducer out of the loop, or T.reducer_init into it
        """,
    ),
    Mistake(
        "read before it is finalised",
        """
        total = T.alloc_reducer((16,), "float32", op="sum")
        row = T.alloc_fragment((16,), "float32")
        T.reducer_init(total)
        A[0, 0] = total[0]
        T.finalize_reducer(total, row)
        """,
        """
        [TL2008] the reducer 'total' is neither read nor written directly
         --> program.py:9:19
          |
        9 |         A[0, 0] = total[0]
          |                   ^^^^^^^^
        note: total is declared here
         --> program.py:6:17
          |
        6 |         total = T.alloc_reducer((16,), "float32", op="sum")
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: add to it with T.reducer_update(total[i], x), and read what T.finalize_reducer(total, dst) writes
        """,
    ),
    Mistake(
        "written by an assignment",
        """
        total = T.alloc_reducer((16,), "float32", op="sum")
        row = T.alloc_fragment((16,), "float32")
        T.reducer_init(total)
        for i in T.Parallel(16):
            total[i] = A[i, 0]
        T.finalize_reducer(total, row)
        """,
        """
        [TL2008] the reducer 'total' is neither read nor written directly
          --> program.py:10:13
           |
        10 |             total[i] = A[i, 0]
           |             ^^^^^^^^
        note: total is declared here
         --> program.py:6:17
          |
        6 |         total = T.alloc_reducer((16,), "float32", op="sum")
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: add to it with T.reducer_update(total[i], x), and read what T.finalize_reducer(total, dst) writes
        """,
    ),
    Mistake(
        "added to by an assignment",
        """
        total = T.alloc_reducer((16,), "float32", op="sum")
        row = T.alloc_fragment((16,), "float32")
        T.reducer_init(total)
        for i in T.Parallel(16):
            total[i] += A[i, 0]
        T.finalize_reducer(total, row)
        """,
        """
        [TL2008] the reducer 'total' is neither read nor written directly
          --> program.py:10:13
           |
        10 |             total[i] += A[i, 0]
           |             ^^^^^^^^
        note: total is declared here
         --> program.py:6:17
          |
        6 |         total = T.alloc_reducer((16,), "float32", op="sum")
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: add to it with T.reducer_update(total[i], x), and read what T.finalize_reducer(total, dst) writes
        """,
    ),
    Mistake(
        "updated outside of a data-parallel loop",
        """
        total = T.alloc_reducer((16,), "float32", op="sum")
        row = T.alloc_fragment((16,), "float32")
        T.reducer_init(total)
        for i in T.serial(16):
            T.reducer_update(total[i], A[i, 0])
        T.finalize_reducer(total, row)
        """,
        """
        [TL2008] the reducer 'total' is updated outside any T.Parallel loop
          --> program.py:10:13
           |
        10 |             T.reducer_update(total[i], A[i, 0])
           |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: total is declared here
         --> program.py:6:17
          |
        6 |         total = T.alloc_reducer((16,), "float32", op="sum")
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: an update counts once per iteration: write `for i in T.Parallel(1):` around it to count it once
        """,
    ),
    Mistake(
        "updated after a branch that finalised it",
        """
        total = T.alloc_reducer((16,), "float32", op="sum")
        row = T.alloc_fragment((16,), "float32")
        T.reducer_init(total)
        if n > 0:
            T.finalize_reducer(total, row)
        for i in T.Parallel(16):
            T.reducer_update(total[i], A[i, 0])
        """,
        """
        [TL2008] the reducer 'total' is updated before it is initialised
          --> program.py:12:13
           |
        12 |             T.reducer_update(total[i], A[i, 0])
           |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: total is declared here
         --> program.py:6:17
          |
        6 |         total = T.alloc_reducer((16,), "float32", op="sum")
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: open it before the loop: T.reducer_init(total)
        """,
    ),
    Mistake(
        "finalised in a branch of every round",
        """
        total = T.alloc_reducer((16,), "float32", op="sum")
        row = T.alloc_fragment((16,), "float32")
        T.reducer_init(total)
        for k in T.serial(4):
            if k == n:
                T.finalize_reducer(total, row)
        """,
        """
        [TL2008] the reducer 'total' is finalised in a loop inside the block that initialised it
          --> program.py:11:17
           |
        11 |                 T.finalize_reducer(total, row)
           |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: total is declared here
         --> program.py:6:17
          |
        6 |         total = T.alloc_reducer((16,), "float32", op="sum")
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: move T.finalize_reducer out of the loop, or T.reducer_init into it
        """,
    ),
    Mistake(
        "cleared like a tile",
        """
        total = T.alloc_reducer((16,), "float32", op="sum")
        T.clear(total)
        """,
        """
        [TL2008] the reducer 'total' is neither read nor written directly
         --> program.py:7:9
          |
        7 |         T.clear(total)
          |         ^^^^^^^^^^^^^^
        note: total is declared here
         --> program.py:6:17
          |
        6 |         total = T.alloc_reducer((16,), "float32", op="sum")
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: add to it with T.reducer_update(total[i], x), and read what T.finalize_reducer(total, dst) writes
        """,
    ),
    Mistake(
        "no destination",
        """
        total = T.alloc_reducer((16,), "float32", op="sum")
        T.reducer_init(total)
        T.finalize_reducer(total)
        """,
        """
        [TL2008] T.finalize_reducer(total) needs a destination
         --> program.py:8:9
          |
        8 |         T.finalize_reducer(total)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write T.finalize_reducer(total, dst), with a fragment or shared tile
        """,
    ),
    Mistake(
        "an ordinary fragment",
        """
        for i, j in T.Parallel(16, 16):
            T.reducer_update(F[i, j], 1.0)
        """,
        """
        [TL2008] T.reducer_update needs a reducer, but 'F' is in local.fragment memory
         --> program.py:7:13
          |
        7 |             T.reducer_update(F[i, j], 1.0)
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: F is declared here
         --> program.py:5:13
          |
        5 |         F = T.alloc_fragment((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: allocate it with T.alloc_reducer(shape, dtype, op)
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is ReducerMisuse
    assert isinstance(error, ValueError)
    assert str(error) == mistake.expected
