"""TL1013: an object of the language has no attribute of this name."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import UnknownName

MISTAKES = [
    Mistake(
        "a function of the language",
        """
        tile_ = T.alloc_sharde((16, 16), "float32")
        """,
        """
        [TL1013] the language has no 'T.alloc_sharde'
         --> program.py:6:9
          |
        6 |         tile_ = T.alloc_sharde((16, 16), "float32")
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: did you mean T.alloc_shared?
        """,
    ),
    Mistake(
        "nothing alike",
        """
        T.teleport(A, S)
        """,
        """
        [TL1013] the language has no 'T.teleport'
         --> program.py:6:9
          |
        6 |         T.teleport(A, S)
          |         ^^^^^^^^^^^^^^^^
        hint: dir(...) lists what there is
        """,
    ),
    Mistake(
        "an attribute of a buffer",
        """
        A[0, 0] = S.shap[0]
        """,
        """
        [TL1013] the buffer 'S' has no 'shap'
         --> program.py:6:9
          |
        6 |         A[0, 0] = S.shap[0]
          |         ^^^^^^^^^^^^^^^^^^^
        hint: did you mean shape?
        """,
    ),
    Mistake(
        "an attribute of a value",
        """
        A[0, 0] = A[0, 0].to("float16")
        """,
        """
        [TL1013] a value of dtype float32 has no 'to'
         --> program.py:6:9
          |
        6 |         A[0, 0] = A[0, 0].to("float16")
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: dir(...) lists what there is
        """,
    ),
    Mistake(
        "in an annotation",
        """
        @T.prim_func
        def kernel(A: T.Tensr((16,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
        """,
        """
        [TL1013] the language has no 'T.Tensr'
         --> program.py:2:1
          |
        2 | def kernel(A: T.Tensr((16,), "float32")):
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: did you mean T.Tensor?
        """,
        whole=True,
    ),
    Mistake(
        "in the text of an annotation",
        """
        @T.prim_func
        def kernel(A: "T.Tensr((16,), 'float32')"):
            with T.Kernel(1):
                A[0] = 1.0
        """,
        """
        [TL1013] the language has no 'T.Tensr'
         --> program.py:2:12
          |
        2 | def kernel(A: "T.Tensr((16,), 'float32')"):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: did you mean T.Tensor?
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is UnknownName
    assert isinstance(error, AttributeError)
    assert str(error) == mistake.expected
