"""TL1015: a contract on a dimension contradicts itself, or its type."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import ContractError, FrontendTypeError, FrontendValueError

MISTAKES = [
    Mistake(
        "no multiple in the range",
        """
        m = T.dynamic("m", min=1, max=100, multiple_of=128)
        """,
        """
        [TL1015] the dimension 'm' cannot be a multiple of 128 from 1 to 100
         --> program.py:1:1
          |
        1 | m = T.dynamic("m", min=1, max=100, multiple_of=128)
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: there is none; the next is 128
        """,
        whole=True,
    ),
    Mistake(
        "an empty range",
        """
        m = T.dynamic("m", min=5, max=4)
        """,
        """
        [TL1015] the dimension 'm' cannot be at least 5 and at most 4
         --> program.py:1:1
          |
        1 | m = T.dynamic("m", min=5, max=4)
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give min <= max
        """,
        whole=True,
    ),
    Mistake(
        "a multiple of nothing",
        """
        m = T.dynamic("m", multiple_of=0)
        """,
        """
        [TL1015] the dimension 'm' cannot be a multiple of 0
         --> program.py:1:1
          |
        1 | m = T.dynamic("m", multiple_of=0)
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: multiple_of is 1 or more
        """,
        whole=True,
    ),
    Mistake(
        "a negative extent",
        """
        m = T.dynamic("m", min=-1)
        """,
        """
        [TL1015] the dimension 'm' cannot be at least -1
         --> program.py:1:1
          |
        1 | m = T.dynamic("m", min=-1)
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: a dimension is never negative: min is 0 or more
        """,
        whole=True,
    ),
    Mistake(
        "more than its type holds",
        """
        m = T.dynamic("m", max=2**40)
        """,
        """
        [TL1015] the dimension 'm' cannot have m <= 1099511627776
         --> program.py:1:1
          |
        1 | m = T.dynamic("m", max=2**40)
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: int32 ends at 2147483647: write T.dynamic("m", "int64", …)
        """,
        whole=True,
    ),
]
TYPE = Mistake(
    "a number that is none",
    """
    m = T.dynamic("m", multiple_of=1.5)
    """,
    """
    [TL1003] multiple_of is an int, got float
     --> program.py:1:1
      |
    1 | m = T.dynamic("m", multiple_of=1.5)
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: a contract is known while the kernel is traced
    """,
    whole=True,
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is ContractError
    assert isinstance(error, FrontendValueError)
    assert str(error) == mistake.expected


def test_a_contract_of_something_else():
    error = TYPE.error()
    assert type(error) is FrontendTypeError
    assert str(error) == TYPE.expected
