"""TL2009: an operator writes elements that it still has to read."""

from __future__ import annotations

import pytest

import tile_api.language as T
from support.mistakes import Mistake
from tile_core.errors import AliasedOperands
from tile_core.ir.buffer import Buffer, Region, Scope, whole
from tile_core.ir.build_expr import const
from tile_core.ir.expr import Var
from tile_core.ops.region_pairing import surely_overlap

MISTAKES = [
    Mistake(
        "a sum that is a factor",
        "T.gemm(S, F, S)",
        """
        [TL2009] T.gemm adds to S[16, 16], which is its operand A too
         --> program.py:6:9
          |
        6 |         T.gemm(S, F, S)
          |         ^^^^^^^^^^^^^^^
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
        hint: add up in a tile of its own: T.alloc_fragment
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake: Mistake) -> None:
    error = mistake.error()
    assert type(error) is AliasedOperands
    assert str(error) == mistake.expected


@pytest.mark.parametrize(
    "line",
    [
        "T.gemm(F, S, S)",
        "T.gemm(S[0:8, :], F, S[4:12, :])",
        "T.gemm(F, S[:, 0:8], S[:, 7:15])",
        "T.gemm(F, T.reshape(S, (1, 16, 16))[0, :, :], S)",
    ],
)
def test_parts_and_views(line: str) -> None:
    assert type(Mistake("", line, "").error()) is AliasedOperands


def test_parts_that_do_not_meet() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 16), "float32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((3, 32, 16), "float32")
            F = T.alloc_shared((16, 16), "float32")
            T.gemm(S[0, 0:16, :], F, S[0, 16:32, :])
            for k in range(2):
                T.gemm(S[k, :, :], F, S[k + 1, :, :])

    assert kernel.kernel.name == "kernel"


def test_what_is_certain() -> None:
    tile = Buffer("S", (8, 8), "float32", Scope.SHARED)
    k = Var("k", const(0).dtype)

    def rows(start, count=4) -> Region:
        return Region(tile, (start, 0), (count, 8))

    assert surely_overlap(whole(tile), rows(3))
    assert surely_overlap(rows(0), rows(3))
    assert surely_overlap(rows(k), rows(k))
    assert surely_overlap(rows(k + 1), rows(k + 1))
    assert not surely_overlap(rows(0), rows(4))
    assert not surely_overlap(rows(k), rows(k + 1))
    assert not surely_overlap(rows(k), rows(0))
    assert not surely_overlap(rows(0, 0), rows(0))
    assert not surely_overlap(whole(Buffer("R", (8, 8), "float32", Scope.SHARED)), rows(0))
