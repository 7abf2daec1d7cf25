# ruff: noqa: E501 - messages are compared as they are printed
"""TL3001: an operation of the layout algebra has no exact answer."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import LayoutError

MISTAKES = [
    Mistake(
        "a function of too few coordinates",
        """
        rows = T.Layout((16, 16), lambda i: i)
        """,
        """
        [TL3001] the layout function fails on 2 coordinates: <lambda>() takes 1 positional argument but 2 were given
         --> program.py:6:16
          |
        6 |         rows = T.Layout((16, 16), lambda i: i)
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: it takes one coordinate per dimension, and computes with + - * // % ^
        """,
    ),
    Mistake(
        "negative addresses",
        """
        shifted = T.Layout((16, 16), lambda i, j: (i - 5, j))
        """,
        """
        [TL3001] physical coordinate 0, i - 5, is negative: it goes down to -5
         --> program.py:6:19
          |
        6 |         shifted = T.Layout((16, 16), lambda i, j: (i - 5, j))
          |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: add 5: the first place is 0
        """,
    ),
    Mistake(
        "no elements",
        """
        empty = T.Layout((0, 16), lambda i, j: (i, j))
        """,
        """
        [TL3001] the extents of a layout are at least 1, got (0, 16)
         --> program.py:6:17
          |
        6 |         empty = T.Layout((0, 16), lambda i, j: (i, j))
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write the shape as a tuple of ints, such as (64, 32)
        """,
    ),
    Mistake(
        "no inverse",
        """
        flat = T.Layout((16, 16), lambda i, j: i).inverse()
        """,
        """
        [TL3001] elements (0, 0) and (0, 1) share the address 0
         --> program.py:6:16
          |
        6 |         flat = T.Layout((16, 16), lambda i, j: i).inverse()
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: only layouts without such elements have an inverse
        """,
    ),
    Mistake(
        "a loop over other dimensions",
        """
        for i in T.Parallel(16, loop_layout=T.Fragment((4, 4), lambda i, j: (i * 4 + j, 0))):
            A[i, 0] = 1.0
        """,
        """
        [TL3001] the loop_layout has 2 dimensions, the loop 1
         --> program.py:6:18
          |
        6 |         for i in T.Parallel(16, loop_layout=T.Fragment((4, 4), lambda i, j: (i * 4 + j, 0))):
          |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give a T.Fragment with one dimension per extent
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is LayoutError
    assert isinstance(error, ValueError)
    assert str(error) == mistake.expected
