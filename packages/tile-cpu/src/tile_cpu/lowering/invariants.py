"""Values that are the same for all elements of a row, computed once in front of it."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Binary, Expr, Load, Select, Var
from tile_core.ir.node import Node, walk
from tile_core.ir.stmt import Alloc, For, If, Stmt, Store
from tile_core.ir.visitor import bound_variables
from tile_cpu.lowering.context import Context
from tile_cpu.tir.nodes import PrimExpr


def hoisted(ctx: Context, body: Stmt, var: Var) -> dict[Expr, PrimExpr]:
    """Return the values of the subexpressions of `body` that do not move with `var`.

    Only those that load something, as LLVM cannot tell that a store does not change it, and
    only where the loop surely evaluates them. Statements computing them are run here.
    """
    outer, ctx.frame.known = ctx.frame.known, {}  # the same expressions of another row
    values = {expr: ctx.keep(ctx.value(expr), "row") for expr in _invariants(body, var)}
    ctx.frame.known = outer
    return values


def _invariants(body: Stmt, var: Var) -> Iterator[Expr]:
    moving: set[Node] = {var}
    written: set[Buffer] = set()
    moving.update(bound_variables(body))
    for node in walk(body):
        match node:
            case Alloc(buffer=buffer):
                written.add(buffer)
            case Store(buffer=buffer):
                written.add(buffer.storage)
    for root in _certain(body):
        yield from _maximal(root, moving, written)


def _certain(stmt: Node) -> Iterator[Expr]:
    """Yield the expressions that every iteration of the loop evaluates."""
    for child in stmt.children():
        if isinstance(child, Expr):
            yield child
        elif not isinstance(child, (If, For, Buffer)) and not isinstance(stmt, (If, For)):
            yield from _certain(child)


def _maximal(expr: Expr, moving: set[Node], written: set[Buffer]) -> Iterator[Expr]:
    nodes = list(walk(expr))
    loads = [n for n in nodes if isinstance(n, Load)]
    if not loads:
        return
    fixed = not any(n in moving for n in nodes)
    if fixed and not expr.dtype.is_bool and not any(n.buffer.storage in written for n in loads):
        yield expr
        return
    match expr:
        case Select(cond=cond):
            yield from _maximal(cond, moving, written)
        case Binary(op=op, a=a) if op.is_logical:
            yield from _maximal(a, moving, written)
        case _:
            for child in expr.children():
                if isinstance(child, Expr):
                    yield from _maximal(child, moving, written)
