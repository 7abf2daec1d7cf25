"""Elements of tiles that a loop names and the tile does not have."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from tile_core.arith.evaluate import evaluate
from tile_core.errors import IndexMismatch, Note, Span
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.expr import Binary, BinaryOp, Expr, Load, Select, Var
from tile_core.ir.free_variables import free_variables, is_host_evaluable
from tile_core.ir.node import Node, contains, nodes_of
from tile_core.ir.stmt import (
    Break,
    Continue,
    For,
    If,
    Kernel,
    Launch,
    Let,
    OnThreads,
    Parallel,
    Pipelined,
    Seq,
    Store,
    While,
)
from tile_core.ir.visitor import static_range

_MOST_LOOPS = 6
"""Indices of more loops are not tried: each doubles the iterations that are."""


def verify_tile_bounds(kernel: Kernel) -> None:
    """Check accesses to tiles in loops whose iterations are known, where every block gets to them.

    Only first and last iterations are tried, so what is refused does leave the tile; what may
    leave it is found when the kernel runs, in the interpreter and in emulators.

    Raises `IndexMismatch` at the first index outside a dimension of a tile in shared memory or
    registers.
    """
    for node in nodes_of(kernel.body, Launch):
        _visit(node.body, {}, node.span)


def _visit(stmt: Node, iterations: dict[Var, range], span: Span | None) -> None:
    """Check statements that certainly run, in every iteration of the loops in `iterations`."""
    span = stmt.span or span
    match stmt:
        case Seq(body=body):
            for item in body:
                _visit(item, iterations, span)
        case Parallel() | For() | Pipelined():
            own = _iterations_of(stmt)
            if own is not None and not contains(stmt, Break, Continue):
                _visit(stmt.body, iterations | own, span)
        case OnThreads(body=body):
            _visit(body, iterations, span)
        case If() | While():
            return
        case Store(buffer=buffer, indices=indices):
            _check(buffer, indices, iterations, span)
            for part in (*indices, stmt.value):
                _visit_loads(part, iterations, span)
        case Let(value=value):
            _visit_loads(value, iterations, span)


def _iterations_of(loop: Parallel | For | Pipelined) -> dict[Var, range] | None:
    """Return the iterations of each index of a loop; None if it may have none."""
    if not isinstance(loop, Parallel):
        iterations = static_range(loop)
        return {loop.var: iterations} if iterations else None
    counts = [range(static_value(extent) or 0) for extent in loop.extents]
    return dict(zip(loop.vars, counts, strict=True)) if all(counts) else None


def _visit_loads(expr: Expr, iterations: dict[Var, range], span: Span | None) -> None:
    for load in _certain_loads(expr):
        _check(load.buffer, load.indices, iterations, load.span or span)


def _certain_loads(expr: Node) -> Iterator[Load]:
    """Yield the loads that happen whenever an expression is computed."""
    match expr:
        case Select(cond=cond):
            yield from _certain_loads(cond)
            return
        case Binary(op=BinaryOp.AND | BinaryOp.OR, a=a):
            yield from _certain_loads(a)
            return
        case Load():
            yield expr
    for child in expr.children():
        if isinstance(child, Expr):
            yield from _certain_loads(child)


def _check(
    buffer: Buffer, indices: tuple[Expr, ...], iterations: dict[Var, range], span: Span | None
) -> None:
    if buffer.scope.is_global:
        return
    for axis, at in enumerate(indices):
        extent, used = static_value(buffer.shape[axis]), free_variables(at)
        known = used.keys() <= iterations.keys() and len(used) <= _MOST_LOOPS
        if extent is None or not known or not is_host_evaluable(at, iterations):
            continue
        for values in itertools.product(*((iterations[v][0], iterations[v][-1]) for v in used)):
            number = evaluate(at, dict(zip(used, values, strict=True)))
            if not 0 <= number < extent:
                raise _outside(buffer, axis, number, dict(zip(used, values, strict=True)), span)


def _outside(
    buffer: Buffer, axis: int, number: int, at: dict[Var, int], span: Span | None
) -> IndexMismatch:
    size = static_value(buffer.shape[axis])
    where = " and ".join(f"{var.name} is {value}" for var, value in at.items())
    return IndexMismatch(
        f"{number} is outside dimension {axis} of {buffer.name!r}, which has {size} "
        f"element{'s' * (size != 1)}" + (f", where {where}" if where else ""),
        span=span,
        notes=(Note(f"{buffer.name} is declared here", buffer.span),) if buffer.span else (),
        hint=f"only global tensors are checked at run time; stay inside {buffer.scope.value} "
        "buffers",
    )
