"""Pointers that are used as tensors, and numbers that are used as pointers."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake

MISTAKES = [
    Mistake(
        "an element of a pointer",
        """
        @T.prim_func
        def kernel(p: T.ptr):
            with T.Kernel(1, threads=32):
                p[0] = 1.0
        """,
        """
        [TL1005] an element of a value of dtype handle cannot be assigned to
         --> program.py:4:9
          |
        4 |         p[0] = 1.0
          |         ^^^^
        hint: make a tensor of the address: T.make_tensor(pointer, shape, dtype)
        """,
        whole=True,
    ),
    Mistake(
        "a tensor at a number that is no address",
        """
        B = T.make_tensor(n, (4,), "float32")
        """,
        """
        [TL1003] a tensor needs an address to lie at, got a value of int32
         --> program.py:6:13
          |
        6 |         B = T.make_tensor(n, (4,), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: pass buffer.data, a T.ptr parameter, or an element of a table of addresses
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake: Mistake) -> None:
    assert str(mistake.error()) == mistake.expected
