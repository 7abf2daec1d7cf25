"""Operators whose elements are independent: copies, fills and the like, as vector loops."""

from __future__ import annotations

from typing import Any

from tile_core.errors import InternalError
from tile_core.ir.buffer import static_value
from tile_core.ir.expr import Expr, Var
from tile_core.ir.stmt import For, Parallel, Stmt
from tile_core.ops.copy import Copy, Im2col, Transpose
from tile_core.ops.fill import Fill
from tile_core.ops.operator import TileOperator
from tile_core.ops.reduce import ReducerFinalize, ReducerInit
from tile_core.ops.rule import Rule
from tile_core.ops.serial import expand
from tile_core.target import Target
from tile_cpu.lowering.context import Context
from tile_cpu.rules.panels import is_packing, lower_packing_copy

_OPERATORS: tuple[type[TileOperator], ...] = (
    Copy,
    Fill,
    Im2col,
    ReducerFinalize,
    ReducerInit,
    Transpose,
)


def as_parallel(stmt: Stmt) -> Stmt:
    """Return perfectly nested loops whose rounds are independent as one data-parallel loop.

    Before   for i in range(4): for j in range(8): T[i, j] = 0
    After    parallel i, j in (4, 8): T[i, j] = 0
    """
    variables: list[Var] = []
    extents: list[Expr] = []
    body = stmt
    while isinstance(body, For):
        if static_value(body.start) != 0 or static_value(body.step) != 1:
            raise InternalError("an expansion counts from 0 in steps of 1", span=stmt.span)
        variables.append(body.var)
        extents.append(body.stop)
        body = body.body
    if not variables:
        return stmt
    return Parallel(tuple(variables), tuple(extents), body, span=stmt.span)


def lower(op: TileOperator, ctx: Context) -> Any:
    """Return the operator's elements as a data-parallel loop, lowered.

    A copy into panels packs them instead.
    """
    if isinstance(op, Copy) and is_packing(op, ctx):
        return lower_packing_copy(op, ctx)
    return ctx.lower_stmt(as_parallel(expand(op)))


def rejects(op: TileOperator, target: Target) -> str | None:
    """Decline copies within one buffer: their order may matter."""
    if isinstance(op, Copy) and op.src.buffer.storage is op.dst.buffer.storage:
        return "source and destination may overlap"
    return None


ELEMENTWISE_RULES: tuple[Rule[Any], ...] = tuple(
    Rule(name=f"cpu.{op.mnemonic}.vector", op=op, lower=lower, rejects=rejects) for op in _OPERATORS
)
