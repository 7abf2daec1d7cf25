"""TL2001: operand shapes do not fit together."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import ShapeMismatch

MISTAKES = [
    Mistake(
        "copying between tiles of different shapes",
        """
        part = T.alloc_shared((8, 16), "float32")
        T.copy(A, part)
        """,
        """
        [TL2001] cannot copy A[16, 16] to part[8, 16]: the shapes do not match
         --> program.py:7:9
          |
        7 |         T.copy(A, part)
          |         ^^^^^^^^^^^^^^^
        note: A is declared here
         --> program.py:2:12
          |
        2 | def kernel(A: T.Tensor((16, 16), "float32"), n: T.int32):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: part is declared here
         --> program.py:6:16
          |
        6 |         part = T.alloc_shared((8, 16), "float32")
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: slice the larger side, as in A[0:16, :], or change the shape of the smaller one
        """,
    ),
    Mistake(
        "copying into fewer dimensions, from an element on",
        """
        cube = T.alloc_shared((4, 8, 16), "float32")
        T.copy(cube, S[0, 0])
        """,
        """
        [TL2001] cannot copy cube[4, 8, 16] to S, which has 2 dimensions: elements of the source would share one
         --> program.py:7:9
          |
        7 |         T.copy(cube, S[0, 0])
          |         ^^^^^^^^^^^^^^^^^^^^^
        note: S is declared here
         --> program.py:4:13
          |
        4 |         S = T.alloc_shared((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: slice both sides, or copy into a tile of as many dimensions
        """,  # noqa: E501
    ),
    Mistake(
        "copying a slice into a smaller one",
        """
        T.copy(A[0:16, 0:16], S[0:8, 0:16])
        """,
        """
        [TL2001] cannot copy A[16, 16] to S[8, 16]: the shapes do not match
         --> program.py:6:9
          |
        6 |         T.copy(A[0:16, 0:16], S[0:8, 0:16])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: A is declared here
         --> program.py:2:12
          |
        2 | def kernel(A: T.Tensor((16, 16), "float32"), n: T.int32):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: S is declared here
         --> program.py:4:13
          |
        4 |         S = T.alloc_shared((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: slice the larger side, as in A[0:16, :], or change the shape of the smaller one
        """,
    ),
    Mistake(
        "copying between different ranks",
        """
        cube = T.alloc_shared((4, 4, 16), "float32")
        T.copy(A, cube)
        """,
        """
        [TL2001] cannot copy A[16, 16] to cube[4, 4, 16]: the shapes do not match
         --> program.py:7:9
          |
        7 |         T.copy(A, cube)
          |         ^^^^^^^^^^^^^^^
        note: A is declared here
         --> program.py:2:12
          |
        2 | def kernel(A: T.Tensor((16, 16), "float32"), n: T.int32):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: cube is declared here
         --> program.py:6:16
          |
        6 |         cube = T.alloc_shared((4, 4, 16), "float32")
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: slice the larger side, as in A[0:16, :], or change the shape of the smaller one
        """,
    ),
    Mistake(
        "adding a tile of another shape",
        """
        part = T.alloc_shared((8, 8), "float32")
        T.atomic_add(A, part)
        """,
        """
        [TL2001] cannot copy part[8, 8] to A[16, 16]: the shapes do not match
         --> program.py:7:9
          |
        7 |         T.atomic_add(A, part)
          |         ^^^^^^^^^^^^^^^^^^^^^
        note: part is declared here
         --> program.py:6:16
          |
        6 |         part = T.alloc_shared((8, 8), "float32")
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: A is declared here
         --> program.py:2:12
          |
        2 | def kernel(A: T.Tensor((16, 16), "float32"), n: T.int32):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: slice the larger side, as in A[0:16, :], or change the shape of the smaller one
        """,
    ),
    Mistake(
        "a matrix product of vectors",
        """
        row = T.alloc_shared((16,), "float32")
        T.gemm(row, S, F)
        """,
        """
        [TL2001] T.gemm needs a matrix of compile-time extents, got row[16]
         --> program.py:7:9
          |
        7 |         T.gemm(row, S, F)
          |         ^^^^^^^^^^^^^^^^^
        note: row is declared here
         --> program.py:6:15
          |
        6 |         row = T.alloc_shared((16,), "float32")
          |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: slice leading dimensions to one element, as in A[k, :, :]
        """,
    ),
    Mistake(
        "a matrix product of a run-time size",
        """
        T.gemm(S[0:n, :], S, F)
        """,
        """
        [TL2001] T.gemm needs a matrix of compile-time extents, got S[?, 16]
         --> program.py:6:9
          |
        6 |         T.gemm(S[0:n, :], S, F)
          |         ^^^^^^^^^^^^^^^^^^^^^^^
        note: S is declared here
         --> program.py:4:13
          |
        4 |         S = T.alloc_shared((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: slice leading dimensions to one element, as in A[k, :, :]
        """,
    ),
    Mistake(
        "a matrix product of stacks of matrices",
        """
        stack = T.alloc_shared((2, 16, 16), "float32")
        T.gemm(stack, S, F)
        """,
        """
        [TL2001] T.gemm needs a matrix of compile-time extents, got stack[2, 16, 16]
         --> program.py:7:9
          |
        7 |         T.gemm(stack, S, F)
          |         ^^^^^^^^^^^^^^^^^^^
        note: stack is declared here
         --> program.py:6:17
          |
        6 |         stack = T.alloc_shared((2, 16, 16), "float32")
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: slice leading dimensions to one element, as in A[k, :, :]
        """,
    ),
    Mistake(
        "reducing into too few elements",
        """
        row = T.alloc_fragment((8,), "float32")
        T.reduce_sum(F, row, dim=1)
        """,
        """
        [TL2001] T.reduce_sum of F[16, 16] along dim 1 does not give row[8]
         --> program.py:7:9
          |
        7 |         T.reduce_sum(F, row, dim=1)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: drop the reduced dimension from the destination, or give it extent 1
        """,
    ),
    Mistake(
        "reducing into too many dimensions",
        """
        row = T.alloc_fragment((16, 16, 1), "float32")
        T.reduce_max(F, row, dim=1)
        """,
        """
        [TL2001] T.reduce_max of F[16, 16] along dim 1 does not give row[16, 16, 1]
         --> program.py:7:9
          |
        7 |         T.reduce_max(F, row, dim=1)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: drop the reduced dimension from the destination, or give it extent 1
        """,
    ),
    Mistake(
        "scanning into another shape",
        """
        part = T.alloc_shared((8, 16), "float32")
        T.cumsum(S, part)
        """,
        """
        [TL2001] T.cumsum of S[16, 16] does not give part[8, 16]
         --> program.py:7:9
          |
        7 |         T.cumsum(S, part)
          |         ^^^^^^^^^^^^^^^^^
        hint: give source and destination the same shape
        """,
    ),
    Mistake(
        "transposing into another shape",
        """
        part = T.alloc_shared((8, 16), "float32")
        T.transpose(S, part)
        """,
        """
        [TL2001] cannot transpose S[16, 16] into part[8, 16]
         --> program.py:7:9
          |
        7 |         T.transpose(S, part)
          |         ^^^^^^^^^^^^^^^^^^^^
        hint: swap the last two extents of the destination
        """,
    ),
    Mistake(
        "the results of a reducer in another shape",
        """
        total = T.alloc_reducer((16,), "float32", op="sum")
        row = T.alloc_fragment((8,), "float32")
        T.reducer_init(total)
        T.finalize_reducer(total, row)
        """,
        """
        [TL2001] T.finalize_reducer of total[16] does not give row[8]
         --> program.py:9:9
          |
        9 |         T.finalize_reducer(total, row)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give the destination the shape of the reducer
        """,
    ),
    Mistake(
        "a vector stored to fewer elements",
        """
        A[0, T.Ramp(0, 1, 4)] = T.Broadcast(1.0, 8)
        """,
        """
        [TL2001] a vector of 8 values cannot be stored to 4 elements of 'A'
         --> program.py:6:9
          |
        6 |         A[0, T.Ramp(0, 1, 4)] = T.Broadcast(1.0, 8)
          |         ^^^^^^^^^^^^^^^^^^^^^
        note: A is declared here
         --> program.py:2:12
          |
        2 | def kernel(A: T.Tensor((16, 16), "float32"), n: T.int32):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give the index T.Ramp(start, 1, n) and the value the same number of lanes
        """,
    ),
    Mistake(
        "im2col of a matrix",
        """
        T.im2col(A, S, 0, 0, 3, 1, 1, 1)
        """,
        """
        [TL2001] T.im2col reads a global NHWC tensor of rank 4, got 'A' of rank 2 in global
         --> program.py:6:9
          |
        6 |         T.im2col(A, S, 0, 0, 3, 1, 1, 1)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: pass the image tensor itself, with dimensions N, H, W, C
        """,
    ),
    Mistake(
        "as many strides as dimensions",
        """
        @T.prim_func
        def kernel(A: T.StridedTensor((16, 16), (16,), "float32")):
            with T.Kernel(1):
                A[0, 0] = 1.0
        """,
        """
        [TL2001] a tensor of 2 dimensions needs 2 strides, got 1
         --> program.py:2:1
          |
        2 | def kernel(A: T.StridedTensor((16, 16), (16,), "float32")):
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give one stride per dimension, in elements
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is ShapeMismatch
    assert isinstance(error, ValueError)
    assert str(error) == mistake.expected
