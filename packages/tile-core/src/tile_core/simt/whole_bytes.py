"""Elements that share a byte are written by one thread, or not at all."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tile_core.errors import Note, UnsupportedOnTarget
from tile_core.ir.arith import as_expr
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.expr import Expr
from tile_core.ir.node import walk
from tile_core.ir.stmt import For, If, Parallel, Seq, Stmt, Store, While
from tile_core.layout.loop import LoopLayout, planned
from tile_core.passes.ranges import Env
from tile_core.simt.context import SimtContext
from tile_core.simt.lanes import part, within
from tile_core.simt.packing import is_packed
from tile_core.simt.strides import Lanes, multiple_of


def in_pairs(loop: Parallel, layout: LoopLayout, ctx: SimtContext) -> LoopLayout:
    """Return a layout of `loop` in which a thread runs neighbours that share a byte.

    Only loops that hold no register tiles are dealt out anew; `layout` is returned for all
    others, and for those that store no packed elements.
    """
    nodes = tuple(walk(loop.body))
    stores = any(isinstance(n, Store) and is_packed(n.buffer) for n in nodes)
    holds = any(isinstance(n, Buffer) and n.scope.is_spread for n in nodes)
    total = math.prod(layout.extents)
    if not stores or holds or layout.vector > 1 or total % 2:
        return layout
    return planned(layout.extents, ctx.threads, 2, least=2)


def check_bytes(body: Stmt, lanes: Lanes, ctx: SimtContext) -> None:
    """Check that a thread that stores an element of 4 bits stores its neighbour too.

    Writing one of them reads and writes back the byte of both, which two threads must not do.

    Parameters
    ----------
    body
        The body of a parallel loop, as tile IR, with points in terms of thread and lane.
    lanes
        The neighbours that one thread runs.

    Raises
    ------
    UnsupportedOnTarget
        If that cannot be shown: neither along the lanes nor along a sequential loop inside
        does the element run through whole bytes.
    """
    for stmt, runs in _packed_stores(body, (lanes,)):
        offset = as_expr(ctx.places.offset(stmt.buffer, stmt.indices))
        if not any(_runs_through_bytes(offset, run, ctx) for run in runs):
            raise UnsupportedOnTarget(
                f"two threads would write halves of one byte of {stmt.buffer.name!r}",
                span=stmt.span,
                notes=(Note(f"{stmt.buffer.name} is declared here", stmt.buffer.span),),
                hint=f"let rows of {stmt.buffer.dtype} tensors and of the tiles stored to them "
                "have even extents, or store bytes of two elements each",
            )


def _packed_stores(
    stmt: Stmt, runs: tuple[Lanes, ...]
) -> Iterator[tuple[Store, tuple[Lanes, ...]]]:
    match stmt:
        case Seq(body=body):
            for item in body:
                yield from _packed_stores(item, runs)
        case If(then=then, otherwise=otherwise):
            yield from _packed_stores(then, runs)
            if otherwise is not None:
                yield from _packed_stores(otherwise, runs)
        case While(body=body):
            yield from _packed_stores(body, runs)
        case For(body=body):
            yield from _packed_stores(body, (*runs, *_run_of(stmt, runs[0].env)))
        case Store(buffer=buffer) if is_packed(buffer):
            yield stmt, runs


def _run_of(loop: For, env: Env) -> Iterator[Lanes]:
    first, stop, step = (static_value(e) for e in (loop.start, loop.stop, loop.step))
    if first == 0 and stop is not None and step == 1:
        yield Lanes(loop.var, stop, env.with_loop(loop.var, 0, stop))


def _runs_through_bytes(offset: Expr, run: Lanes, ctx: SimtContext) -> bool:
    if run.count < 2 or run.count % 2:
        return False
    pair = part(run, 2, ctx)
    step = within(offset, run, pair)
    return step is not None and step.factor == 1 and multiple_of(step.base, pair.lanes.env) % 2 == 0
