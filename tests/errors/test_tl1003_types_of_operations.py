# ruff: noqa: E501 - messages are compared as they are printed
"""TL1003: types that operations on numbers and tiles do not accept."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import FrontendTypeError

MISTAKES = [
    Mistake(
        "a tile of another length at run time",
        """
        part = T.alloc_shared((n, 16), "float32")
        """,
        """
        [TL1003] extent 0 given to T.alloc_shared is known only at run time
         --> program.py:6:16
          |
        6 |         part = T.alloc_shared((n, 16), "float32")
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: tiles have compile-time extents: allocate the largest and use part of it
        """,
    ),
    Mistake(
        "a tile of no element type",
        """
        part = T.alloc_shared((16, 16), None)
        """,
        """
        [TL1003] the dtype given to T.alloc_shared is not an element type: None is not an element type
         --> program.py:6:16
          |
        6 |         part = T.alloc_shared((16, 16), None)
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use a name such as 'float16'
        """,
    ),
    Mistake(
        "the element type left out",
        """
        part = T.alloc_shared((16, 16))
        """,
        """
        [TL1003] T.alloc_shared() missing 1 required positional argument: 'dtype'
         --> program.py:6:16
          |
        6 |         part = T.alloc_shared((16, 16))
          |                ^^^^^^^^^^^^^^^^^^^^^^^^
        hint: call it as T.alloc_shared(shape, dtype, scope=...)
        """,
    ),
    Mistake(
        "a copy from nothing",
        """
        T.copy(None, S)
        """,
        """
        [TL1003] the source of T.copy must be a buffer, a region A[a:b, c] or an element A[i, j], got NoneType None
         --> program.py:6:9
          |
        6 |         T.copy(None, S)
          |         ^^^^^^^^^^^^^^^
        hint: allocate it with T.alloc_shared or T.alloc_fragment, or make it a parameter
        """,
    ),
    Mistake(
        "a copy to nowhere",
        """
        T.copy(A)
        """,
        """
        [TL1003] T.copy() missing 1 required positional argument: 'dst'
         --> program.py:6:9
          |
        6 |         T.copy(A)
          |         ^^^^^^^^^
        hint: call it as T.copy(src, dst, coalesced_width=..., disable_tma=..., eviction_policy=..., prefer_instruction=..., annotations=..., loop_layout=...)
        """,
    ),
    Mistake(
        "an unknown keyword",
        """
        T.copy(A, S, fast=True)
        """,
        """
        [TL1003] T.copy() got an unexpected keyword argument 'fast'
         --> program.py:6:9
          |
        6 |         T.copy(A, S, fast=True)
          |         ^^^^^^^^^^^^^^^^^^^^^^^
        hint: call it as T.copy(src, dst, coalesced_width=..., disable_tma=..., eviction_policy=..., prefer_instruction=..., annotations=..., loop_layout=...)
        """,
    ),
    Mistake(
        "a width that is text",
        """
        T.copy(A, S, coalesced_width="4")
        """,
        """
        [TL1003] coalesced_width must be an integer known at compile time, got '4'
         --> program.py:6:9
          |
        6 |         T.copy(A, S, coalesced_width="4")
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: pass a Python int
        """,
    ),
    Mistake(
        "a matrix product with a number",
        """
        T.gemm(2.0, S, F)
        """,
        """
        [TL1003] A of T.gemm must be a buffer, a region A[a:b, c] or an element A[i, j], got float 2.0
         --> program.py:6:9
          |
        6 |         T.gemm(2.0, S, F)
          |         ^^^^^^^^^^^^^^^^^
        hint: allocate it with T.alloc_shared or T.alloc_fragment, or make it a parameter
        """,
    ),
    Mistake(
        "transposed by a word",
        """
        T.gemm(S, S, F, transpose_B="yes")
        """,
        """
        [TL1003] transpose_B of T.gemm must be True or False, got 'yes'
         --> program.py:6:9
          |
        6 |         T.gemm(S, S, F, transpose_B="yes")
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: pass True or False, known while the kernel is traced
        """,
    ),
    Mistake(
        "filling with nothing",
        """
        T.fill(S, None)
        """,
        """
        [TL1003] NoneType None is not a scalar value
         --> program.py:6:9
          |
        6 |         T.fill(S, None)
          |         ^^^^^^^^^^^^^^^
        hint: use a number, an element such as A[i, j], or an expression of these
        """,
    ),
    Mistake(
        "filling a number",
        """
        T.fill(n, 0)
        """,
        """
        [TL1003] the destination of T.fill must be a buffer, a region A[a:b, c] or an element A[i, j], got a int32 value
         --> program.py:6:9
          |
        6 |         T.fill(n, 0)
          |         ^^^^^^^^^^^^
        hint: allocate it with T.alloc_shared or T.alloc_fragment, or make it a parameter
        """,
    ),
    Mistake(
        "the names of buffers in place of buffers",
        """
        T.annotate_layout({"S": T.Layout((16, 16), lambda i, j: (i, j))})
        """,
        """
        [TL1003] a key given to T.annotate_layout must be a whole buffer, got str 'S'
         --> program.py:6:9
          |
        6 |         T.annotate_layout({"S": T.Layout((16, 16), lambda i, j: (i, j))})
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: pass the name of the buffer without an index
        """,
    ),
    Mistake(
        "a layout for a fragment",
        """
        T.annotate_layout({F: T.Layout((16, 16), lambda i, j: (i, j))})
        """,
        """
        [TL1003] the fragment 'F' needs a T.Fragment, got Layout
         --> program.py:6:9
          |
        6 |         T.annotate_layout({F: T.Layout((16, 16), lambda i, j: (i, j))})
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: T.Fragment(shape, forward_fn=lambda i, j: (thread, index))
        """,
    ),
    Mistake(
        "a distribution over threads for a shared tile",
        """
        T.annotate_layout({S: T.Fragment((16, 16), lambda i, j: (i, j))})
        """,
        """
        [TL1003] 'S' is in shared memory, which no thread owns a part of: it takes no T.Fragment
         --> program.py:6:9
          |
        6 |         T.annotate_layout({S: T.Fragment((16, 16), lambda i, j: (i, j))})
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give a T.Layout, or allocate the tile with T.alloc_fragment
        """,
    ),
    Mistake(
        "max of Python",
        """
        A[0, 0] = max(A[0, 0], A[0, 1])
        """,
        """
        [TL1003] max() of a run-time value is not supported in a kernel
         --> program.py:6:19
          |
        6 |         A[0, 0] = max(A[0, 0], A[0, 1])
          |                   ^^^^^^^^^^^^^^^^^^^^^
        hint: use T.max(a, b)
        """,
    ),
    Mistake(
        "int of Python",
        """
        A[int(A[0, 0]), 0] = 1.0
        """,
        """
        [TL1003] int() of a run-time value is not supported in a kernel
         --> program.py:6:11
          |
        6 |         A[int(A[0, 0]), 0] = 1.0
          |           ^^^^^^^^^^^^
        hint: use T.cast(x, 'int32')
        """,
    ),
    Mistake(
        "len of a buffer",
        """
        A[0, 0] = len(A)
        """,
        """
        [TL1003] len() of a run-time value is not supported in a kernel
         --> program.py:6:19
          |
        6 |         A[0, 0] = len(A)
          |                   ^^^^^^
        hint: use buffer.shape[0]
        """,
    ),
    Mistake(
        "a power",
        """
        A[0, 0] = A[0, 0] ** 2
        """,
        """
        [TL1003] unsupported operand type(s) for ** or pow(): a run-time value and 'int'
         --> program.py:6:9
          |
        6 |         A[0, 0] = A[0, 0] ** 2
          |         ^^^^^^^^^^^^^^^^^^^^^^
        hint: use T.pow(x, y)
        """,
    ),
    Mistake(
        "calling a buffer",
        """
        A[0, 0] = S(0, 0)
        """,
        """
        [TL1003] the buffer 'S' cannot be called
         --> program.py:6:19
          |
        6 |         A[0, 0] = S(0, 0)
          |                   ^^^^^^^
        hint: index with square brackets, as in A[i, j]
        """,
    ),
    Mistake(
        "comparing with text",
        """
        if n == "many":
            A[0, 0] = 1.0
        """,
        """
        [TL1003] str 'many' is not a scalar value
         --> program.py:6:9
          |
        6 |         if n == "many":
          |         ^^^^^^^^^^^^^^^
        hint: use a number, an element such as A[i, j], or an expression of these
        """,
    ),
    Mistake(
        "a comprehension over run-time values",
        """
        rows = [A[i, 0] for i in T.serial(16)]
        """,
        """
        [TL1003] a comprehension runs while the kernel is traced and cannot run over run-time values
         --> program.py:6:34
          |
        6 |         rows = [A[i, 0] for i in T.serial(16)]
          |                                  ^^^^^^^^^^^^
        hint: use a `for` loop over T.serial or T.Parallel and store into a buffer
        """,
    ),
    Mistake(
        "fast mathematics of integers",
        """
        A[0, 0] = T.__exp(n)
        """,
        """
        [TL1003] T.__exp takes floating-point values, got int32
         --> program.py:6:19
          |
        6 |         A[0, 0] = T.__exp(n)
          |                   ^^^^^^^^^^
        hint: convert: T.float32(x)
        """,
    ),
    Mistake(
        "the infinity of integers",
        """
        x = T.infinity("int32")
        """,
        """
        [TL1003] int32 has no infinity
         --> program.py:6:13
          |
        6 |         x = T.infinity("int32")
          |             ^^^^^^^^^^^^^^^^^^^
        hint: use T.max_value('int32')
        """,
    ),
    Mistake(
        "a view of a part",
        """
        flat = T.view(S[0:4, :], (64,))
        """,
        """
        [TL1003] the operand of T.view must be a whole buffer, got a region of 'S'
         --> program.py:6:16
          |
        6 |         flat = T.view(S[0:4, :], (64,))
          |                ^^^^^^^^^^^^^^^^^^^^^^^^
        hint: pass the name of the buffer without an index
        """,
    ),
    Mistake(
        "bits of one value set in a whole tile",
        """
        T.atomic_or(A, 1)
        """,
        """
        [TL1003] T.atomic_or of a single value needs one element as destination, not a tile of 'A'
         --> program.py:6:9
          |
        6 |         T.atomic_or(A, 1)
          |         ^^^^^^^^^^^^^^^^^
        hint: index it, as in A[i], or pass a tile as value
        """,
    ),
    Mistake(
        "an atomic sum of more values than elements",
        """
        T.atomic_add(A[0, T.Ramp(0, 1, 4)], T.Ramp(0, 1, 2))
        """,
        """
        [TL1003] T.atomic_add of 4 elements got a vector of 2
         --> program.py:6:9
          |
        6 |         T.atomic_add(A[0, T.Ramp(0, 1, 4)], T.Ramp(0, 1, 2))
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give as many values as elements, or one for all
        """,
    ),
    Mistake(
        "a message that is a number",
        """
        T.print(A[0, 0], msg=3)
        """,
        """
        [TL1003] the message of T.print is a string, got 3
         --> program.py:6:9
          |
        6 |         T.print(A[0, 0], msg=3)
          |         ^^^^^^^^^^^^^^^^^^^^^^^
        hint: write T.print(x, msg="x is")
        """,
    ),
    Mistake(
        "C text that is none",
        """
        T.import_source(3)
        """,
        """
        [TL1003] C source is a string, got int
         --> program.py:6:9
          |
        6 |         T.import_source(3)
          |         ^^^^^^^^^^^^^^^^^^
        hint: write T.import_source("int f(int x) { return x + 1; }")
        """,
    ),
    Mistake(
        "a macro with an argument too few",
        """
        @T.macro
        def clear_row(row):
            A[row, 0] = 0.0
        clear_row()
        """,
        """
        [TL1003] the arguments of the macro 'clear_row' do not fit: missing a required argument: 'row'
         --> program.py:9:9
          |
        9 |         clear_row()
          |         ^^^^^^^^^^^
        note: it is defined here
         --> program.py:7:9
          |
        7 |         def clear_row(row):
          |         ^^^^^^^^^^^^^^^^^^^
        hint: call it as clear_row(row)
        """,
    ),
    Mistake(
        "a number for a reference",
        """
        @T.macro
        def set_to_one(x: T.Ref):
            x = 1.0
        set_to_one(2.0)
        """,
        """
        [TL1003] the argument for the T.Ref parameter 'x' must be an alloc_var, an element or a region
         --> program.py:9:9
          |
        9 |         set_to_one(2.0)
          |         ^^^^^^^^^^^^^^^
        hint: pass a variable made by T.alloc_var, or an element such as A[i]
        """,
    ),
    Mistake(
        "choosing between buffers",
        """
        T.copy(S if n > 0 else F, A)
        """,
        """
        [TL1003] a conditional expression with a run-time condition cannot choose between Python objects (got <shared buffer S: float32[16, 16]>)
         --> program.py:6:9
          |
        6 |         T.copy(S if n > 0 else F, A)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: both sides must be numbers; use an `if` statement to choose a buffer
        """,
    ),
    Mistake(
        "a reducer of vectors",
        """
        wide = T.alloc_reducer((16,), "float32x4")
        """,
        """
        [TL1003] the dtype given to T.alloc_reducer is float32x4: the elements of a buffer are scalars
         --> program.py:6:16
          |
        6 |         wide = T.alloc_reducer((16,), "float32x4")
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: add a dimension of 4 elements of float32; T.vectorized and T.Ramp reach them together
        """,
    ),
    Mistake(
        "range of a run-time value in a helper",
        """
        def clear_rows():
            for i in range(n):
                A[i, 0] = 0.0
        clear_rows()
        """,
        """
        [TL1003] a run-time value cannot be interpreted as an integer
         --> program.py:9:9
          |
        9 |         clear_rows()
          |         ^^^^^^^^^^^^
        hint: loop over T.serial, or make the helper function a @T.macro
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is FrontendTypeError
    assert isinstance(error, TypeError)
    assert str(error) == mistake.expected
