"""Accumulators that are cleared behind their use, for the next iteration: MMAs do it instead."""

from __future__ import annotations

from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.build_expr import as_expr
from tile_core.ir.effects import accesses
from tile_core.ir.expr import Const
from tile_core.ir.node import Node, nodes_of, substitute, walk
from tile_core.ir.stmt import For, Kernel, OnThreads, Seq, Stmt
from tile_core.ops.copy import Fill
from tile_core.ops.gemm import Gemm
from tile_core.passes.overlap.gemm_loop_body import RunsBeside, opened, touched, written
from tile_core.records import replace


def zero_init_accumulators(kernel: Kernel, runs_beside: RunsBeside) -> Kernel:
    """Return `kernel` with MMAs that set accumulators which are zero before each iteration.

    Before   fill part, 0
             for k:  gemm A_s, B_s -> part;  total += part * S;  fill part, 0
    After    for k:  gemm A_s, B_s -> part (set);  total += part * S

    No iteration then knows of another one's accumulators, so that two can be in flight. Nothing
    else in the round may write them, and nothing but one fill before the loop touches them outside
    of it.
    """
    done: dict[Node, Node] = {}
    for around in nodes_of(kernel.body, OnThreads):
        for loop in nodes_of(around.body, For):
            for product in (s for s in opened(loop.body) if isinstance(s, Gemm)):
                fills = _fills_around(product, loop, around) if runs_beside(product) else None
                if fills is not None:
                    done[product] = replace(product, clear=as_expr(True))
                    done.update({fill: Seq(()) for fill in fills})
    return substitute(kernel, done) if done else kernel


def _fills_around(product: Gemm, loop: For, around: OnThreads) -> tuple[Stmt, Stmt] | None:
    """Return what zeroes an MMA's accumulators, before a loop and at the end of each iteration."""
    sums = product.c.buffer
    if static_value(product.clear) != 0 or not _is_whole(product.c):
        return None
    users = [s for s in opened(loop.body) if sums in touched(s)]
    if users[0] is not product or len(users) < 2 or not _zeroes(users[-1], sums):
        return None
    if any(sums in written(s) for s in users[1:-1]):
        return None
    elsewhere = substitute(around.body, {loop: Seq(())})
    outside = [a.node for a in accesses(elsewhere) if a.buffer.storage is sums]
    if len(outside) != 1 or not _zeroes(outside[0], sums):
        return None
    fill = outside[0]
    assert isinstance(fill, Fill)
    return (fill, users[-1]) if _stands_before(around.body, fill, loop) else None


def _is_whole(region: Region) -> bool:
    """Whether a region is all of a fragment that has no other name."""
    tile = region.buffer
    return (
        tile.scope is Scope.FRAGMENT
        and tile.origin is None
        and all(static_value(s) == 0 for s in region.starts)
        and region.static_extents == tile.static_shape
    )


def _zeroes(node: Node, sums: Buffer) -> bool:
    return (
        isinstance(node, Fill)
        and node.dst.buffer is sums
        and _is_whole(node.dst)
        and isinstance(node.value, Const)
        and node.value.value == 0
    )


def _stands_before(stmt: Stmt, fill: Stmt, loop: Stmt) -> bool:
    """Whether `fill` is a statement of a sequence of which a later one holds `loop`."""
    for sequence in nodes_of(stmt, Seq):
        if any(item is fill for item in sequence.body):
            (position,) = (k for k, s in enumerate(sequence.body) if s is fill)
            return any(n is loop for item in sequence.body[position + 1 :] for n in walk(item))
    return False
