# ruff: noqa: E501 - messages are compared as they are printed
"""TL4005: the tiles of one block do not fit the memory the machine offers them."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import OutOfScratch

MISTAKES = [
    Mistake(
        "tiles larger than memory",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                big = T.alloc_shared((65536, 65536), "float32")
                small = T.alloc_fragment((64, 64), "float32")
                T.clear(big)
                T.clear(small)
        tile.compile(kernel, target="cpu")
        """,
        """
        [TL4005] the tiles of one block take 16 GiB, and a block on the CPU has 1 GiB
         --> program.py:4:15
          |
        4 |         big = T.alloc_shared((65536, 65536), "float32")
          |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: big takes 16 GiB
         --> program.py:4:15
          |
        4 |         big = T.alloc_shared((65536, 65536), "float32")
          |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: small takes 16 KiB
         --> program.py:5:17
          |
        5 |         small = T.alloc_fragment((64, 64), "float32")
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: choose smaller tiles and loop over them, or a narrower element type; T.alloc_global makes a workspace of any size
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is OutOfScratch
    assert str(error) == mistake.expected
