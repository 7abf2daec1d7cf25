# ruff: noqa: E501 - messages are compared as they are printed
"""TL2006: a view or reshape does not cover the same bits as its buffer."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import ViewMismatch

MISTAKES = [
    Mistake(
        "fewer elements",
        """
        half = T.reshape(S, (8, 16))
        """,
        """
        [TL2006] T.reshape cannot show 'S', float32[16, 16], as float32[8, 16]: the sizes in bits differ
         --> program.py:6:16
          |
        6 |         half = T.reshape(S, (8, 16))
          |                ^^^^^^^^^^^^^^^^^^^^^
        note: S is declared here
         --> program.py:4:13
          |
        4 |         S = T.alloc_shared((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: extents times bits per element must stay the same
        """,
    ),
    Mistake(
        "more elements",
        """
        more = T.view(S, (16, 17))
        """,
        """
        [TL2006] T.view cannot show 'S', float32[16, 16], as float32[16, 17]: the sizes in bits differ
         --> program.py:6:16
          |
        6 |         more = T.view(S, (16, 17))
          |                ^^^^^^^^^^^^^^^^^^^
        note: S is declared here
         --> program.py:4:13
          |
        4 |         S = T.alloc_shared((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: extents times bits per element must stay the same
        """,
    ),
    Mistake(
        "narrower elements",
        """
        half = T.view(S, (16, 16), dtype="float16")
        """,
        """
        [TL2006] T.view cannot show 'S', float32[16, 16], as float16[16, 16]: the sizes in bits differ
         --> program.py:6:16
          |
        6 |         half = T.view(S, (16, 16), dtype="float16")
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: S is declared here
         --> program.py:4:13
          |
        4 |         S = T.alloc_shared((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: extents times bits per element must stay the same
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is ViewMismatch
    assert isinstance(error, AssertionError)
    assert str(error) == mistake.expected
