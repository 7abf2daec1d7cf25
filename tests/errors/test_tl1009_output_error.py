"""TL1009: `out_idx`, `T.empty` and `return` contradict each other."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import OutputError

MISTAKES = [
    Mistake(
        "returning a parameter",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
            return A
        """,
        """
        [TL1009] a kernel can only return tensors that it declared with T.empty
         --> program.py:5:5
          |
        5 |     return A
          |     ^^^^^^^^
        hint: write C = T.empty((M, N), dtype) before the kernel, fill it, and return it
        """,
        whole=True,
    ),
    Mistake(
        "returning a number",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
            return 1
        """,
        """
        [TL1009] a kernel can only return tensors that it declared with T.empty
         --> program.py:5:5
          |
        5 |     return 1
          |     ^^^^^^^^
        hint: write C = T.empty((M, N), dtype) before the kernel, fill it, and return it
        """,
        whole=True,
    ),
    Mistake(
        "returning a tensor twice",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            C = T.empty((16,), "float32")
            with T.Kernel(1):
                T.copy(A, C)
            return C, C
        """,
        """
        [TL1009] a kernel returns each tensor once
         --> program.py:6:5
          |
        6 |     return C, C
          |     ^^^^^^^^^^^
        hint: return it once and use the result twice
        """,
        whole=True,
    ),
    Mistake(
        "an output that is no parameter",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
        tile.compile(kernel, out_idx=3)
        """,
        """
        [TL1009] out_idx 3 is not a tensor parameter of kernel, which has 1
         --> program.py:5:1
          |
        5 | tile.compile(kernel, out_idx=3)
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use an index between -1 and 0
        """,
        whole=True,
    ),
    Mistake(
        "an output that is a number",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32"), n: T.int32):
            with T.Kernel(n):
                A[0] = 1.0
        tile.compile(kernel, out_idx=1)
        """,
        """
        [TL1009] out_idx 1 is not a tensor parameter of kernel, which has 2
         --> program.py:5:1
          |
        5 | tile.compile(kernel, out_idx=1)
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use an index between -2 and 1
        """,
        whole=True,
    ),
    Mistake(
        "an output named twice",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
        tile.compile(kernel, out_idx=[0, -1])
        """,
        """
        [TL1009] out_idx names parameter 0 of kernel twice
         --> program.py:5:1
          |
        5 | tile.compile(kernel, out_idx=[0, -1])
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: name each output once; -1 is the last parameter
        """,
        whole=True,
    ),
    Mistake(
        "an output by name",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
        tile.compile(kernel, out_idx="A")
        """,
        """
        [TL1009] out_idx is an int or a list of ints, got 'A'
         --> program.py:5:1
          |
        5 | tile.compile(kernel, out_idx="A")
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write out_idx=[-1] for the last parameter
        """,
        whole=True,
    ),
    Mistake(
        "outputs stated twice",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            C = T.empty((16,), "float32")
            with T.Kernel(1):
                T.copy(A, C)
            return C
        tile.compile(kernel, out_idx=0)
        """,
        """
        [TL1009] kernel returns tensors made by T.empty, and out_idx=0 was given too
         --> program.py:7:1
          |
        7 | tile.compile(kernel, out_idx=0)
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use one of the two
        """,
        whole=True,
    ),
    Mistake(
        "an output that is only read",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                T.copy(A, B)
        tile.compile(kernel, out_idx=0)
        """,
        """
        [TL1009] kernel never writes A, which is returned: parameter 0 of 2
         --> program.py:2:12
          |
        2 | def kernel(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: name what the kernel writes: B
        """,
        whole=True,
    ),
    Mistake(
        "an output that is never written",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            C = T.empty((16,), "float32")
            with T.Kernel(1):
                A[0] = 1.0
            return C
        tile.compile(kernel, target="cpu")
        """,
        """
        [TL1009] kernel never writes C, which is returned: parameter 1 of 2
         --> program.py:3:9
          |
        3 |     C = T.empty((16,), "float32")
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: name what the kernel writes: A
        """,
        whole=True,
    ),
    Mistake(
        "out_idx in eager style",
        """
        @tile.jit(out_idx=[0])
        def double(A):
            M = T.const("M")
            A: T.Tensor((M,), "float32")
            with T.Kernel(1):
                A[0] = 1.0
        double(np.zeros(4, "float32"))
        """,
        """
        [TL1009] double is in eager style, where out_idx has no meaning
         --> program.py:7:1
          |
        7 | double(np.zeros(4, "float32"))
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: declare outputs with T.empty and return them
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is OutputError
    assert isinstance(error, ValueError)
    assert str(error) == mistake.expected
