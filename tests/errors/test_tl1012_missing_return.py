"""TL1012: a tensor declared with `T.empty` is not returned."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import MissingReturn

MISTAKES = [
    Mistake(
        "lazy style",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            C = T.empty((16,), "float32")
            with T.Kernel(1):
                T.copy(A, C)
        """,
        """
        [TL1012] the tensor 'C' is declared with T.empty but not returned
         --> program.py:3:9
          |
        3 |     C = T.empty((16,), "float32")
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: end the function with `return C`
        """,
        whole=True,
    ),
    Mistake(
        "eager style, one of two",
        """
        @tile.jit
        def copies(A):
            M = T.const("M")
            A: T.Tensor((M,), "float32")
            B = T.empty((M,), "float32")
            C = T.empty((M,), "float32")
            with T.Kernel(1):
                T.copy(A, B)
                T.copy(A, C)
            return B
        copies(np.zeros(16, "float32"))
        """,
        """
        [TL1012] the tensor 'C' is declared with T.empty but not returned
         --> program.py:6:9
          |
        6 |     C = T.empty((M,), "float32")
          |         ^^^^^^^^^^^^^^^^^^^^^^^^
        hint: end the function with `return C`
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is MissingReturn
    assert isinstance(error, RuntimeError)
    assert str(error) == mistake.expected
