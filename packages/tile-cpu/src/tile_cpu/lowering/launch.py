"""Launches: the grid as one parallel loop, and the blocks in it."""

from __future__ import annotations

import math
from typing import Any

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.buffer import static_value
from tile_core.ir.expr import BinaryOp, Var
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Launch
from tile_cpu.lowering.cache_hints import fence
from tile_cpu.lowering.context import Context, assigned, loaded
from tile_cpu.lowering.division import divide
from tile_cpu.lowering.parallel_threshold import block_nanoseconds
from tile_cpu.lowering.subbyte_races import may_share_bytes
from tile_cpu.lowering.types import number
from tile_cpu.openmp_threads import INLINE_BELOW_NS, is_one_thread, work_hint
from tile_cpu.passes.merge_gemm_blocks import for_one_thread
from tile_cpu.tir.build import i32, prim, seq
from tile_cpu.tir.nodes import Bind, ForKind, IfThenElse, PrimExpr, tirx
from tile_cpu.tir.nodes import For as TirFor
from tile_cpu.tir.nodes import Stmt as TirStmt
from tile_cpu.tir.nodes import Var as TirVar


def emit_launch(ctx: Context, launch: Launch) -> TirStmt:
    """Return the grid as one parallel loop over its blocks, x fastest.

    No launch follows one in which an assertion failed. Where one thread alone would rather have
    other blocks, there is a second loop for it, and which of them runs is decided when the
    kernel is called.

    Raises
    ------
    UnsupportedOnTarget
        If the body still names its threads.
    """
    _refuse_threads(launch)
    before = len(ctx.checks)
    loop = _launched(ctx, launch)
    if len(ctx.checks) == before or ctx.jump is None or ctx.status is None:
        return loop
    failed = tirx.NE(loaded(ctx.status), i32(0))
    return seq(loop, IfThenElse(failed, assigned(ctx.jump, i32(3)), None))


def _launched(ctx: Context, launch: Launch) -> TirStmt:
    shared = _grid_loop(ctx, launch)
    alone, stand_ins = for_one_thread(launch)
    if alone is launch:
        return shared
    ctx.stand_ins |= stand_ins
    return IfThenElse(is_one_thread(), _grid_loop(ctx, alone), shared)


def _grid_loop(ctx: Context, launch: Launch) -> TirStmt:
    fixed = [static_value(extent) for extent in launch.grid]
    small = None not in fixed and math.prod(e or 0 for e in fixed) < 2**31
    kind = "int32" if small else "int64"
    with ctx.statement() as statements:
        grid = [ctx.index(extent, kind) for extent in launch.grid]
        total: Any = number(1, kind)
        for extent in grid:
            total = total * extent
        block = TirVar("block", prim(kind))
        body = _block(ctx, launch, grid, block)
        blocks = math.prod(e or 0 for e in fixed) if small else None
        if blocks == 1:
            loop = seq(Bind(block, number(0, kind)), body)
        elif may_share_bytes(launch, ctx.env):
            loop = TirFor(block, number(0, kind), total, ForKind.SERIAL, body)
        else:
            loop = _blocks(block, total, body, block_nanoseconds(launch.body), blocks)
    return seq(statements, loop)


def _blocks(
    block: PrimExpr, total: PrimExpr, body: TirStmt, nanoseconds: float, count: int | None
) -> TirStmt:
    """Return the loop over blocks: on all threads, unless waking them takes longer."""
    start = number(0, str(block.ty.dtype))
    if count is not None:
        is_short = count * nanoseconds < INLINE_BELOW_NS
        kind = ForKind.SERIAL if is_short else ForKind.PARALLEL
        return TirFor(block, start, total, kind, body)
    loop = TirFor(block, start, total, ForKind.PARALLEL, body)
    if nanoseconds >= INLINE_BELOW_NS:
        return loop
    whole = tirx.Cast(prim("int64"), total) * number(math.ceil(nanoseconds), "int64")
    return seq(work_hint(whole), loop)


def _refuse_threads(launch: Launch) -> None:
    threads = set(launch.thread_vars)
    for node in nodes_of(launch.body, Var):
        if node in threads:
            raise UnsupportedOnTarget(
                f"thread index {node.name!r} was left in a kernel for the CPU", span=launch.span
            )


def _block(ctx: Context, launch: Launch, grid: list[PrimExpr], block: PrimExpr) -> TirStmt:
    """Return the body of one block: its indices, its scratch, its statements."""
    outer_entry, outer_jump = ctx.block_entry, ctx.jump
    ctx.block_entry = []
    env = ctx.env.with_grid(launch.block_vars, launch.grid)
    with ctx.scope(env), ctx.statement() as statements:
        rest = block
        for axis, (var, extent) in enumerate(zip(launch.block_vars, grid, strict=True)):
            last = axis == len(grid) - 1
            at = rest if last else divide(ctx, BinaryOp.FLOORMOD, rest, extent)
            rest = rest if last else divide(ctx, BinaryOp.FLOORDIV, rest, extent)
            named = TirVar(var.name, prim(str(var.dtype)))
            ctx.run(Bind(named, tirx.Cast(named.ty, at)))
            ctx.vars[var] = named
        ctx.jump = ctx.cell("int32", "jump")
        ctx.run(assigned(ctx.jump, i32(0)))
        ctx.streams = False
        body = ctx.lower_stmt(launch.body)
        if ctx.streams:
            body = seq(body, fence(ctx.machine))
    entry = ctx.block_entry
    ctx.block_entry, ctx.jump = outer_entry, outer_jump
    return seq(entry, statements, body)
