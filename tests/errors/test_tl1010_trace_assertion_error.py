"""TL1010: an `assert` on a compile-time value inside a kernel is false."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import TraceAssertionError

MISTAKES = [
    Mistake(
        "a plain assertion",
        """
        assert 16 % 3 == 0, "the tile must divide the tensor"
        """,
        """
        [TL1010] the tile must divide the tensor
         --> program.py:6:9
          |
        6 |         assert 16 % 3 == 0, "the tile must divide the tensor"
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: the values are known while the kernel is traced: change the arguments that lead here
        """,
    ),
    Mistake(
        "a device assertion",
        """
        T.device_assert(False, "never reached")
        """,
        """
        [TL1010] never reached
         --> program.py:6:9
          |
        6 |         T.device_assert(False, "never reached")
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: its value is known while the kernel is traced: change the arguments that lead here
        """,
    ),
    Mistake(
        "an assumption",
        """
        T.assume(16 > 32)
        """,
        """
        [TL1010] the condition of T.assume is false
         --> program.py:6:9
          |
        6 |         T.assume(16 > 32)
          |         ^^^^^^^^^^^^^^^^^
        hint: its value is known while the kernel is traced: change the arguments that lead here
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is TraceAssertionError
    assert isinstance(error, AssertionError)
    assert str(error) == mistake.expected
