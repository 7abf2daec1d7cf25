"""Where fences stand between what threads write and engines that read it."""

from __future__ import annotations

from typing import Any

import pytest

from tile_core.ir.node import walk
from tile_core.ir.stmt import Kernel, Parallel, Seq, Stmt
from tile_core.ops.async_copy import CopyCommit, CopyWait
from tile_core.ops.bulk_copy import BulkCopy, BulkWait, FenceAsync
from tile_core.ops.copy import Copy, Fill
from tile_core.passes.fence_async_reads import fence_async_reads
from tile_core.testing import build_ir as ir

C = ir.tensor("C", (64, 64), "float16")
TILE = ir.shared("tile", (64, 64), "float16")
OTHER = ir.shared("other", (64, 64), "float16")
SUMS = ir.fragment("sums", (64, 64))
HALF = ir.fragment("half", (64, 64), "float16")


def kernel(*stmts: Any) -> Kernel:
    """Return a kernel of one block that runs `stmts`."""
    tiles = (TILE, OTHER, SUMS, HALF)
    return ir.kernel([C], 1, lambda bx: [*ir.alloc(*tiles), *stmts], threads=128)


def fenced(*stmts: Any, beside: bool = True) -> list[Stmt]:
    """Return the statements behind which a fence stands."""
    made = fence_async_reads(kernel(*stmts), lambda op: beside)
    found = []
    for node in walk(made.body):
        if isinstance(node, Seq):
            pairs = zip(node.body, node.body[1:], strict=False)
            found += [a for a, b in pairs if isinstance(b, FenceAsync)]
    assert sum(isinstance(n, FenceAsync) for n in walk(made.body)) == len(found)
    return found


def bulk_store(tile: Any = TILE) -> list[Stmt]:
    return [BulkCopy(ir.operand(tile), ir.operand(C)), BulkWait()]


def doubled(tile: Any) -> Parallel:
    return ir.parallel((64, 64), lambda i, j: ir.store(tile, (i, j), ir.load(HALF, i, j)))


def test_what_an_engine_stores_is_fenced() -> None:
    """Copies, fills and loops that write the tile, and no others."""
    first, second, third = ir.copy(HALF, TILE), ir.fill(TILE, 0), doubled(TILE)
    others = [ir.copy(HALF, OTHER), doubled(OTHER), ir.fill(HALF, 0)]
    assert fenced(*others, first, second, third, *bulk_store()) == [first, second, third]


def test_stores_in_a_loop_are_fenced_behind_it() -> None:
    """A fence for each element would be one too many."""
    loop = doubled(TILE)
    assert fenced(loop, *bulk_store()) == [loop]


@pytest.mark.parametrize("beside", [True, False])
def test_factors_that_warpgroups_read_are_fenced(beside: bool) -> None:
    """Products that threads compute read shared memory as threads do."""
    a, b = ir.copy(HALF, TILE), ir.copy(HALF, OTHER)
    assert fenced(a, b, ir.gemm(TILE, OTHER, SUMS), beside=beside) == ([a, b] if beside else [])


def test_factors_in_registers_need_none() -> None:
    a, b = ir.fill(HALF, 1), ir.copy(HALF, OTHER)
    assert fenced(a, b, ir.gemm(HALF, OTHER, SUMS)) == [b]


def test_what_engines_bring_needs_none() -> None:
    """Engines see each other's writes: barriers in memory tell of them."""
    barrier = ir.region(ir.shared("bar", (1,), "uint64"), (0,), (1,))
    load = BulkCopy(ir.operand(C), ir.operand(TILE), barrier)
    assert fenced(load, ir.gemm(TILE, TILE, SUMS)) == []


def test_asynchronous_copies_are_fenced_where_they_are_waited_for() -> None:
    """Before that nothing is there to be seen."""
    copy = Copy(ir.operand(C), ir.operand(TILE), is_async=True)
    wait = CopyWait(0)
    assert fenced(copy, CopyCommit(), wait, ir.gemm(TILE, TILE, SUMS)) == [wait]


def test_waits_for_copies_that_no_engine_reads_are_left_alone() -> None:
    copy = Copy(ir.operand(C), ir.operand(OTHER), is_async=True)
    fill = ir.fill(TILE, 0)
    assert fenced(copy, CopyCommit(), CopyWait(0), fill, *bulk_store()) == [fill]


def test_launches_without_engines_are_the_same() -> None:
    plain = kernel(ir.copy(HALF, TILE), ir.copy(TILE, C))
    assert fence_async_reads(plain, lambda op: True) is plain


def test_launches_are_looked_at_one_by_one() -> None:
    """What one launch stores in bulk is another's own affair."""
    fill = ir.fill(TILE, 0)
    one = ir.launch(1, lambda bx: [*ir.alloc(TILE), fill, *bulk_store()], threads=128)
    two = ir.launch(1, lambda bx: [*ir.alloc(OTHER), ir.fill(OTHER, 0)], threads=128)
    made = fence_async_reads(Kernel("main", (C,), Seq((one, two))), lambda op: True)
    assert isinstance(made.body, Seq)
    assert made.body.body[1] is two
    assert any(isinstance(n, FenceAsync) for n in walk(made.body.body[0]))
    assert isinstance(fill, Fill)
