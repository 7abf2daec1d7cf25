"""Operators whose elements are independent: copies, fills and the like, as vector loops."""

from __future__ import annotations

from itertools import product
from typing import Any

from tile_core.errors import InternalError
from tile_core.ir.buffer import static_value
from tile_core.ir.expr import Expr, Var
from tile_core.ir.stmt import For, Parallel, Stmt
from tile_core.ops.atomic import AtomicTile
from tile_core.ops.copy import Copy
from tile_core.ops.gpu_only import GpuOperator
from tile_core.ops.operator import TileOperator
from tile_core.ops.parallel_form import is_element_wise
from tile_core.ops.reducer import ReducerFinalize, ReducerInit
from tile_core.ops.rule import Rule
from tile_core.ops.serial import expand
from tile_core.target import Target
from tile_cpu.lowering.context import Context
from tile_cpu.rules.panels import is_packing, lower_packing_copy

VECTOR_PRIORITY = -50
"""Above the serial form, below the rules that somebody wrote for an operator."""


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
    """Decline operators whose elements, or the order of them, depend on each other."""
    if not is_element_wise(op):
        return "its elements may depend on each other"
    for read, written in product(op.reads(), op.writes()):
        if read is not written and read.buffer.storage is written.buffer.storage:
            return "source and destination may overlap"
    return None


ELEMENTWISE_RULES: tuple[Rule[Any], ...] = (
    Rule(
        name="cpu.vector",
        op=TileOperator,
        lower=lower,
        rejects=rejects,
        priority=VECTOR_PRIORITY,
        except_for=frozenset({AtomicTile, GpuOperator}),  # no vector updates indivisibly
    ),
    *(
        Rule(name=f"cpu.{op.mnemonic}.vector", op=op, lower=lower)
        for op in (ReducerFinalize, ReducerInit)
    ),
)
"""One rule for whatever operator is element-wise, and reducers, whose serial forms are, too."""
