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
from tile_cpu.lowering.shared_panels import SharedPanels, shared_panels
from tile_cpu.lowering.subbyte_races import may_share_bytes
from tile_cpu.lowering.types import number
from tile_cpu.openmp_threads import INLINE_BELOW_NS, is_one_thread, work_hint
from tile_cpu.passes.merge_gemm_blocks import for_one_thread
from tile_cpu.tir.build import bind, i32, loop, prim, seq
from tile_cpu.tir.nodes import Bind, ForKind, IfThenElse, PrimExpr, tirx
from tile_cpu.tir.nodes import For as TirFor
from tile_cpu.tir.nodes import Stmt as TirStmt
from tile_cpu.tir.nodes import Var as TirVar
from tile_cpu.vectors import minimum


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
    panels = shared_panels(ctx, launch)
    if panels is not None and not may_share_bytes(launch, ctx.env):
        return _loops_over_panels(ctx, launch, panels)
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
            whole = seq(Bind(block, number(0, kind)), body)
        elif may_share_bytes(launch, ctx.env):
            whole = TirFor(block, number(0, kind), total, ForKind.SERIAL, body)
        else:
            whole = _blocks(block, total, body, block_nanoseconds(launch.body), blocks)
    return seq(statements, whole)


def _loops_over_panels(ctx: Context, launch: Launch, panels: SharedPanels) -> TirStmt:
    """Return loops that pack the second factor of some columns of the grid, then run their blocks.

    Before   parallel for b in 16: pack B[:, b % 4], multiply
    After    parallel for p in 4: pack B[:, p];  parallel for b in 16: multiply
    """
    counts, axis = [static_value(extent) or 0 for extent in launch.grid], panels.axis
    var, rows = launch.block_vars[axis], math.prod(counts) // counts[axis]
    most, parts, once = panels.columns, panels.parts, block_nanoseconds(launch.body)
    known = most if counts[axis] % most == 0 else 0  # columns of every group, 0 where they differ

    def group(at: Any) -> TirStmt:
        first = at * i32(most)
        columns, name = bind("columns", minimum(i32(counts[axis]) - first, most))
        columns, name = (i32(known), seq()) if known else (columns, name)
        part, block = (TirVar(what, prim("int32")) for what in ("part", "block"))
        env = ctx.env.with_grid(launch.block_vars, launch.grid)
        with ctx.scope(env), ctx.statement() as before:
            column, name_column = bind("column", tirx.truncdiv(part, i32(parts)))
            own = TirVar(var.name, prim(str(var.dtype)))
            ctx.run(seq(name_column, Bind(own, tirx.Cast(own.ty, column + first))))
            ctx.vars[var] = own
            body = panels.pack(ctx, column, tirx.truncmod(part, i32(parts)))
        extents = [columns if d == axis else i32(count) for d, count in enumerate(counts)]
        run = _block(ctx, launch, extents, block, (panels, first))
        pack = seq(before, body)
        return seq(
            name,
            _blocks(part, columns * i32(parts), pack, once / parts, known * parts or None),
            _blocks(block, columns * i32(rows), run, once, known * rows or None),
        )

    groups = math.ceil(counts[axis] / panels.columns)
    return seq(panels.allocation, loop(groups, group, name="group"))


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


def _block(
    ctx: Context,
    launch: Launch,
    grid: list[PrimExpr],
    block: PrimExpr,
    shared: tuple[SharedPanels, PrimExpr] | None = None,
) -> TirStmt:
    """Return the body of one block: its indices, its scratch, its statements.

    Where blocks have `shared` panels, those and the column of the grid that they begin with.
    """
    outer_entry, outer_jump = ctx.block_entry, ctx.jump
    ctx.block_entry = []
    env = ctx.env.with_grid(launch.block_vars, launch.grid)
    with ctx.scope(env), ctx.statement() as statements:
        rest = block
        for axis, (var, extent) in enumerate(zip(launch.block_vars, grid, strict=True)):
            last = axis == len(grid) - 1
            at = rest if last else divide(ctx, BinaryOp.FLOORMOD, rest, extent)
            rest = rest if last else divide(ctx, BinaryOp.FLOORDIV, rest, extent)
            if shared is not None and axis == shared[0].axis:
                ctx.packed[shared[0].product] = shared[0].column(at)
                at = at + shared[1]
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
