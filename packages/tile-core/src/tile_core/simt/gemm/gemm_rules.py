"""The two ways to multiply matrices: by instructions of warps, and by ordinary arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.layout import Fragment, Layout, shared_operand
from tile_core.ops.gemm import Gemm
from tile_core.ops.rule import InferContext, InferLevel, LayoutMap, Rule
from tile_core.simt.context import SimtContext
from tile_core.simt.gemm.fma import lower_fma
from tile_core.simt.gemm.matrix_unit import MatrixUnit
from tile_core.simt.gemm.mma_lowering import (
    demanded_fragments,
    lower_instructions,
    warp_tiling,
)
from tile_core.simt.gemm.partition_errors import tell_of_missing_partition
from tile_core.simt.gemm.register_blocking import block_fragment, block_tiling
from tile_core.simt.gemm.shared_layouts import open_operand_layout
from tile_core.target import Target


def instruction_rule(name: str, unit: MatrixUnit) -> Rule[Gemm]:
    """Return the rule for MMAs by matrix instructions.

    Tiles that the warps of the block cannot share out exactly are multiplied by ordinary
    arithmetic: which of both it is depends on the number of threads only.

    Parameters
    ----------
    name
        What the rule is called.
    """
    machine = unit.machine

    def rejects(op: Gemm, target: Target) -> str | None:
        a, b, c = (str(r.buffer.dtype) for r in (op.a, op.b, op.c))
        if not unit.atoms(op, 1):
            exactly = " without rounding it" if "float32" in (a, b) else ""
            return f"{machine.name} has no instruction that multiplies {a} by {b} into {c}{exactly}"
        return _unreachable(op)

    def infer(op: Gemm, ctx: InferContext, level: InferLevel) -> LayoutMap:
        tiling = warp_tiling(op, unit, ctx.threads, ctx.layout_of(op.c.buffer))
        if tiling is None:
            return fma_layouts(op, ctx, level)
        if level is InferLevel.STRICT:
            demands = demanded_fragments(op, tiling)
            return {b: f for b, f in demands.items() if b is op.c.buffer or _is_open(b, ctx)}
        layouts: dict[Buffer, Layout | Fragment] = {}
        for operand, is_k_last in _operands(op):
            layouts.update(open_operand_layout(operand, ctx, _layout(unit, is_k_last)))
        return layouts

    def lower(op: Gemm, ctx: SimtContext) -> Any:
        known = ctx.fragment_of(op.c.buffer) if op.c.buffer.scope is Scope.FRAGMENT else None
        tiling = warp_tiling(op, unit, ctx.threads, known)
        if tiling is None:
            tell_of_missing_partition(op, unit, ctx)
            return lower_fma(op, ctx)
        return lower_instructions(op, tiling, unit, ctx)

    return Rule(name=name, op=Gemm, lower=lower, infer_layout=infer, rejects=rejects, priority=20)


def _is_open(buffer: Buffer, ctx: InferContext) -> bool:
    """Whether nobody has fixed yet how an operand is spread; if somebody has, it is moved."""
    return ctx.layout_of(buffer) is None


def _layout(unit: MatrixUnit, is_k_last: bool) -> Callable[[tuple[int, ...], int], Layout]:
    return lambda shape, bits: unit.operand_layout(shape, bits, is_k_last)


def _operands(op: Gemm) -> tuple[tuple[Buffer, bool], ...]:
    """Return the tiles of both operands, and whether K is their last dimension."""
    return (op.a.buffer, not op.transpose_a), (op.b.buffer, op.transpose_b)


def fma_rule(name: str) -> Rule[Gemm]:
    """Return the rule for MMAs by ordinary arithmetic, of all element types.

    Parameters
    ----------
    name
        What the rule is called.
    """

    def rejects(op: Gemm, target: Target) -> str | None:
        if op.nibbles:
            return "the operands' bytes are two elements each"
        return _unreachable(op)

    return Rule(
        name=name, op=Gemm, lower=lower_fma, infer_layout=fma_layouts, rejects=rejects, priority=10
    )


def _unreachable(op: Gemm) -> str | None:
    """Return why threads cannot reach an operand, or must not; None if they can."""
    if op.instruction is not None:
        return f"the program asks for {op.instruction}"
    for name, region in (("A", op.a), ("B", op.b), ("C", op.c)):
        buffer = region.buffer
        if buffer.scope is Scope.GLOBAL:
            return f"{name}, {buffer.name!r}, is a tensor: copy the part needed into a shared tile"
        if buffer.scope not in (Scope.SHARED, Scope.FRAGMENT):
            return (
                f"{name}, {buffer.name!r}, belongs to one thread: use a shared tile or a fragment"
            )
    moves = any(static_value(start) is None for start in op.c.starts[-2:])
    if moves and op.c.buffer.scope is Scope.FRAGMENT:
        return f"C, {op.c.buffer.name!r}, is a part of a fragment whose place varies at run time"
    return None


def fma_layouts(op: Gemm, ctx: InferContext, level: InferLevel) -> LayoutMap:
    """Return layouts that suit ordinary arithmetic, where nobody else has a demand."""
    if level is InferLevel.STRICT:
        return {}
    layouts: dict[Buffer, Layout | Fragment] = {}
    for operand, _ in _operands(op):
        layouts.update(open_operand_layout(operand, ctx, shared_operand))
    buffer = op.c.buffer
    whole = op.c.is_whole and buffer.rank == 2
    if buffer.scope is Scope.FRAGMENT and whole and ctx.layout_of(buffer) is None:
        layouts[buffer] = block_fragment(block_tiling(op, ctx.threads))
    return layouts
