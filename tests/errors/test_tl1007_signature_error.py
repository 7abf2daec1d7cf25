# ruff: noqa: E501 - messages are compared as they are printed
"""TL1007: the parameters of a kernel function are not what the language asks for."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import SignatureError

MISTAKES = [
    Mistake(
        "no annotation",
        """
        @T.prim_func
        def kernel(A):
            with T.Kernel(1):
                A[0] = 1.0
        """,
        """
        [TL1007] parameter 'A' of the kernel 'kernel' has no annotation
         --> program.py:2:12
          |
        2 | def kernel(A):
          |            ^
        hint: annotate it: A: T.Tensor((M, N), "float32"), or A: T.int32
        """,
        whole=True,
    ),
    Mistake(
        "any number of arguments",
        """
        @T.prim_func
        def kernel(*tensors):
            with T.Kernel(1):
                pass
        """,
        """
        [TL1007] parameter 'tensors' of the kernel 'kernel' takes any number of arguments
         --> program.py:2:13
          |
        2 | def kernel(*tensors):
          |             ^^^^^^^
        hint: a kernel has a fixed list of named parameters
        """,
        whole=True,
    ),
    Mistake(
        "any keywords",
        """
        @T.prim_func
        def kernel(**options):
            with T.Kernel(1):
                pass
        """,
        """
        [TL1007] parameter 'options' of the kernel 'kernel' takes any keyword arguments
         --> program.py:2:14
          |
        2 | def kernel(**options):
          |              ^^^^^^^
        hint: a kernel has a fixed list of named parameters
        """,
        whole=True,
    ),
    Mistake(
        "positional only",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32"), /):
            with T.Kernel(1):
                A[0] = 1.0
        """,
        """
        [TL1007] parameter 'A' of the kernel 'kernel' is positional-only
         --> program.py:2:12
          |
        2 | def kernel(A: T.Tensor((16,), "float32"), /):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: a kernel has a fixed list of named parameters
        """,
        whole=True,
    ),
    Mistake(
        "a default value",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32"), n: T.int32 = 4):
            with T.Kernel(n):
                A[0] = 1.0
        """,
        """
        [TL1007] the kernel parameter 'n' cannot have a default value
         --> program.py:2:43
          |
        2 | def kernel(A: T.Tensor((16,), "float32"), n: T.int32 = 4):
          |                                           ^^^^^^^^^^
        hint: remove the default; compile-time parameters belong to the @tile.jit factory
        """,
        whole=True,
    ),
    Mistake(
        "a type of Python",
        """
        @T.prim_func
        def kernel(A: list):
            with T.Kernel(1):
                A[0] = 1.0
        """,
        """
        [TL1007] the annotation of parameter 'A' declares neither a tensor nor a scalar: <class 'list'>
         --> program.py:2:12
          |
        2 | def kernel(A: list):
          |            ^^^^^^^
        hint: write A: T.Tensor((M, N), "float32") or A: T.int32
        """,
        whole=True,
    ),
    Mistake(
        "a tensor without a shape",
        """
        @T.prim_func
        def kernel(A: T.Tensor):
            with T.Kernel(1):
                A[0] = 1.0
        """,
        """
        [TL1007] the annotation of parameter 'A' declares neither a tensor nor a scalar: T.Tensor
         --> program.py:2:12
          |
        2 | def kernel(A: T.Tensor):
          |            ^^^^^^^^^^^
        hint: write A: T.Tensor((M, N), "float32") or A: T.int32
        """,
        whole=True,
    ),
    Mistake(
        "a symbol that no argument determines",
        """
        m = T.dynamic("m")
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(m) as bx:
                A[bx] = 1.0
        """,
        """
        [TL1007] no argument determines the symbol 'm'
         --> program.py:4:5
          |
        4 |     with T.Kernel(m) as bx:
          |     ^^^^^^^^^^^^^^^^^^^^^^^
        note: m is made here
         --> program.py:1:1
          |
        1 | m = T.dynamic("m")
          | ^^^^^^^^^^^^^^^^^^
        hint: use it as a dimension of a tensor parameter, or declare m: T.int32
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is SignatureError
    assert isinstance(error, ValueError)
    assert str(error) == mistake.expected
