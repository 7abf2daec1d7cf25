"""TL1014: an operation exists, but not in this form."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import UnsupportedForm

MISTAKES = [
    Mistake(
        "previous values of a tile",
        """
        T.atomic_add(A, S, return_prev=True)
        """,
        """
        [TL1014] T.atomic_add cannot return the previous values of a whole tile
         --> program.py:6:9
          |
        6 |         T.atomic_add(A, S, return_prev=True)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: update single elements in a T.Parallel loop to get them
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is UnsupportedForm
    assert isinstance(error, NotImplementedError)
    assert str(error) == mistake.expected
