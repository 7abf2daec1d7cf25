"""How NVIDIA GPUs multiply matrices: one rule per kind of instruction."""

from __future__ import annotations

from typing import Any

from tile_core.errors import LayoutError
from tile_core.ir.buffer import Buffer, Scope
from tile_core.layout import shared_operand
from tile_core.ops.gemm import Gemm
from tile_core.ops.operator import InferContext, InferLevel, LayoutMap
from tile_core.ops.rule import Rule
from tile_core.simt.context import SimtContext
from tile_core.simt.machine import SimtMachine
from tile_core.simt.packing import storage_dtype
from tile_core.target import Target
from tile_cuda.atoms import atoms_for
from tile_cuda.rules.gemm_mma import lower_mma, mma_demands, mma_tiling


def gemm_rules(machine: SimtMachine) -> tuple[Rule[Any], ...]:
    """Return the ways `machine` multiplies matrices, and how it moves their factors."""
    return (mma_rule(machine),)


def mma_rule(machine: SimtMachine) -> Rule[Gemm]:
    """Return the rule for products by matrix instructions."""

    def rejects(op: Gemm, target: Target) -> str | None:
        dtypes = (str(r.buffer.dtype) for r in (op.a, op.b, op.c))
        a, b, c = dtypes
        if not atoms_for(machine, a, b, c):
            return f"{machine.name} has no instruction that multiplies {a} by {b} into {c}"
        return None

    def infer(op: Gemm, ctx: InferContext, level: InferLevel) -> LayoutMap:
        tiling = mma_tiling(op, machine, ctx.threads)
        if tiling is None:
            return {}
        if level is InferLevel.STRICT:
            return mma_demands(op, tiling)
        return shared_wishes(op, ctx)

    def lower(op: Gemm, ctx: SimtContext) -> Any:
        tiling = mma_tiling(op, machine, ctx.threads)
        assert tiling is not None
        return lower_mma(op, tiling, ctx)

    return Rule(
        name="cuda.gemm.mma", op=Gemm, lower=lower, infer_layout=infer, rejects=rejects, priority=20
    )


def shared_wishes(op: Gemm, ctx: InferContext) -> LayoutMap:
    """Return swizzled layouts for factors in shared memory whose layout is still open."""
    wishes = {}
    for region in (op.a, op.b):
        buffer = region.buffer
        if buffer.scope is Scope.SHARED and ctx.layout_of(buffer) is None:
            wishes.update(_operand_layout(buffer, ctx))
    return wishes


def _operand_layout(buffer: Buffer, ctx: InferContext) -> LayoutMap:
    shape = buffer.static_shape
    if shape is None or ctx.is_viewed(buffer):
        return {}
    try:
        return {buffer: shared_operand(shape, storage_dtype(buffer.dtype, buffer.scope).bits)}
    except LayoutError:
        return {}
