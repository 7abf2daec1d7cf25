"""When a round surely overwrites all of a fragment before it looks at it."""

from __future__ import annotations

from typing import Any

import pytest

from tile_core.analysis.first_access import is_overwritten
from tile_core.ir.buffer import Buffer
from tile_core.ir.stmt import Seq, Stmt
from tile_core.testing import build_ir as ir

W = ir.fragment("W", (16, 8))
LINE = ir.fragment("line", (16,))
COLUMN = ir.fragment("column", (16, 1))
N = ir.symbol("n")


def stored(extents: tuple[Any, ...], *places: Any, also: Any = None) -> Stmt:
    """Return a loop that stores to W at each of `places`, which are functions of its indices."""

    def body(*indices: Any) -> list[Any]:
        stores = [ir.store(W, place(*indices), 1.0) for place in places]
        return [*stores, *([also(*indices)] if also else [])]

    return ir.parallel(extents, body)


COVER: dict[str, Stmt] = {
    "each index": stored((16, 8), lambda i, j: (i, j)),
    "the other way round": stored((8, 16), lambda j, i: (i, j)),
    "two for each point": stored((16, 4), lambda i, j: (i, 2 * j), lambda i, j: (i, 2 * j + 1)),
    "halves": stored((16, 4), lambda i, j: (i, j), lambda i, j: (i, j + 4)),
    "a dimension of two indices": stored((4, 4, 8), lambda a, b, j: (a * 4 + b, j)),
    "an inner loop": ir.parallel((16,), lambda i: ir.serial(8, lambda j: ir.store(W, (i, j), 0.0))),
    "rows of two halves": stored((8, 8), lambda i, j: (2 * i, j), lambda i, j: (2 * i + 1, j)),
    "a fill": ir.fill(W, 0),
    "a fill in a loop": ir.serial(4, lambda k: ir.fill(W, 0)),
    "a copy": ir.copy(ir.fragment("other", (16, 8)), W),
}

LEAVE: dict[str, Stmt] = {
    "a part": stored((16, 4), lambda i, j: (i, j)),
    "every other": stored((16, 4), lambda i, j: (i, 2 * j)),
    "a diagonal": stored((16, 8), lambda i, j: (i, (i + j) % 8)),
    "one index in both": stored((8, 8), lambda i, j: (i + j, j)),
    "the same half twice": stored((16, 4), lambda i, j: (i, j), lambda i, j: (i, j)),
    "halves of two dimensions": stored((8, 8), lambda i, j: (i, j), lambda i, j: (i + 8, j % 4)),
    "what a condition chooses": ir.parallel(
        (16, 8), lambda i, j: ir.when(i < N, ir.store(W, (i, j), 0.0))
    ),
    "as far as is known at run time": ir.parallel(
        (16,), lambda i: ir.serial(N, lambda j: ir.store(W, (i, j), 0.0))
    ),
    "what it reads": ir.parallel((16, 8), lambda i, j: ir.store(W, (i, j), ir.load(W, i, j) * 2.0)),
    "a fill that may never run": ir.serial(N, lambda k: ir.fill(W, 0)),
    "a fill that never runs": ir.serial(0, lambda k: ir.fill(W, 0)),
    "a row": ir.fill(ir.region(W, (0, 0), (1, 8)), 0),
    "nothing": stored((16, 8), also=lambda i, j: ir.store(LINE, (i,), 0.0)),
}


@pytest.mark.parametrize("name", COVER)
def test_all_is_overwritten(name: str) -> None:
    assert is_overwritten([ir.fill(LINE, 0), COVER[name]], W)


@pytest.mark.parametrize("name", LEAVE)
def test_something_may_be_left(name: str) -> None:
    assert not is_overwritten([LEAVE[name]], W)


def test_what_comes_first_counts() -> None:
    """A part first, and all of it behind that: the part was not overwritten by all."""
    assert not is_overwritten([LEAVE["a part"], COVER["each index"]], W)
    assert is_overwritten([COVER["each index"], LEAVE["what it reads"]], W)


def test_a_loop_that_may_never_run_leaves_everything() -> None:
    """Even where one iteration would do: the count is known at run time, or is none."""

    def column(count: Any) -> Stmt:
        return ir.parallel(
            (16,), lambda i: ir.serial(count, lambda j: ir.store(COLUMN, (i, j), 0.0))
        )

    assert is_overwritten([column(1)], COLUMN)
    assert not is_overwritten([column(N)], COLUMN)
    assert not is_overwritten([column(0)], COLUMN)


def test_views_are_seen() -> None:
    """What is written through another name of the same registers is no store to all of it."""
    flat: Buffer = ir.view(W, (128,))
    loop = ir.parallel((128,), lambda i: ir.store(flat, (i,), 0.0))
    assert not is_overwritten([Seq((loop,))], W)
