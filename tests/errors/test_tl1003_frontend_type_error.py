# ruff: noqa: E501 - messages are compared as they are printed
"""TL1003: an argument of a language function has a type it does not accept."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import FrontendTypeError

MISTAKES = [
    Mistake(
        "threads that are text",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1, threads="128"):
                A[0] = 1.0
        """,
        """
        [TL1003] threads must be compile-time integers, got '128'
         --> program.py:3:10
          |
        3 |     with T.Kernel(1, threads="128"):
          |          ^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write threads=128 or threads=(16, 8)
        """,
        whole=True,
    ),
    Mistake(
        "a grid of fractions",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(16 / 4) as bx:
                A[bx] = 1.0
        """,
        """
        [TL1003] the bounds of a loop must be integers, got 4.0
         --> program.py:3:10
          |
        3 |     with T.Kernel(16 / 4) as bx:
          |          ^^^^^^^^^^^^^^^^
        hint: use // instead of /, or convert with T.cast(x, 'int32')
        """,
        whole=True,
    ),
    Mistake(
        "an element type that does not exist",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float23")):
            with T.Kernel(1):
                A[0] = 1.0
        """,
        """
        [TL1003] the tensor dtype is not an element type: 'float23' is not an element type
         --> program.py:2:1
          |
        2 | def kernel(A: T.Tensor((16,), "float23")):
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: did you mean 'float32'?
        """,
        whole=True,
    ),
    Mistake(
        "another format of a known name",
        """
        import ml_dtypes

        @T.prim_func
        def kernel(A: T.Tensor((16,), ml_dtypes.float8_e4m3)):
            with T.Kernel(1):
                A[0] = 1.0
        """,
        """
        [TL1003] the tensor dtype is not an element type: <class 'ml_dtypes.float8_e4m3'> is IEEE's float8_e4m3, which ends at 240 and has infinities
         --> program.py:4:1
          |
        4 | def kernel(A: T.Tensor((16,), ml_dtypes.float8_e4m3)):
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use 'float8_e4m3fn', and convert arrays: x.astype('float8_e4m3fn')
        """,
        whole=True,
    ),
    Mistake(
        "an extent that is a fraction",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16 / 2,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
        """,
        """
        [TL1003] extent 0 of the tensor shape must be an integer or an integer expression, got 8.0
         --> program.py:2:1
          |
        2 | def kernel(A: T.Tensor((16 / 2,), "float32")):
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use Python ints, T.dynamic symbols, or arithmetic on them with //
        """,
        whole=True,
    ),
    Mistake(
        "an element type in the text of an annotation",
        """
        @T.prim_func
        def kernel(A: "T.Tensor((16,), 'float23')"):
            with T.Kernel(1):
                A[0] = 1.0
        """,
        """
        [TL1003] the tensor dtype is not an element type: 'float23' is not an element type
         --> program.py:2:12
          |
        2 | def kernel(A: "T.Tensor((16,), 'float23')"):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: did you mean 'float32'?
        """,
        whole=True,
    ),
    Mistake(
        "a dimension that is a float",
        """
        m = T.dynamic("m", dtype="float32")
        """,
        """
        [TL1003] a dimension is an integer, not float32
         --> program.py:1:1
          |
        1 | m = T.dynamic("m", dtype="float32")
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use "int32" or "int64"
        """,
        whole=True,
    ),
    Mistake(
        "an unknown option of prim_func",
        """
        @T.prim_func(fast=True)
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
        """,
        """
        [TL1003] T.prim_func has no option 'fast'
         --> program.py:1:1
          |
        1 | @T.prim_func(fast=True)
          | ^^^^^^^^^^^^^^^^^^^^^^^
        hint: use @T.prim_func alone
        """,
        whole=True,
    ),
    Mistake(
        "calling what is not compiled",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
        kernel(np.zeros(16, "float32"))
        """,
        """
        [TL1003] the kernel 'kernel' is not compiled and cannot be called
         --> program.py:5:1
          |
        5 | kernel(np.zeros(16, "float32"))
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: compile it first: tile.compile(kernel)(A, B), or decorate a factory with @tile.jit
        """,
        whole=True,
    ),
    Mistake(
        "compiling a plain function",
        """
        def kernel(A):
            A[0] = 1.0
        tile.compile(kernel)
        """,
        """
        [TL1003] cannot compile function 'kernel'
         --> program.py:3:1
          |
        3 | tile.compile(kernel)
          | ^^^^^^^^^^^^^^^^^^^^
        hint: decorate the function with @T.prim_func, or the function that returns it with @tile.jit and call it
        """,
        whole=True,
    ),
    Mistake(
        "a factory that returns nothing",
        """
        @tile.jit
        def make(n):
            @T.prim_func
            def kernel(A: T.Tensor((n,), "float32")):
                with T.Kernel(1):
                    A[0] = 1.0
        make(16)
        """,
        """
        [TL1003] make returned NoneType, not a @T.prim_func
         --> program.py:7:1
          |
        7 | make(16)
          | ^^^^^^^^
        hint: return the @T.prim_func, or declare tensors at the top of the body: A: T.Tensor((M, N), "float32")
        """,
        whole=True,
    ),
    Mistake(
        "an argument of a factory that has no key",
        """
        @tile.jit
        def make(n):
            @T.prim_func
            def kernel(A: T.Tensor((16,), "float32")):
                with T.Kernel(1):
                    A[0] = 1.0
            return kernel
        make(np.zeros(3))
        """,
        """
        [TL1003] a compile-time argument of type ndarray cannot be part of a cache key
         --> program.py:8:1
          |
        8 | make(np.zeros(3))
          | ^^^^^^^^^^^^^^^^^
        hint: pass numbers, strings, dtypes, or lists, dicts and sets of them
        """,
        whole=True,
    ),
    Mistake(
        "options of jit by position",
        """
        make = tile.jit([-1])
        """,
        """
        [TL1003] tile.jit decorates functions, got list
         --> program.py:1:1
          |
        1 | make = tile.jit([-1])
          | ^^^^^^^^^^^^^^^^^^^^^
        hint: options are keywords: @tile.jit(out_idx=[-1])
        """,
        whole=True,
    ),
    Mistake(
        "pass configurations that are a list",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
        tile.compile(kernel, pass_configs=["fast"])
        """,
        """
        [TL1003] pass_configs are a dictionary, got ['fast']
         --> program.py:5:1
          |
        5 | tile.compile(kernel, pass_configs=["fast"])
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write pass_configs={tile.PassConfigKey.TL_ENABLE_FAST_MATH: True}
        """,
        whole=True,
    ),
    Mistake(
        "compile flags that are a number",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
        tile.compile(kernel, compile_flags=3)
        """,
        """
        [TL1003] compile_flags are a string or a list of strings, got 3
         --> program.py:5:1
          |
        5 | tile.compile(kernel, compile_flags=3)
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write compile_flags=["-O2", "-DNAME=1"]
        """,
        whole=True,
    ),
    Mistake(
        "a loop over a list",
        """
        for i in [0, 1, 2]:
            A[i, 0] = 1.0
        """,
        """
        [TL1003] `for` in a kernel cannot run over a list
         --> program.py:6:9
          |
        6 |         for i in [0, 1, 2]:
          |         ^^^^^^^^^^^^^^^^^^^
        hint: use range(...), T.serial, T.unroll, T.Parallel or T.Pipelined; to repeat statements at compile time, call a macro from a list comprehension or a helper function
        """,
    ),
    Mistake(
        "a loop over a buffer",
        """
        for row in A:
            T.clear(row)
        """,
        """
        [TL1003] `for` in a kernel cannot run over a BufferValue
         --> program.py:6:9
          |
        6 |         for row in A:
          |         ^^^^^^^^^^^^^
        hint: use range(...), T.serial, T.unroll, T.Parallel or T.Pipelined; to repeat statements at compile time, call a macro from a list comprehension or a helper function
        """,
    ),
    Mistake(
        "enumerate",
        """
        for i, k in enumerate(range(4)):
            A[i, k] = 1.0
        """,
        """
        [TL1003] `for` in a kernel cannot run over an enumerate
         --> program.py:6:9
          |
        6 |         for i, k in enumerate(range(4)):
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use range(...), T.serial, T.unroll, T.Parallel or T.Pipelined; to repeat statements at compile time, call a macro from a list comprehension or a helper function
        """,
    ),
    Mistake(
        "bounds that are fractions",
        """
        for i in range(16 / 2):
            A[i, 0] = 1.0
        """,
        """
        [TL1003] the bounds of a loop must be integers, got 8.0
         --> program.py:6:18
          |
        6 |         for i in range(16 / 2):
          |                  ^^^^^^^^^^^^^
        hint: use // instead of /, or convert with T.cast(x, 'int32')
        """,
    ),
    Mistake(
        "a buffer as a condition",
        """
        if S:
            A[0, 0] = 1.0
        """,
        """
        [TL1003] the buffer 'S' is used as the condition of `if`
         --> program.py:6:9
          |
        6 |         if S:
          |         ^^^^^
        hint: compare an element, as in `S[0] != 0`, or test `S is not None`
        """,
    ),
    Mistake(
        "a region as a condition",
        """
        while S[0, 0:4]:
            A[0, 0] = 1.0
        """,
        """
        [TL1003] the buffer 'S' is used as the condition of `while`
         --> program.py:6:9
          |
        6 |         while S[0, 0:4]:
          |         ^^^^^^^^^^^^^^^^
        hint: compare an element, as in `S[0] != 0`, or test `S is not None`
        """,
    ),
    Mistake(
        "a whole buffer as a value",
        """
        A[0, 0] = S
        """,
        """
        [TL1003] the whole buffer 'S' is used where a single value is needed
         --> program.py:6:9
          |
        6 |         A[0, 0] = S
          |         ^^^^^^^
        hint: index one element, as in S[i], or use a tile operator such as T.copy
        """,
    ),
    Mistake(
        "a whole buffer in arithmetic",
        """
        A[0, 0] = S + 1.0
        """,
        """
        [TL1003] the whole buffer 'S' is used where a single value is needed
         --> program.py:6:9
          |
        6 |         A[0, 0] = S + 1.0
          |         ^^^^^^^^^^^^^^^^^
        hint: index one element, as in S[i], or use a tile operator such as T.copy
        """,
    ),
    Mistake(
        "a region as a value",
        """
        A[0, 0] = S[0, 0:4]
        """,
        """
        [TL1003] a region of the buffer 'S' is used where a single value is needed
         --> program.py:6:9
          |
        6 |         A[0, 0] = S[0, 0:4]
          |         ^^^^^^^
        hint: index one element, as in S[i], or use a tile operator such as T.copy
        """,
    ),
    Mistake(
        "text as a value",
        """
        A[0, 0] = "one"
        """,
        """
        [TL1003] str 'one' is not a scalar value
         --> program.py:6:9
          |
        6 |         A[0, 0] = "one"
          |         ^^^^^^^
        hint: use a number, an element such as A[i, j], or an expression of these
        """,
    ),
    Mistake(
        "None as a value",
        """
        A[0, 0] = None
        """,
        """
        [TL1003] NoneType None is not a scalar value
         --> program.py:6:9
          |
        6 |         A[0, 0] = None
          |         ^^^^^^^
        hint: use a number, an element such as A[i, j], or an expression of these
        """,
    ),
    Mistake(
        "an array as a value",
        """
        A[0, 0] = np.zeros(3)
        """,
        """
        [TL1003] ndarray array([0., 0., 0.]) is not a scalar value
         --> program.py:6:9
          |
        6 |         A[0, 0] = np.zeros(3)
          |         ^^^^^^^
        hint: use a number, an element such as A[i, j], or an expression of these
        """,
    ),
    Mistake(
        "a complex number",
        """
        A[0, 0] = 1j
        """,
        """
        [TL1003] complex 1j is not a scalar value
         --> program.py:6:9
          |
        6 |         A[0, 0] = 1j
          |         ^^^^^^^
        hint: use a number, an element such as A[i, j], or an expression of these
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is FrontendTypeError
    assert isinstance(error, TypeError)
    assert str(error) == mistake.expected
