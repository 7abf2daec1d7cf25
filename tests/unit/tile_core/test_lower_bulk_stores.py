"""Which copies out of shared memory the engine makes, and how long is waited for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.node import walk
from tile_core.ir.stmt import Kernel
from tile_core.ir.verify import verify
from tile_core.ops.bulk_copy import BulkCopy, BulkWait
from tile_core.ops.copy import Copy
from tile_core.passes.lower_bulk_stores import lower_bulk_stores
from tile_core.testing import build_ir as ir
from tile_cuda.machine import machine

HOPPER = machine("sm_90a")
C = ir.tensor("C", (256, 256), "float16")
TILE = ir.shared("tile", (64, 64), "float16")
HALF = ir.fragment("half", (64, 64), "float16")


def kernel(*stmts: Any, threads: int = 128, params: Any = (C,)) -> Kernel:
    return ir.kernel(params, 4, lambda bx: [*ir.alloc(TILE, HALF), *stmts], threads=threads)


def box(row: Any = 0, column: Any = 0) -> Any:
    return ir.region(C, (row, column), (64, 64))


def stored(made: Kernel) -> list[Any]:
    """Return what became of copies out of shared memory, in order."""
    verify(made)
    return [
        n
        for n in walk(made.body)
        if isinstance(n, (BulkCopy, BulkWait))
        or (isinstance(n, Copy) and n.src.buffer.storage is TILE)
    ]


def test_a_copy_out_of_a_tile_is_the_engine_s() -> None:
    copy = ir.copy(TILE, box(64, 128))
    made = lower_bulk_stores(kernel(ir.copy(HALF, TILE), copy), HOPPER)
    moved, wait = stored(made)
    assert isinstance(moved, BulkCopy)
    assert (moved.src, moved.dst, moved.barrier, moved.reduce) == (copy.src, copy.dst, None, None)
    assert (wait.pending, wait.is_read_enough) == (0, True)


def test_wishes_for_the_cache_are_kept() -> None:
    copy = replace(ir.copy(TILE, box()), eviction_policy="evict_first")
    moved, _ = stored(lower_bulk_stores(kernel(copy), HOPPER))
    assert moved.eviction_policy == "evict_first"


@pytest.mark.parametrize(
    "other",
    [ir.copy(box(), HALF), ir.copy(HALF, box()), ir.copy(TILE, box(64))],
    ids=["read", "written", "stored"],
)
def test_tensors_that_others_touch_are_waited_for(other: Any) -> None:
    """That the tile has been read says nothing of when the tensor is written."""
    made = stored(lower_bulk_stores(kernel(ir.copy(TILE, box()), other), HOPPER))
    waits = [w for w in made if isinstance(w, BulkWait)]
    assert waits
    assert not any(w.is_read_enough for w in waits)


def test_rounds_of_a_loop_write_one_after_the_other() -> None:
    """Two copies to one place have no order of their own."""
    loop = ir.serial(4, lambda k: ir.seq(ir.fill(TILE, 0), ir.copy(TILE, box(k * 64))))
    before, moved, after = stored(lower_bulk_stores(kernel(loop), HOPPER))
    assert (type(before), before.is_read_enough) == (BulkWait, False)
    assert isinstance(moved, BulkCopy)
    assert after.is_read_enough


WIDE = ir.tensor("C", (256, 250), "float16")
FLOAT = ir.tensor("C", (256, 256), "float32")

STAY: dict[str, Kernel] = {
    "rows at odd places": kernel(ir.copy(TILE, ir.region(WIDE, (0, 0), (64, 64))), params=(WIDE,)),
    "a conversion": kernel(ir.copy(TILE, ir.region(FLOAT, (0, 0), (64, 64))), params=(FLOAT,)),
    "from registers": kernel(ir.copy(HALF, box())),
    "another wish": kernel(replace(ir.copy(TILE, box()), disable_bulk=True)),
    "columns in part": kernel(
        ir.copy(ir.region(TILE, (0, 0), (64, 32)), ir.region(C, (0, 0), (64, 32)))
    ),
    "a program of threads": ir.kernel(
        [C],
        4,
        lambda bx, tx, ty, tz: [
            *ir.alloc(TILE),
            ir.store(TILE, (0, tx), 1.0),
            ir.copy(TILE, box()),
        ],
        threads=64,
        thread_indices=True,
    ),
}


@pytest.mark.parametrize("name", STAY)
def test_other_copies_stay(name: str) -> None:
    assert lower_bulk_stores(STAY[name], HOPPER) is STAY[name]


def test_machines_without_an_engine_are_left_alone() -> None:
    plain = kernel(ir.copy(TILE, box()))
    assert lower_bulk_stores(plain, machine("sm_80")) is plain


def test_one_of_two_copies_may_stay() -> None:
    odd = ir.region(WIDE, (0, 0), (64, 64))
    stays = ir.copy(TILE, replace(odd, buffer=replace(WIDE, name="D")))
    made = lower_bulk_stores(
        kernel(ir.copy(TILE, box()), stays, params=(C, stays.dst.buffer)), HOPPER
    )
    assert [type(n) for n in stored(made)] == [BulkCopy, BulkWait, Copy]


def test_a_wish_that_cannot_be_followed_is_an_error() -> None:
    copy = replace(ir.copy(TILE, ir.region(WIDE, (0, 0), (64, 64))), prefer_instruction="tma")
    with pytest.raises(UnsupportedOnTarget, match="multiples of 16 bytes"):
        lower_bulk_stores(kernel(copy, params=(WIDE,)), HOPPER)
