"""A walk over the statements of a launch that knows where each of them runs."""

from __future__ import annotations

from tile_core.arith.evaluate_arrays import Unknown
from tile_core.cost.iteration_spaces import ASSUMED_TRIPS, Axis, Space
from tile_core.ir.build_expr import binary
from tile_core.ir.expr import BinaryOp, Expr, Extent
from tile_core.ir.stmt import (
    For,
    If,
    Launch,
    Let,
    LoopKind,
    OnThreads,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    While,
)


class Visitor:
    """What is done at each statement; a visitor overrides what it counts."""

    def leaf(self, stmt: Stmt, space: Space) -> None:
        """Count a statement that has no statements in it, at all points of `space`."""

    def condition(self, cond: Expr, space: Space) -> None:
        """Count a condition that is tested at all points of `space`."""

    def loop(self, stmt: For | Pipelined | While, space: Space, inner: Space) -> None:
        """Count the iterations of a loop around `inner` that begins at all points of `space`."""

    def note(self, text: str) -> None:
        """Remember that something had to be assumed."""


def visit(launch: Launch, space: Space, visitor: Visitor, *, with_threads: bool = False) -> None:
    """Show `visitor` the statements of `launch`, each with its space.

    `space` has values of symbols and names, without axes. If statements are those of one
    thread, the threads of a block are among their axes.
    """
    axes = [
        Axis(v, 0, n, is_block=True)
        for v, n in reversed([*zip(launch.block_vars, launch.grid, strict=True)])
    ]
    if with_threads:
        threads = reversed([*zip(launch.thread_vars, launch.threads, strict=True)])
        axes += [Axis(v, 0, n, is_thread=True) for v, n in threads]
    _visit(launch.body, space.along(*axes), visitor)


def _visit(stmt: Stmt, space: Space, visitor: Visitor) -> Space:
    """Visit one statement; return the space of what follows it."""
    match stmt:
        case Seq(body=body):
            inner = space
            for item in body:
                inner = _visit(item, inner, visitor)
        case Let(var=var, value=value):
            visitor.leaf(stmt, space)
            return space.named(var, value)
        case For() | Pipelined():
            _loop(stmt, space, visitor)
        case Parallel(vars=variables, extents=extents, body=body):
            axes = [
                Axis(v, 0, _known(n, space, visitor), is_element=True)
                for v, n in zip(variables, extents, strict=True)
            ]
            _visit(body, space.along(*axes), visitor)
        case While(cond=cond, body=body):
            visitor.note(f"iterations of a loop that tests a condition: {ASSUMED_TRIPS} assumed")
            inner = space.in_part(ASSUMED_TRIPS)
            visitor.condition(cond, inner)
            visitor.loop(stmt, space, inner)
            _visit(body, inner, visitor)
        case If(cond=cond, then=then, otherwise=otherwise):
            visitor.condition(cond, space)
            _visit(then, space.given(cond), visitor)
            if otherwise is not None:
                _visit(otherwise, space.given(cond, holds=False), visitor)
        case OnThreads(body=body):
            _visit(body, space, visitor)
        case _:
            visitor.leaf(stmt, space)
    return space


def _loop(stmt: For | Pipelined, space: Space, visitor: Visitor) -> None:
    step = 1 if isinstance(stmt, Pipelined) else space.constant(stmt.step) or 1
    count = _known(_iterations(stmt.start, stmt.stop, step), space, visitor)
    start: Extent = stmt.start if space.knows(stmt.start) else 0
    unrolled = isinstance(stmt, For) and stmt.kind is LoopKind.UNROLL
    inner = space.along(Axis(stmt.var, start, count, step, is_unrolled=unrolled))
    visitor.loop(stmt, space, inner)
    _visit(stmt.body, inner, visitor)


def _iterations(start: Extent, stop: Extent, step: int) -> Extent:
    """Return how often a loop runs, at least 0 times."""
    if isinstance(start, int) and isinstance(stop, int):
        return len(range(start, stop, step))
    ahead = binary(BinaryOp.SUB, stop, start) if step > 0 else binary(BinaryOp.SUB, start, stop)
    size = abs(step)
    return binary(BinaryOp.MAX, binary(BinaryOp.FLOORDIV, ahead + (size - 1), size), 0)


def _known(count: Extent, space: Space, visitor: Visitor) -> Extent:
    """Return a count of iterations that the space tells, or the one that is assumed."""
    try:
        space.reach(count)
    except Unknown:
        visitor.note(f"iterations of a loop that depend on data: {ASSUMED_TRIPS} assumed")
        return ASSUMED_TRIPS
    return count
