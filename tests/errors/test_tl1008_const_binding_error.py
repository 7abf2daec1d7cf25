"""TL1008: a `T.const` symbol is misplaced, or no tensor dimension determines it."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import ConstBindingError

MISTAKES = [
    Mistake(
        "outside an eager function",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            M = T.const("M")
            with T.Kernel(M):
                A[0] = 1.0
        """,
        """
        [TL1008] T.const can only be used in the body of an eager @tile.jit function
         --> program.py:3:9
          |
        3 |     M = T.const("M")
          |         ^^^^^^^^^^^^
        hint: use T.dynamic for run-time dimensions, or a Python int
        """,
        whole=True,
    ),
    Mistake(
        "used only in an expression",
        """
        @tile.jit
        def double(A):
            M = T.const("M")
            A: T.Tensor((M * 2,), "float32")
            C = T.empty((M,), "float32")
            with T.Kernel(1):
                C[0] = A[0]
            return C
        double(np.zeros(4, "float32"))
        """,
        """
        [TL1008] no dimension or stride of a tensor is the constant 'M' itself
         --> program.py:3:9
          |
        3 |     M = T.const("M")
          |         ^^^^^^^^^^^^
        note: A is declared here
         --> program.py:4:5
          |
        4 |     A: T.Tensor((M * 2,), "float32")
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use M directly as a dimension of an argument, or make it a parameter
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is ConstBindingError
    assert isinstance(error, RuntimeError)
    assert str(error) == mistake.expected
