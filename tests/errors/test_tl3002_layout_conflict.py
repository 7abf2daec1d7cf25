"""TL3002: two operators demand different layouts for one buffer."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import LayoutConflict

MISTAKES = [
    Mistake(
        "annotated twice",
        """
        T.annotate_layout({S: T.Layout((16, 16), lambda i, j: (i, j))})
        T.annotate_layout({S: T.Layout((16, 16), lambda i, j: (j, i))})
        """,
        """
        [TL3002] 'S' is given two different layouts: element (0, 1) is not at the same place in both
         --> program.py:7:9
          |
        7 |         T.annotate_layout({S: T.Layout((16, 16), lambda i, j: (j, i))})
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: the first is given here
         --> program.py:6:9
          |
        6 |         T.annotate_layout({S: T.Layout((16, 16), lambda i, j: (i, j))})
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: keep one of them, or copy the tile to a second one with the other layout
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is LayoutConflict
    assert str(error) == mistake.expected
