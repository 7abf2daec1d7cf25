"""Operators as loops: of vectors where elements are independent, of scalars as the last resort."""

from __future__ import annotations

from itertools import product
from typing import Any

from tile_core.ops.atomic import AtomicTile
from tile_core.ops.copy import Copy
from tile_core.ops.gpu_only import GpuOperator
from tile_core.ops.operator import TileOperator
from tile_core.ops.parallel_form import is_element_wise, parallel_nest
from tile_core.ops.reducer import ReducerFinalize, ReducerInit
from tile_core.ops.rule import LowerContext, Rule
from tile_core.ops.serial_forms import expand
from tile_core.target import Target
from tile_cpu.lowering.context import Context
from tile_cpu.rules.panels import is_packing, lower_packing_copy

VECTOR_PRIORITY = -50
"""Above the serial form, below the rules that somebody wrote for an operator."""

SERIAL_PRIORITY = -100


def lower_vector(op: TileOperator, ctx: Context) -> Any:
    """Return the operator's elements as a data-parallel loop, lowered.

    A copy into panels packs them instead.
    """
    if isinstance(op, Copy) and is_packing(op, ctx):
        return lower_packing_copy(op, ctx)
    return ctx.lower_stmt(parallel_nest(expand(op)))


def rejects_vector(op: TileOperator, target: Target) -> str | None:
    """Decline operators whose elements, or the order of them, depend on each other."""
    if not is_element_wise(op):
        return "its elements may depend on each other"
    for read, written in product(op.reads(), op.writes()):
        if read is not written and read.buffer.storage is written.buffer.storage:
            return "source and destination may overlap"
    return None


def lower_serial(op: TileOperator, ctx: LowerContext) -> Any:
    """Return the expansion of `op`, lowered."""
    return ctx.lower_stmt(expand(op))


def rejects_serial(op: TileOperator, target: Target) -> str | None:
    """Decline what was asked of a copy engine by name: nothing stands for it here."""
    if isinstance(op, AtomicTile) and op.use_bulk:
        return "use_tma asks for the tensor memory accelerator of a GPU"
    return None


ELEMENTWISE_RULES: tuple[Rule[Any], ...] = (
    Rule(
        name="cpu.vector",
        op=TileOperator,
        lower=lower_vector,
        rejects=rejects_vector,
        priority=VECTOR_PRIORITY,
        except_for=frozenset({AtomicTile, GpuOperator}),  # no vector updates indivisibly
    ),
    *(
        Rule(name=f"cpu.{op.mnemonic}.vector", op=op, lower=lower_vector)
        for op in (ReducerFinalize, ReducerInit)
    ),
    Rule(
        name="cpu.serial",
        op=TileOperator,
        lower=lower_serial,
        rejects=rejects_serial,
        priority=SERIAL_PRIORITY,
        except_for=frozenset({GpuOperator}),
    ),
)
"""One rule for whatever operator is element-wise; reducers, whose serial forms are, too;
and one of lowest priority for whatever operator there is."""
