"""How NVIDIA GPUs multiply matrices: one rule per kind of instruction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.layout import Fragment, Layout
from tile_core.machine import SimtMachine
from tile_core.ops.gemm import Gemm
from tile_core.ops.operator import InferContext, InferLevel, LayoutMap
from tile_core.ops.rule import Rule
from tile_core.simt.context import SimtContext
from tile_core.simt.packing import storage_dtype
from tile_core.target import Target
from tile_cuda.atoms import ROUNDS_FLOAT32, atoms_for_tiles
from tile_cuda.rules.gemm_blocks import block_fragment, block_tiling
from tile_cuda.rules.gemm_fma import lower_fma
from tile_cuda.rules.gemm_mma import lower_mma, mma_demands, mma_tiling
from tile_cuda.rules.gemm_partition import tell_of_missing_partition
from tile_cuda.rules.gemm_wgmma import wgmma_rule
from tile_cuda.rules.matrix_copy import matrix_copy_rule
from tile_cuda.rules.matrix_stores import matrix_store_rule
from tile_cuda.rules.shared_layouts import open_operand_layout
from tile_cuda.rules.wgmma_waits import wait_rule


def gemm_rules(machine: SimtMachine) -> tuple[Rule[Any], ...]:
    """Return the ways `machine` multiplies matrices exactly, and loads their factors.

    Factors of float32 are multiplied without matrix instructions; tiles of element type
    ``tfloat32`` were rounded by whoever filled them.
    """
    mma, fma = mma_rule(machine), fma_rule(machine)
    by_groups = (wgmma_rule(machine, mma, fma),) if machine.has("wgmma") else ()
    stores = (matrix_store_rule(machine),) if machine.has("stmatrix") else ()
    return (*by_groups, mma, fma, wait_rule(machine), matrix_copy_rule(machine), *stores)


def tf32_rules(machine: SimtMachine) -> tuple[Rule[Gemm], ...]:
    """Return the rules for products of float32 by matrix instructions, which round the factors.

    They keep as many bits of the mantissa as float16 has: only users can allow that. Warps
    round to the nearest number on the way into registers; warpgroups read factors in memory
    as they are and drop the other bits.
    """
    rounding = replace(machine, features=machine.features | {ROUNDS_FLOAT32})
    mma = mma_rule(rounding)
    by_groups = (wgmma_rule(rounding, mma, fma_rule(machine)),) if machine.has("wgmma") else ()
    return tuple(_of_float32(rule) for rule in (*by_groups, mma))


def _of_float32(rule: Rule[Gemm]) -> Rule[Gemm]:
    def rejects(op: Gemm, target: Target) -> str | None:
        if "float32" not in (str(op.a.buffer.dtype), str(op.b.buffer.dtype)):
            return "no factor is float32"
        return rule.rejects(op, target)

    return replace(rule, name=f"{rule.name}_tf32", rejects=rejects)


def mma_rule(machine: SimtMachine) -> Rule[Gemm]:
    """Return the rule for products by matrix instructions.

    Tiles that the warps of the block cannot share out exactly are multiplied by ordinary
    arithmetic: which of both it is depends on the number of threads only.
    """

    def rejects(op: Gemm, target: Target) -> str | None:
        a, b, c = (str(r.buffer.dtype) for r in (op.a, op.b, op.c))
        if not atoms_for_tiles(machine, a, b, c):
            exactly = " without rounding it" if "float32" in (a, b) else ""
            return f"{machine.name} has no instruction that multiplies {a} by {b} into {c}{exactly}"
        return _unreachable(op)

    def infer(op: Gemm, ctx: InferContext, level: InferLevel) -> LayoutMap:
        tiling = mma_tiling(op, machine, ctx.threads)
        if tiling is None:
            return fma_wishes(op, ctx, level)
        if level is InferLevel.STRICT:
            demands = mma_demands(op, tiling)
            return {b: f for b, f in demands.items() if b is op.c.buffer or _is_open(b, ctx)}
        return shared_wishes(op, ctx, by_warps=True)

    def lower(op: Gemm, ctx: SimtContext) -> Any:
        tiling = mma_tiling(op, machine, ctx.threads)
        if tiling is None:
            tell_of_missing_partition(op, machine, ctx)
            return lower_fma(op, ctx)
        return lower_mma(op, tiling, ctx)

    return Rule(
        name="cuda.gemm.mma", op=Gemm, lower=lower, infer_layout=infer, rejects=rejects, priority=20
    )


def _is_open(buffer: Buffer, ctx: InferContext) -> bool:
    """Whether nobody has fixed yet how a factor is spread; if somebody has, it is moved."""
    return ctx.layout_of(buffer) is None


def fma_rule(machine: SimtMachine) -> Rule[Gemm]:
    """Return the rule for products by ordinary arithmetic, of all element types."""

    def rejects(op: Gemm, target: Target) -> str | None:
        if op.nibbles:
            return "the factors' bytes are two elements each"
        return _unreachable(op)

    return Rule(
        name="cuda.gemm.fma",
        op=Gemm,
        lower=lower_fma,
        infer_layout=fma_wishes,
        rejects=rejects,
        priority=10,
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


def fma_wishes(op: Gemm, ctx: InferContext, level: InferLevel) -> LayoutMap:
    """Return layouts that suit ordinary arithmetic, where nobody else has a demand."""
    if level is InferLevel.STRICT:
        return {}
    wishes: dict[Buffer, Layout | Fragment] = dict(shared_wishes(op, ctx))
    buffer = op.c.buffer
    whole = op.c.is_whole and buffer.rank == 2
    if buffer.scope is Scope.FRAGMENT and whole and ctx.layout_of(buffer) is None:
        wishes[buffer] = block_fragment(block_tiling(op, ctx.threads))
    return wishes


def shared_wishes(op: Gemm, ctx: InferContext, *, by_warps: bool = False) -> LayoutMap:
    """Return swizzled layouts for factors in shared memory whose layout is still open.

    Parameters
    ----------
    by_warps
        Matrix instructions read them: elements that ``ldmatrix`` cannot turn are read one by
        one then, by four threads along K and eight across.
    """

    def wish(buffer: Buffer, is_k_last: bool) -> LayoutMap:
        bits = storage_dtype(buffer.dtype, buffer.scope).bits
        one_by_one = by_warps and (bits == 64 or (bits in (8, 32) and not is_k_last))
        return open_operand_layout(buffer, ctx, by_elements=one_by_one)

    return {**wish(op.a.buffer, not op.transpose_a), **wish(op.b.buffer, op.transpose_b)}
