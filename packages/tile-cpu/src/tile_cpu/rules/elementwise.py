"""Operators whose elements are independent: copies, fills and the like, as vector loops."""

from __future__ import annotations

from itertools import product
from typing import Any

from tile_core.ops.atomic import AtomicTile
from tile_core.ops.copy import Copy
from tile_core.ops.gpu_only import GpuOperator
from tile_core.ops.operator import TileOperator
from tile_core.ops.parallel_form import is_element_wise, parallel_nest
from tile_core.ops.reducer import ReducerFinalize, ReducerInit
from tile_core.ops.rule import Rule
from tile_core.ops.serial_forms import expand
from tile_core.target import Target
from tile_cpu.lowering.context import Context
from tile_cpu.rules.panels import is_packing, lower_packing_copy

VECTOR_PRIORITY = -50
"""Above the serial form, below the rules that somebody wrote for an operator."""


def lower(op: TileOperator, ctx: Context) -> Any:
    """Return the operator's elements as a data-parallel loop, lowered.

    A copy into panels packs them instead.
    """
    if isinstance(op, Copy) and is_packing(op, ctx):
        return lower_packing_copy(op, ctx)
    return ctx.lower_stmt(parallel_nest(expand(op)))


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
