"""The rule for matrix products by warpgroups, and its way out where a block cannot use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.buffer import Buffer, Scope, whole
from tile_core.ir.device import device
from tile_core.ir.stmt import Alloc, Evaluate, Seq, Stmt
from tile_core.layout import Fragment, Layout, boxed_operand
from tile_core.machine import SimtMachine
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.ops.rule import InferContext, InferLevel, LayoutMap, Rule
from tile_core.passes.fence_async_writes import filled_again
from tile_core.records import replace
from tile_core.remarks import NotApplicable, remark
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import seq
from tile_core.simt.gemm_warp_partition import permuted
from tile_core.simt.rules.staged_copy import lower_layout_conversion
from tile_core.target import Target
from tile_cuda.rules.wgmma_box_widths import in_the_way, layouts_for_all
from tile_cuda.rules.wgmma_lowering import lower_warpgroups
from tile_cuda.rules.wgmma_operands import SharedOperand
from tile_cuda.rules.wgmma_plan import (
    WarpgroupPlan,
    accumulator_fragment,
    is_spread,
    operand_part,
    refusal,
    settled_plan,
    warpgroup_plan,
)


def wgmma_rule(machine: SimtMachine, *others: Rule[Gemm]) -> Rule[Gemm]:
    """Return the rule for MMAs that warpgroups of `machine` compute.

    `others` are the rules, in order of preference, for MMAs that the threads of a block cannot
    share as warpgroups, or whose tiles are stored so that no descriptor describes them.
    """

    def rejects(op: Gemm, target: Target) -> str | None:
        return refusal(op, machine)

    def infer(op: Gemm, ctx: InferContext, level: InferLevel) -> LayoutMap:
        layout_of = layouts_for_all(op, machine, ctx)
        try:
            plan = warpgroup_plan(op, machine, ctx.threads, layout_of, ctx.block_threads)
        except NotApplicable:
            return other_rule(op, ctx.target, others).infer_layout(op, ctx, level)
        return _demands(op, plan, ctx) if level is InferLevel.STRICT else {}

    def lower(op: Gemm, ctx: SimtContext) -> Stmt:
        try:
            plan = settled_plan(op, machine, ctx)
        except NotApplicable as why:
            reason = in_the_way(op, why.reason, machine, ctx)
            return _lower_otherwise(op, reason, others, ctx)
        if not is_spread(ctx.fragment_of(op.c.buffer), accumulator_fragment(op, plan)):
            reason = f"{op.c.buffer.name!r} is spread differently"
            return _lower_otherwise(op, reason, others, ctx)
        before, own = _with_operand_in_place(op, plan, ctx)
        return seq(before, lower_warpgroups(own, plan, ctx, op))

    return Rule(
        name="cuda.gemm.wgmma", op=Gemm, lower=lower, infer_layout=infer, rejects=rejects,
        priority=30, is_asynchronous=True,
    )  # fmt: skip


def other_rule(op: Gemm, target: Target, others: Sequence[Rule[Gemm]]) -> Rule[Gemm]:
    """Return the rule that computes what warpgroups do not; the last one takes everything."""
    return next((rule for rule in others if rule.rejects(op, target) is None), others[-1])


def _lower_otherwise(op: Gemm, why: str, others: Sequence[Rule[Gemm]], ctx: SimtContext) -> Stmt:
    if op.instruction is not None:
        raise UnsupportedOnTarget(
            f"this matrix product cannot be a warpgroup MMA: {why}",
            span=op.span,
            hint="use T.gemm, which chooses among all instructions",
        )
    remark("missed", "select_rule", f"this matrix product uses no warpgroup MMA: {why}", op.span)
    return lower_by_warps(op, others, ctx)


def lower_by_warps(op: Gemm, others: Sequence[Rule[Gemm]], ctx: SimtContext) -> Stmt:
    """Return an MMA that passes took for an asynchronous one, as the first of `others` has it."""
    lowered: Stmt = other_rule(op, ctx.target, others).lower(op, ctx)
    filled = filled_again(ctx.launch)
    if not any(region.buffer.storage in filled for region in (op.a, op.b)):
        return lowered
    # Passes took the async proxy for the reader: threads fence before it fills the tile again.
    return seq(lowered, Evaluate(device("fence_proxy_async"), span=op.span))


def _demands(op: Gemm, plan: WarpgroupPlan, ctx: InferContext) -> LayoutMap:
    """Return the fragments of accumulators and of an operand in registers, and layouts in memory.

    What is fixed already is left: an operand that is spread in another way is moved.
    """
    wanted: dict[Buffer, Layout | Fragment] = {op.c.buffer: accumulator_fragment(op, plan)}
    if plan.a is None and ctx.layout_of(op.a.buffer) is None:
        wanted.setdefault(op.a.buffer, _operand(op, plan))
    for operand in (plan.a, plan.b):
        if operand is not None and ctx.layout_of(operand.region.buffer) is None:
            wanted[operand.region.buffer] = _boxes(operand)
    return wanted


def _boxes(operand: SharedOperand) -> Layout:
    tile = operand.tile
    return boxed_operand(operand.region.buffer.static_shape or (), tile.bits, tile.span)


def _operand(op: Gemm, plan: WarpgroupPlan) -> Fragment:
    """Return how the first operand must be spread if it is in registers."""
    order = (1, 0) if op.transpose_a else (0, 1)
    part = operand_part(op)
    steps = part.all // plan.tiling.atom.k if part else plan.tiling.steps
    return permuted(
        replace(plan.tiling, steps=steps).a_fragment(), order, (op.a.buffer.static_shape or ())[:-2]
    )


def _with_operand_in_place(op: Gemm, plan: WarpgroupPlan, ctx: SimtContext) -> tuple[Stmt, Gemm]:
    """Return what brings an operand into the registers it is needed in, and `op` on these.

    Before   gemm P, V_shared, C_local  (P spread as somebody else demands)
    After    space <- P;  barrier;  P_factor <- space;  barrier;  gemm P_factor, V_shared, C_local
    """
    buffer = op.a.buffer
    if buffer.scope is not Scope.FRAGMENT:
        return Seq(()), op
    wanted = _operand(op, plan)
    if is_spread(ctx.fragment_of(buffer), wanted):
        return Seq(()), op
    own = Buffer(
        ctx.names.fresh(f"{buffer.name}_factor"), buffer.shape, buffer.dtype, Scope.FRAGMENT,
        span=buffer.span,
    )  # fmt: skip
    known: dict[Buffer, Any] = ctx.places.layouts.known
    known[own] = wanted
    moved = lower_layout_conversion(Copy(whole(buffer), whole(own), span=op.span), ctx)
    region = replace(op.a, buffer=own)
    return seq(Alloc(ctx.places.flat(own)), moved), replace(op, a=region)
