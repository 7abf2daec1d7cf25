# ruff: noqa: E501 - messages are compared as they are printed
"""TL1002: an argument of a language function has a value it does not accept."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import FrontendValueError

MISTAKES = [
    Mistake(
        "no threads",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1, threads=0):
                A[0] = 1.0
        """,
        """
        [TL1002] threads must be positive, got 0
         --> program.py:3:10
          |
        3 |     with T.Kernel(1, threads=0):
          |          ^^^^^^^^^^^^^^^^^^^^^^
        hint: write threads=128 or threads=(16, 8)
        """,
        whole=True,
    ),
    Mistake(
        "fewer than no threads",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1, threads=(32, -1)):
                A[0] = 1.0
        """,
        """
        [TL1002] threads must be positive, got -1
         --> program.py:3:10
          |
        3 |     with T.Kernel(1, threads=(32, -1)):
          |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write threads=128 or threads=(16, 8)
        """,
        whole=True,
    ),
    Mistake(
        "four thread axes",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1, threads=(4, 4, 4, 4)):
                A[0] = 1.0
        """,
        """
        [TL1002] threads has 1 to 3 extents, got 4
         --> program.py:3:10
          |
        3 |     with T.Kernel(1, threads=(4, 4, 4, 4)):
          |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write threads=128 or threads=(16, 8)
        """,
        whole=True,
    ),
    Mistake(
        "an empty grid",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(16 // 32) as bx:
                A[bx] = 1.0
        """,
        """
        [TL1002] a grid extent must be positive, got 0
         --> program.py:3:10
          |
        3 |     with T.Kernel(16 // 32) as bx:
          |          ^^^^^^^^^^^^^^^^^^
        hint: use T.ceildiv(size, tile), which rounds up
        """,
        whole=True,
    ),
    Mistake(
        "a grid of four axes",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1, 2, 3, 4):
                A[0] = 1.0
        """,
        """
        [TL1002] a grid has at most 3 extents, got 4
         --> program.py:3:10
          |
        3 |     with T.Kernel(1, 2, 3, 4):
          |          ^^^^^^^^^^^^^^^^^^^^
        hint: combine some: divide and take the remainder of one block index
        """,
        whole=True,
    ),
    Mistake(
        "more names than block indices",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1, 2) as (bx, by, bz):
                A[bx] = 1.0
        """,
        """
        [TL1002] not enough values to unpack (expected 3, got 2)
         --> program.py:3:5
          |
        3 |     with T.Kernel(1, 2) as (bx, by, bz):
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give as many names as there are values; n extents have n indices
        """,
        whole=True,
    ),
    Mistake(
        "a negative extent",
        """
        @T.prim_func
        def kernel(A: T.Tensor((-4,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
        """,
        """
        [TL1002] extent 0 of the tensor shape is negative: -4
         --> program.py:2:1
          |
        2 | def kernel(A: T.Tensor((-4,), "float32")):
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: extents are counts of elements, zero or more
        """,
        whole=True,
    ),
    Mistake(
        "a symbol without a name",
        """
        m = T.dynamic("4m")
        """,
        """
        [TL1002] '4m' is not a list of names
         --> program.py:1:1
          |
        1 | m = T.dynamic("4m")
          | ^^^^^^^^^^^^^^^^^^^
        hint: write T.dynamic("m") or T.dynamic("m, n")
        """,
        whole=True,
    ),
    Mistake(
        "an unknown execution backend",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
        tile.compile(kernel, execution_backend="magic")
        """,
        """
        [TL1002] execution_backend 'magic' is not known
         --> program.py:5:1
          |
        5 | tile.compile(kernel, execution_backend="magic")
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: leave it out: there is one runtime
        """,
        whole=True,
    ),
    Mistake(
        "a step of zero",
        """
        for i in range(0, 16, 0):
            A[i, 0] = 1.0
        """,
        """
        [TL1002] the step of a loop cannot be zero
         --> program.py:6:18
          |
        6 |         for i in range(0, 16, 0):
          |                  ^^^^^^^^^^^^^^^
        hint: use a positive or negative step
        """,
    ),
    Mistake(
        "T.Parallel without extents",
        """
        for i in T.Parallel():
            A[0, 0] = 1.0
        """,
        """
        [TL1002] T.Parallel needs at least one extent
         --> program.py:6:18
          |
        6 |         for i in T.Parallel():
          |                  ^^^^^^^^^^^^
        hint: write `for i, j in T.Parallel(M, N)`
        """,
    ),
    Mistake(
        "a negative extent of T.Parallel",
        """
        for i in T.Parallel(4 - 8):
            A[i, 0] = 1.0
        """,
        """
        [TL1002] an extent of T.Parallel is negative: -4
         --> program.py:6:18
          |
        6 |         for i in T.Parallel(4 - 8):
          |                  ^^^^^^^^^^^^^^^^^
        hint: extents are counts; write the larger bound first in a difference
        """,
    ),
    Mistake(
        "more names than extents",
        """
        for i, j in T.Parallel(16):
            A[i, j] = 1.0
        """,
        """
        [TL1002] not enough values to unpack (expected 2, got 1)
         --> program.py:6:9
          |
        6 |         for i, j in T.Parallel(16):
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give as many names as there are values; n extents have n indices
        """,
    ),
    Mistake(
        "a negative number of stages",
        """
        for k in T.Pipelined(4, num_stages=-1):
            T.copy(A, S)
        """,
        """
        [TL1002] num_stages must be an integer >= 0, got -1
         --> program.py:6:18
          |
        6 |         for k in T.Pipelined(4, num_stages=-1):
          |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: 0 or 1 mean no overlap, 2 and more how many tiles are in flight
        """,
    ),
    Mistake(
        "stages and a schedule",
        """
        for k in T.Pipelined(4, num_stages=2, order=[0, 1], stage=[0, 1]):
            T.copy(A, S)
            T.copy(S, A)
        """,
        """
        [TL1002] num_stages and a schedule by order= and stage= exclude each other
         --> program.py:6:18
          |
        6 |         for k in T.Pipelined(4, num_stages=2, order=[0, 1], stage=[0, 1]):
          |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: leave out num_stages: it follows from the stages
        """,
    ),
    Mistake(
        "a schedule of another length",
        """
        for k in T.Pipelined(4, order=[0, 1, 2], stage=[0, 0, 1]):
            T.copy(A, S)
            T.copy(S, A)
        """,
        """
        [TL1002] order and stage have 3 entries, and the loop has 2 statements
         --> program.py:6:9
          |
        6 |         for k in T.Pipelined(4, order=[0, 1, 2], stage=[0, 0, 1]):
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give one entry per statement, in the order in which they are written
        """,
    ),
    Mistake(
        "a schedule that uses a result before it is there",
        """
        for k in T.Pipelined(4, order=[1, 0], stage=[1, 0]):
            T.copy(A, S)
            T.copy(S, F)
        """,
        """
        [TL1002] this statement would run before the one whose result it reads
         --> program.py:8:13
          |
        8 |             T.copy(S, F)
          |             ^^^^^^^^^^^^
        note: the result is made here
         --> program.py:7:13
          |
        7 |             T.copy(A, S)
          |             ^^^^^^^^^^^^
        hint: give it a later stage, or in the same stage a larger order
        """,
    ),
    Mistake(
        "unrolling what is not known",
        """
        for k in T.unroll(n, explicit=True):
            A[k, 0] = 1.0
        """,
        """
        [TL1002] a loop can be unrolled explicitly only if its bounds are compile-time integers
         --> program.py:6:18
          |
        6 |         for k in T.unroll(n, explicit=True):
          |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: leave out explicit=True
        """,
    ),
    Mistake(
        "unrolling too much",
        """
        for k in T.unroll(1000000, explicit=True):
            A[0, 0] = 1.0
        """,
        """
        [TL1002] 1000000 iterations are too many to unroll; 4096 is most
         --> program.py:6:18
          |
        6 |         for k in T.unroll(1000000, explicit=True):
          |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: leave out explicit=True, or nest an unrolled loop in T.serial
        """,
    ),
    Mistake(
        "unrolled twice",
        """
        for k in T.unroll(4, explicit=True, unroll_factor=2):
            A[k, 0] = 1.0
        """,
        """
        [TL1002] unroll_factor must be positive and excludes explicit=True
         --> program.py:6:18
          |
        6 |         for k in T.unroll(4, explicit=True, unroll_factor=2):
          |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give one of explicit=True and unroll_factor=n
        """,
    ),
    Mistake(
        "a tile without elements",
        """
        empty = T.alloc_shared((0, 16), "float32")
        """,
        """
        [TL1002] extent 0 given to T.alloc_shared is zero: the tile has no elements
         --> program.py:6:17
          |
        6 |         empty = T.alloc_shared((0, 16), "float32")
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give each dimension at least one element
        """,
    ),
    Mistake(
        "a tile of negative extent",
        """
        tail = T.alloc_shared((16 - 32, 16), "float32")
        """,
        """
        [TL1002] extent 0 of the shape given to T.alloc_shared is negative: -16
         --> program.py:6:16
          |
        6 |         tail = T.alloc_shared((16 - 32, 16), "float32")
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: extents are counts of elements, zero or more
        """,
    ),
    Mistake(
        "an unknown memory scope",
        """
        far = T.alloc_shared((16,), "float32", scope="moon")
        """,
        """
        [TL1002] there is no memory scope 'moon'
         --> program.py:6:15
          |
        6 |         far = T.alloc_shared((16,), "float32", scope="moon")
          |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use one of global, local, local.fragment, local.reducer, local.var, shared, shared.barrier, shared.dyn, shared.tmem
        """,
    ),
    Mistake(
        "a start value too large for a variable",
        """
        x = T.alloc_var("float32", 1e50)
        """,
        """
        [TL1002] the initial value 1e+50 cannot be represented in float32
         --> program.py:6:13
          |
        6 |         x = T.alloc_var("float32", 1e50)
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use a wider dtype, or T.infinity(dtype) for an unbounded start
        """,
    ),
    Mistake(
        "a negative start value of an unsigned variable",
        """
        x = T.alloc_var("uint8", -1)
        """,
        """
        [TL1002] the initial value -1 cannot be represented in uint8
         --> program.py:6:13
          |
        6 |         x = T.alloc_var("uint8", -1)
          |             ^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use a wider dtype, or T.infinity(dtype) for an unbounded start
        """,
    ),
    Mistake(
        "a number too large for an element",
        """
        bytes_ = T.alloc_shared((16,), "int8")
        bytes_[0] = 1000
        """,
        """
        [TL1002] 1000 does not fit int8, which holds -128 to 127
         --> program.py:7:9
          |
        7 |         bytes_[0] = 1000
          |         ^^^^^^^^^
        hint: use a wider type, or a number that fits
        """,
    ),
    Mistake(
        "filling with a number too large",
        """
        T.fill(S, 10**60)
        """,
        """
        [TL1002] 1000000000000000000000000000000000000000000000000000000000000 does not fit float32, whose largest finite value is 3.4028234663852886e+38
         --> program.py:6:9
          |
        6 |         T.fill(S, 10**60)
          |         ^^^^^^^^^^^^^^^^^
        hint: use a wider type, or T.infinity('float32') if infinity is meant
        """,
    ),
    Mistake(
        "a number no integer holds",
        """
        A[2**70, 0] = 1.0
        """,
        """
        [TL1002] 1180591620717411303424 does not fit int64, which holds -9223372036854775808 to 9223372036854775807
         --> program.py:6:9
          |
        6 |         A[2**70, 0] = 1.0
          |         ^^^^^^^^^^^
        hint: use a wider type, or a number that fits
        """,
    ),
    Mistake(
        "a conversion to a type that is too small",
        """
        x = T.int8(300)
        """,
        """
        [TL1002] 300 does not fit int8, which holds -128 to 127
         --> program.py:6:13
          |
        6 |         x = T.int8(300)
          |             ^^^^^^^^^^^
        hint: use a wider type
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is FrontendValueError
    assert isinstance(error, ValueError)
    assert str(error) == mistake.expected
