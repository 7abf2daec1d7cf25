"""TL1006: a loop or branch that cannot be traced: endless, or in the wrong place."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import ControlFlowError

MISTAKES = [
    Mistake(
        "an endless loop",
        """
        while True:
            A[0, 0] = 1.0
        """,
        """
        [TL1006] the condition of this `while` is always true, so the loop would never end
         --> program.py:6:9
          |
        6 |         while True:
          |         ^^^^^^^^^^^
        hint: test a run-time value, such as an alloc_var that the body changes
        """,
    ),
    Mistake(
        "leaving T.Parallel",
        """
        for i in T.Parallel(16):
            if A[i, 0] > 0:
                break
            A[i, 0] = 1.0
        """,
        """
        [TL1006] `break` is not possible in a T.Parallel loop
         --> program.py:8:17
          |
        8 |                 break
          |                 ^^^^^
        hint: guard the statements with `if`, or use T.serial or `while`
        """,
    ),
    Mistake(
        "leaving T.Pipelined",
        """
        for k in T.Pipelined(16, num_stages=2):
            if k > n:
                break
            T.copy(A, S)
        """,
        """
        [TL1006] `break` is not possible in a T.Pipelined loop
         --> program.py:8:17
          |
        8 |                 break
          |                 ^^^^^
        hint: guard the statements with `if`, or use T.serial or `while`
        """,
    ),
    Mistake(
        "skipping a round of T.Parallel",
        """
        for i in T.Parallel(16):
            if A[i, 0] > 0:
                continue
            A[i, 0] = 1.0
        """,
        """
        [TL1006] `continue` is not possible in a T.Parallel loop
         --> program.py:8:17
          |
        8 |                 continue
          |                 ^^^^^^^^
        hint: guard the statements with `if`, or use T.serial or `while`
        """,
    ),
    Mistake(
        "a launch in a launch",
        """
        with T.Kernel(2) as by:
            A[0, 0] = 1.0
        """,
        """
        [TL1006] T.Kernel cannot be nested inside another T.Kernel
         --> program.py:6:9
          |
        6 |         with T.Kernel(2) as by:
          |         ^^^^^^^^^^^^^^^^^^^^^^^
        hint: write the launches one after the other: they run in order
        """,
    ),
    Mistake(
        "a macro as an operand",
        """
        @T.macro
        def reset():
            A[0, 0] = 0.0
            return True
        if n > 0 and reset():
            A[0, 0] = 1.0
        """,
        """
        [TL1006] the macro 'reset' is called in an operand of `and`
          --> program.py:10:22
           |
        10 |         if n > 0 and reset():
           |                      ^^^^^^^
        hint: call it in a statement before, and use its result here
        """,
    ),
    Mistake(
        "a macro in a conditional expression",
        """
        @T.macro
        def reset():
            A[0, 0] = 0.0
            return 1.0
        A[0, 1] = reset() if n > 0 else 0.0
        """,
        """
        [TL1006] the macro 'reset' is called in an operand of a conditional expression
          --> program.py:10:19
           |
        10 |         A[0, 1] = reset() if n > 0 else 0.0
           |                   ^^^^^^^
        hint: call it in a statement before, and use its result here
        """,
    ),
    Mistake(
        "a macro that calls itself",
        """
        @T.macro
        def step(i):
            step(i + 1)
        step(0)
        """,
        """
        [TL1006] the macro 'step' calls itself without end
         --> program.py:8:13
          |
        8 |             step(i + 1)
          |             ^^^^^^^^^^^
        note: while expanding 'step' called here
         --> program.py:9:9
          |
        9 |         step(0)
          |         ^^^^^^^
        hint: macros are expanded while tracing; recursion must end on Python values
        """,
    ),
    Mistake(
        "the truth of a value in a helper",
        """
        positive = lambda x: 1.0 if x > 0 else 0.0
        A[0, 0] = positive(n)
        """,
        """
        [TL1006] the truth of a run-time expression is not known while the kernel is traced
         --> program.py:7:19
          |
        7 |         A[0, 0] = positive(n)
          |                   ^^^^^^^^^^^
        hint: use T.if_then_else(cond, a, b), T.And/T.Or, or `if` directly in the kernel body
        """,
    ),
    Mistake(
        "leaving an unrolled loop",
        """
        for i in T.unroll(4, explicit=True):
            if A[i, 0] > 0:
                break
            A[i, 0] = 1.0
        """,
        """
        [TL1006] `break` and `continue` are not possible in a loop that is unrolled explicitly
         --> program.py:8:17
          |
        8 |                 break
          |                 ^^^^^
        hint: leave out explicit=True
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is ControlFlowError
    assert isinstance(error, RuntimeError)
    assert str(error) == mistake.expected
