# ruff: noqa: E501 - messages are compared as they are printed
"""TL2004: the M, N or K extents of a matrix product disagree."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import GemmShapeMismatch

MISTAKES = [
    Mistake(
        "metadata of another depth",
        """
        e = T.alloc_shared((16, 1), "int16")
        T.gemm_sp(S, e, S, F)
        """,
        """
        [TL2004] the metadata of T.gemm_sp describe 16 rows of 8 elements, and S[16, 16] is 16 rows of 32
         --> program.py:7:9
          |
        7 |         T.gemm_sp(S, e, S, F)
          |         ^^^^^^^^^^^^^^^^^^^^^
        note: an element of int16 describes 8 of float32
        note: e is declared here
         --> program.py:6:13
          |
        6 |         e = T.alloc_shared((16, 1), "int16")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: set transpose_A or transpose_E, or change the shape of a tile
        """,
    ),
    Mistake(
        "too few scales",
        """
        n = T.alloc_shared((16, 64), "float8_e4m3fn")
        s = T.alloc_shared((16, 3), "float8_e4m3fn")
        T.gemm_blockscaled(n, n, F, s, s, False, True, k_start=0, sf_a_granularity_k=16, sf_b_granularity_k=32)
        """,
        """
        [TL2004] s[16, 3] has 16 rows of 3 scales, and n[16, 64] needs 16 rows of 4
         --> program.py:8:9
          |
        8 |         T.gemm_blockscaled(n, n, F, s, s, False, True, k_start=0, sf_a_granularity_k=16, sf_b_granularity_k=32)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: s is declared here
         --> program.py:7:13
          |
        7 |         s = T.alloc_shared((16, 3), "float8_e4m3fn")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give each 16 neighbours along K of each row a scale
        """,
    ),
    Mistake(
        "different K",
        """
        wide = T.alloc_shared((16, 32), "float32")
        T.gemm(wide, S, F)
        """,
        """
        [TL2004] T.gemm K shape check failed: 32 against 16 in wide[16, 32] @ S[16, 16] -> F[16, 16]
         --> program.py:7:9
          |
        7 |         T.gemm(wide, S, F)
          |         ^^^^^^^^^^^^^^^^^^
        note: wide is declared here
         --> program.py:6:16
          |
        6 |         wide = T.alloc_shared((16, 32), "float32")
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: S is declared here
         --> program.py:4:13
          |
        4 |         S = T.alloc_shared((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: F is declared here
         --> program.py:5:13
          |
        5 |         F = T.alloc_fragment((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: set transpose_A or transpose_B, or change the shape of a tile
        """,
    ),
    Mistake(
        "different M",
        """
        tall = T.alloc_shared((32, 16), "float32")
        T.gemm(tall, S, F)
        """,
        """
        [TL2004] T.gemm M shape check failed: 32 against 16 in tall[32, 16] @ S[16, 16] -> F[16, 16]
         --> program.py:7:9
          |
        7 |         T.gemm(tall, S, F)
          |         ^^^^^^^^^^^^^^^^^^
        note: tall is declared here
         --> program.py:6:16
          |
        6 |         tall = T.alloc_shared((32, 16), "float32")
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: S is declared here
         --> program.py:4:13
          |
        4 |         S = T.alloc_shared((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: F is declared here
         --> program.py:5:13
          |
        5 |         F = T.alloc_fragment((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: set transpose_A or transpose_B, or change the shape of a tile
        """,
    ),
    Mistake(
        "different N",
        """
        wide = T.alloc_shared((16, 32), "float32")
        T.gemm(S, wide, F)
        """,
        """
        [TL2004] T.gemm N shape check failed: 32 against 16 in S[16, 16] @ wide[16, 32] -> F[16, 16]
         --> program.py:7:9
          |
        7 |         T.gemm(S, wide, F)
          |         ^^^^^^^^^^^^^^^^^^
        note: S is declared here
         --> program.py:4:13
          |
        4 |         S = T.alloc_shared((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: wide is declared here
         --> program.py:6:16
          |
        6 |         wide = T.alloc_shared((16, 32), "float32")
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: F is declared here
         --> program.py:5:13
          |
        5 |         F = T.alloc_fragment((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: set transpose_A or transpose_B, or change the shape of a tile
        """,
    ),
    Mistake(
        "transposed by mistake",
        """
        wide = T.alloc_shared((16, 32), "float32")
        T.gemm(S, wide, F, transpose_B=True)
        """,
        """
        [TL2004] T.gemm K shape check failed: 16 against 32 in S[16, 16] @ wide[16, 32] transposed -> F[16, 16]
         --> program.py:7:9
          |
        7 |         T.gemm(S, wide, F, transpose_B=True)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: S is declared here
         --> program.py:4:13
          |
        4 |         S = T.alloc_shared((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: wide is declared here
         --> program.py:6:16
          |
        6 |         wide = T.alloc_shared((16, 32), "float32")
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: F is declared here
         --> program.py:5:13
          |
        5 |         F = T.alloc_fragment((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: set transpose_A or transpose_B, or change the shape of a tile
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is GemmShapeMismatch
    assert isinstance(error, AssertionError)
    assert str(error) == mistake.expected
