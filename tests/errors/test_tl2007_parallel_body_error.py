# ruff: noqa: E501 - messages are compared as they are printed
"""TL2007: a data-parallel loop contains something that is not element-wise."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import ParallelBodyError

MISTAKES = [
    Mistake(
        "a copy of tiles",
        """
        for i in T.Parallel(16):
            T.copy(A, S)
        """,
        """
        [TL2007] the tile operator 'copy' works on a whole tile and cannot stand in the element-wise body of T.Parallel
         --> program.py:7:13
          |
        7 |             T.copy(A, S)
          |             ^^^^^^^^^^^^
        note: the data-parallel loop is here
         --> program.py:6:9
          |
        6 |         for i in T.Parallel(16):
          |         ^^^^^^^^^^^^^^^^^^^^^^^^
        hint: move it out of the loop, or assign single elements, as in B[i, j] = A[i, j]
        """,
    ),
    Mistake(
        "a row at a time",
        """
        for i in T.Parallel(16):
            T.copy(A[i, 0:16], S[i, 0:16])
        """,
        """
        [TL2007] the tile operator 'copy' works on a whole tile and cannot stand in the element-wise body of T.Parallel
         --> program.py:7:13
          |
        7 |             T.copy(A[i, 0:16], S[i, 0:16])
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: the data-parallel loop is here
         --> program.py:6:9
          |
        6 |         for i in T.Parallel(16):
          |         ^^^^^^^^^^^^^^^^^^^^^^^^
        hint: move it out of the loop, or assign single elements, as in B[i, j] = A[i, j]
        """,
    ),
    Mistake(
        "a pipeline",
        """
        for i in T.Parallel(16):
            for k in T.Pipelined(4, num_stages=2):
                A[i, k] = 1.0
        """,
        """
        [TL2007] T.Pipelined cannot stand inside T.Parallel
         --> program.py:7:13
          |
        7 |             for k in T.Pipelined(4, num_stages=2):
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: the data-parallel loop is here
         --> program.py:6:9
          |
        6 |         for i in T.Parallel(16):
          |         ^^^^^^^^^^^^^^^^^^^^^^^^
        hint: put T.Parallel inside the pipelined loop
        """,
    ),
    Mistake(
        "a second loop after a statement",
        """
        for i in T.Parallel(16):
            x = A[i, 0]
            for j in T.Parallel(16):
                A[i, j] = x
        """,
        """
        [TL2007] T.Parallel inside T.Parallel must be nested directly, with no other statement between
         --> program.py:8:13
          |
        8 |             for j in T.Parallel(16):
          |             ^^^^^^^^^^^^^^^^^^^^^^^^
        note: the data-parallel loop is here
         --> program.py:6:9
          |
        6 |         for i in T.Parallel(16):
          |         ^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use one loop with all extents: for i, j in T.Parallel(M, N)
        """,
    ),
    Mistake(
        "a constant index of a fragment",
        """
        for i in T.Parallel(16):
            A[i, 0] = F[i, 3]
        """,
        """
        [TL2007] the constant index 3 into the fragment 'F' is not possible in a T.Parallel loop
         --> program.py:7:23
          |
        7 |             A[i, 0] = F[i, 3]
          |                       ^^^^^^^
        note: F is declared here
         --> program.py:5:13
          |
        5 |         F = T.alloc_fragment((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: index it by the loop's variables, or by 0; a T.alloc_shared tile can be indexed freely
        """,
    ),
    Mistake(
        "a fragment transposed in place",
        """
        for i, j in T.Parallel(16, 16):
            F[i, j] = F[j, i]
        """,
        """
        [TL2007] the fragment 'F' is accessed with different indices in one T.Parallel loop
         --> program.py:7:23
          |
        7 |             F[i, j] = F[j, i]
          |                       ^^^^^^^
        note: the first access is here
         --> program.py:7:13
          |
        7 |             F[i, j] = F[j, i]
          |             ^^^^^^^
        note: F is declared here
         --> program.py:5:13
          |
        5 |         F = T.alloc_fragment((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: a thread holds only its own elements: go through a T.alloc_shared tile
        """,
    ),
    Mistake(
        "a neighbour in a fragment",
        """
        for i, j in T.Parallel(8, 16):
            F[i, j] = F[i + 8, j]
        """,
        """
        [TL2007] the fragment 'F' is accessed with different indices in one T.Parallel loop
         --> program.py:7:23
          |
        7 |             F[i, j] = F[i + 8, j]
          |                       ^^^^^^^^^^^
        note: the first access is here
         --> program.py:7:13
          |
        7 |             F[i, j] = F[i + 8, j]
          |             ^^^^^^^
        note: F is declared here
         --> program.py:5:13
          |
        5 |         F = T.alloc_fragment((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: a thread holds only its own elements: go through a T.alloc_shared tile
        """,
    ),
    Mistake(
        "an array of each thread",
        """
        mine = T.alloc_local((16,), "float32")
        for i in T.Parallel(16):
            mine[i] = A[i, 0]
        """,
        """
        [TL2007] each thread has its own array 'mine', so it cannot be indexed by the variable of a T.Parallel loop
         --> program.py:8:13
          |
        8 |             mine[i] = A[i, 0]
          |             ^^^^^^^
        note: mine is declared here
         --> program.py:6:16
          |
        6 |         mine = T.alloc_local((16,), "float32")
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use T.alloc_fragment for a tile that the threads share out
        """,
    ),
    Mistake(
        "adding up a product by hand",
        """
        T.gemm(S, S, F)
        row = T.alloc_fragment((16,), "float32")
        for i in T.Parallel(16):
            for j in T.serial(16):
                row[i] += F[i, j]
        """,
        """
        [TL2007] the fragment 'F' of a matrix product is spread over threads and cannot be walked by a sequential loop inside T.Parallel
          --> program.py:10:27
           |
        10 |                 row[i] += F[i, j]
           |                           ^^^^^^^
        note: F is declared here
         --> program.py:5:13
          |
        5 |         F = T.alloc_fragment((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: Use T.reduce_sum or T.reduce_max, or copy it to a T.alloc_shared tile first
        """,
    ),
    Mistake(
        "a value on both sides of a barrier",
        """
        for i in T.Parallel(16):
            x = A[0, i]
            T.sync_threads()
            A[1, i] = x
        """,
        """
        [TL2007] a barrier in T.Parallel ends the loop and begins another: it stands in the body itself, and values and variables do not reach behind it
         --> program.py:8:13
          |
        8 |             T.sync_threads()
          |             ^^^^^^^^^^^^^^^^
        note: the data-parallel loop is here
         --> program.py:6:9
          |
        6 |         for i in T.Parallel(16):
          |         ^^^^^^^^^^^^^^^^^^^^^^^^
        hint: keep what is needed behind it in a tile, as in F[i] = A[i]
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is ParallelBodyError
    assert isinstance(error, ValueError)
    assert str(error) == mistake.expected
