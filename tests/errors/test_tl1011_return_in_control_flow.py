"""TL1011: a `return` stands inside a branch or loop that is taken only at run time."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import ReturnInControlFlow

MISTAKES = [
    Mistake(
        "in a branch",
        """
        if n > 4:
            return
        A[0, 0] = 1.0
        """,
        """
        [TL1011] `return` inside a run-time 'if' block is not supported
         --> program.py:7:13
          |
        7 |             return
          |             ^^^^^^
        hint: guard the statements that follow with `if`
        """,
    ),
    Mistake(
        "in a loop",
        """
        for i in range(4):
            return
        """,
        """
        [TL1011] `return` inside a run-time 'loop' block is not supported
         --> program.py:7:13
          |
        7 |             return
          |             ^^^^^^
        hint: guard the statements that follow with `if`
        """,
    ),
    Mistake(
        "in a macro",
        """
        @T.macro
        def clipped(x):
            if x > 4:
                return 4
            return x
        A[0, 0] = T.float32(clipped(n))
        """,
        """
        [TL1011] `return` inside a run-time 'if' block is not supported
         --> program.py:9:17
          |
        9 |                 return 4
          |                 ^^^^^^^^
        note: while expanding 'clipped' called here
          --> program.py:11:29
           |
        11 |         A[0, 0] = T.float32(clipped(n))
           |                             ^^^^^^^^^^
        hint: store the result in an alloc_var and return it at the end
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is ReturnInControlFlow
    assert isinstance(error, NotImplementedError)
    assert str(error) == mistake.expected
