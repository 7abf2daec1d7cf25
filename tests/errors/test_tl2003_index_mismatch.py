"""TL2003: a buffer is indexed with the wrong rank, kind or order of indices."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import IndexMismatch

MISTAKES = [
    Mistake(
        "too few indices",
        """
        A[0] = 1.0
        """,
        """
        [TL2003] 'A' has 2 dimensions and needs 2 indices, got 1
         --> program.py:6:9
          |
        6 |         A[0] = 1.0
          |         ^^^^
        note: A is declared here
         --> program.py:2:12
          |
        2 | def kernel(A: T.Tensor((16, 16), "float32"), n: T.int32):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write A[i, j] for an element; use `:` for a whole dimension
        """,
    ),
    Mistake(
        "too many indices",
        """
        A[0, 0, 0] = 1.0
        """,
        """
        [TL2003] 'A' has 2 dimensions and needs 2 indices, got 3
         --> program.py:6:9
          |
        6 |         A[0, 0, 0] = 1.0
          |         ^^^^^^^^^^
        note: A is declared here
         --> program.py:2:12
          |
        2 | def kernel(A: T.Tensor((16, 16), "float32"), n: T.int32):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write A[i, j] for an element; use `:` for a whole dimension
        """,
    ),
    Mistake(
        "a fraction",
        """
        A[0.5, 0] = 1.0
        """,
        """
        [TL2003] index 0 of 'A' must be an integer, got float 0.5
         --> program.py:6:9
          |
        6 |         A[0.5, 0] = 1.0
          |         ^^^^^^^^^
        hint: convert it with T.cast(x, 'int32'), or use // instead of /
        """,
    ),
    Mistake(
        "a value of a float type",
        """
        A[A[0, 0], 0] = 1.0
        """,
        """
        [TL2003] index 0 of 'A' must be an integer, got a value of dtype float32
         --> program.py:6:9
          |
        6 |         A[A[0, 0], 0] = 1.0
          |         ^^^^^^^^^^^^^
        hint: convert it with T.cast(x, 'int32'), or use // instead of /
        """,
    ),
    Mistake(
        "text",
        """
        A["first", 0] = 1.0
        """,
        """
        [TL2003] index 0 of 'A' must be an integer, got str 'first'
         --> program.py:6:9
          |
        6 |         A["first", 0] = 1.0
          |         ^^^^^^^^^^^^^
        hint: convert it with T.cast(x, 'int32'), or use // instead of /
        """,
    ),
    Mistake(
        "None",
        """
        A[None, 0] = 1.0
        """,
        """
        [TL2003] index 0 of 'A' must be an integer, got NoneType None
         --> program.py:6:9
          |
        6 |         A[None, 0] = 1.0
          |         ^^^^^^^^^^
        hint: convert it with T.cast(x, 'int32'), or use // instead of /
        """,
    ),
    Mistake(
        "a list",
        """
        A[[0, 1], 0] = 1.0
        """,
        """
        [TL2003] index 0 of 'A' must be an integer, got list [0, 1]
         --> program.py:6:9
          |
        6 |         A[[0, 1], 0] = 1.0
          |         ^^^^^^^^^^^^
        hint: convert it with T.cast(x, 'int32'), or use // instead of /
        """,
    ),
    Mistake(
        "a block index of two dimensions",
        """
        @T.macro
        def mark(position):
            A[position, 0] = 1.0
        mark((bx, 0))
        """,
        """
        [TL2003] index 0 of 'A' must be an integer, got an object of type tuple
         --> program.py:8:13
          |
        8 |             A[position, 0] = 1.0
          |             ^^^^^^^^^^^^^^
        note: while expanding 'mark' called here
         --> program.py:9:9
          |
        9 |         mark((bx, 0))
          |         ^^^^^^^^^^^^^
        hint: convert it with T.cast(x, 'int32'), or use // instead of /
        """,
    ),
    Mistake(
        "a step in a slice",
        """
        T.copy(A[0:16:2, :], S)
        """,
        """
        [TL2003] a slice of 'A' cannot have a step
         --> program.py:6:16
          |
        6 |         T.copy(A[0:16:2, :], S)
          |                ^^^^^^^^^^^^
        hint: copy the elements in a T.Parallel loop with the index i * step
        """,
    ),
    Mistake(
        "a slice that ends before it starts",
        """
        T.copy(A[8:4, :], S)
        """,
        """
        [TL2003] the slice of dimension 0 of 'A' ends 4 before it starts
         --> program.py:6:16
          |
        6 |         T.copy(A[8:4, :], S)
          |                ^^^^^^^^^
        hint: swap the bounds, as in A[start:stop] with start <= stop
        """,
    ),
    Mistake(
        "a slice of a fraction",
        """
        T.copy(A[0 : 16 / 2, :], S)
        """,
        """
        [TL2003] index 0 of 'A' must be an integer, got float 8.0
         --> program.py:6:16
          |
        6 |         T.copy(A[0 : 16 / 2, :], S)
          |                ^^^^^^^^^^^^^^^^
        hint: convert it with T.cast(x, 'int32'), or use // instead of /
        """,
    ),
    Mistake(
        "an element outside a tile",
        """
        S[16, 0] = 1.0
        """,
        """
        [TL2003] 16 is outside dimension 0 of 'S', which has 16 elements
         --> program.py:6:9
          |
        6 |         S[16, 0] = 1.0
          |         ^^^^^^^^
        note: S is declared here
         --> program.py:4:13
          |
        4 |         S = T.alloc_shared((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: only global tensors are checked at run time; stay inside shared buffers
        """,
    ),
    Mistake(
        "reading outside a tile",
        """
        A[0, 0] = S[0, 99]
        """,
        """
        [TL2003] 99 is outside dimension 1 of 'S', which has 16 elements
         --> program.py:6:19
          |
        6 |         A[0, 0] = S[0, 99]
          |                   ^^^^^^^^
        note: S is declared here
         --> program.py:4:13
          |
        4 |         S = T.alloc_shared((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: only global tensors are checked at run time; stay inside shared buffers
        """,
    ),
    Mistake(
        "a slice that leaves a tile",
        """
        T.copy(A, S[8:24, :])
        """,
        """
        [TL2003] 8:24 is outside dimension 0 of 'S', which has 16 elements
         --> program.py:6:19
          |
        6 |         T.copy(A, S[8:24, :])
          |                   ^^^^^^^^^^
        note: S is declared here
         --> program.py:4:13
          |
        4 |         S = T.alloc_shared((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: only global tensors are checked at run time; stay inside shared buffers
        """,
    ),
    Mistake(
        "a loop that leaves a tile",
        """
        for i in T.serial(20, 24):
            S[i, 0] = 1.0
        """,
        """
        [TL2003] this index is outside dimension 0 of 'S', which has 16 elements
         --> program.py:7:13
          |
        7 |             S[i, 0] = 1.0
          |             ^^^^^^^
        note: S is declared here
         --> program.py:4:13
          |
        4 |         S = T.alloc_shared((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: only global tensors are checked at run time; stay inside shared buffers
        """,
    ),
    Mistake(
        "two ellipses",
        """
        T.copy(A[..., ...], S)
        """,
        """
        [TL2003] an index can contain only one `...`
         --> program.py:6:16
          |
        6 |         T.copy(A[..., ...], S)
          |                ^^^^^^^^^^^
        hint: write `:` for each other whole dimension
        """,
    ),
    Mistake(
        "an element of a variable",
        """
        x = T.alloc_var("int32", 0)
        A[x[1], 0] = 1.0
        """,
        """
        [TL2003] the variable 'x' is a single element
         --> program.py:7:9
          |
        7 |         A[x[1], 0] = 1.0
          |         ^^^^^^^^^^^^^^^^
        hint: use x or x[0]
        """,
    ),
    Mistake(
        "a tile that leaves the tile it is copied into",
        """
        large = T.alloc_shared((20, 20), "float32")
        T.copy(large, S[4, 4])
        """,
        """
        [TL2003] the tile of 20 elements from 4 on leaves dimension 0 of 'S', which has 16
         --> program.py:7:9
          |
        7 |         T.copy(large, S[4, 4])
          |         ^^^^^^^^^^^^^^^^^^^^^^
        note: S is declared here
         --> program.py:4:13
          |
        4 |         S = T.alloc_shared((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: only global tensors are checked at run time; stay inside shared buffers
        """,
    ),
    Mistake(
        "elements of a fragment that it does not have",
        """
        few = T.alloc_fragment((8,), "float32")
        for i, j in T.Parallel(4, 64):
            few[j - i] = 0
        """,
        """
        [TL2003] -3 is outside dimension 0 of 'few', which has 8 elements, where j is 0 and i is 3
         --> program.py:8:13
          |
        8 |             few[j - i] = 0
          |             ^^^^^^^^^^
        note: few is declared here
         --> program.py:6:15
          |
        6 |         few = T.alloc_fragment((8,), "float32")
          |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: only global tensors are checked at run time; stay inside local.fragment buffers
        """,
    ),
    Mistake(
        "elements of a tile that the last round of a loop reads",
        """
        for i in T.serial(0, 17, 2):
            A[0, 0] = T.max(S[i, 0], 0)
        """,
        """
        [TL2003] 16 is outside dimension 0 of 'S', which has 16 elements, where i is 16
         --> program.py:7:29
          |
        7 |             A[0, 0] = T.max(S[i, 0], 0)
          |                             ^^^^^^^
        note: S is declared here
         --> program.py:4:13
          |
        4 |         S = T.alloc_shared((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: only global tensors are checked at run time; stay inside shared buffers
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is IndexMismatch
    assert isinstance(error, ValueError)
    assert str(error) == mistake.expected
