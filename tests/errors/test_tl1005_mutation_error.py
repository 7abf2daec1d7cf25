# ruff: noqa: E501 - messages are compared as they are printed
"""TL1005: an immutable value or a whole buffer is assigned to."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import MutationError

MISTAKES = [
    Mistake(
        "adding to a whole buffer",
        """
        S += 1
        """,
        """
        [TL1005] the whole buffer 'S' cannot be changed by `+=`
         --> program.py:6:9
          |
        6 |         S += 1
          |         ^^^^^^
        hint: update elements in a loop: for i in T.Parallel(...): S[i] += x
        """,
    ),
    Mistake(
        "assigning to a slice",
        """
        A[0:4, 0] = 1.0
        """,
        """
        [TL1005] a slice of 'A' cannot be assigned to
         --> program.py:6:9
          |
        6 |         A[0:4, 0] = 1.0
          |         ^^^^^^^^^
        hint: use T.copy(src, dst) for tiles and T.fill(dst, value) for one value, or assign elements in a T.Parallel loop
        """,
    ),
    Mistake(
        "adding to a slice",
        """
        A[0:4, 0] += 1.0
        """,
        """
        [TL1005] a slice of 'A' cannot be changed by `+=`
         --> program.py:6:9
          |
        6 |         A[0:4, 0] += 1.0
          |         ^^^^^^^^^
        hint: update elements in a T.Parallel loop
        """,
    ),
    Mistake(
        "adding to a region",
        """
        row = S[0, 0:16]
        row += 1.0
        """,
        """
        [TL1005] the region 'row' cannot be changed by `+=`
         --> program.py:7:9
          |
        7 |         row += 1.0
          |         ^^^^^^^^^^
        hint: update elements of the buffer in a T.Parallel loop
        """,
    ),
    Mistake(
        "assigning to an element of a region",
        """
        row = S[0, 0:16]
        row[3] = 1.0
        """,
        """
        [TL1005] the region 'S' cannot be assigned to through an index
         --> program.py:7:9
          |
        7 |         row[3] = 1.0
          |         ^^^^^^
        hint: index the buffer itself, or use T.copy or T.fill on the region
        """,
    ),
    Mistake(
        "assigning to an element of a number",
        """
        n[0] = 4
        """,
        """
        [TL1005] an element of a value of dtype int32 cannot be assigned to
         --> program.py:6:9
          |
        6 |         n[0] = 4
          |         ^^^^
        hint: only buffers have elements: allocate one with T.alloc_local
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is MutationError
    assert isinstance(error, RuntimeError)
    assert str(error) == mistake.expected
