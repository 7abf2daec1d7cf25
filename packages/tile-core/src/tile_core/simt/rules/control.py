"""Barriers, turns of groups of warps, and printing as programs of one thread."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

from tile_core.errors import InternalError, UnsupportedOnTarget
from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.build_expr import all_of, as_expr, binary, cast, const, select
from tile_core.ir.expr import AddressOf, BinaryOp, Call, Load, StringConst, Var
from tile_core.ir.node import Node, nodes_of, rewrite
from tile_core.ir.stmt import Evaluate, If, Let, Seq, Stmt, While
from tile_core.machine import SimtMachine
from tile_core.ops.control import GROUP, Barrier, Breakpoint, PingPongOrder, PingPongStep
from tile_core.ops.printing import Print
from tile_core.ops.rule import Rule
from tile_core.records import replace
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import do
from tile_core.simt.lower_accesses import lower_expr
from tile_core.simt.software_barriers import FEATURE


def lower_barrier(op: Barrier, ctx: SimtContext) -> Stmt:
    """Return the barrier of the block, of a warp, or of `count` threads.

    Raises
    ------
    InternalError
        If a barrier spans the grid, and no pass has said where its arrivals are counted.
    UnsupportedOnTarget
        If some threads wait by themselves that cannot be whole warps.
    """
    if op.scope == "grid":
        return _grid_barrier(op, ctx)
    if op.scope == "warp":
        return do("sync_warp")
    if op.number is None and op.count is None:
        return do("sync")
    if ctx.machine.has(FEATURE) and not op.arrives_only:
        waiting = ctx.threads if op.count is None else static_value(op.count)
        handed_over = any(b.arrives_only for b in nodes_of(ctx.launch, Barrier))
        if waiting == ctx.threads and not handed_over:
            return do("sync")  # which any number may stand for if all wait there
    _refuse_parts_of_warps(op, ctx)
    number = as_expr(0 if op.number is None else op.number)
    count = as_expr(ctx.threads if op.count is None else op.count)
    name = "bar_arrive" if op.arrives_only else "bar_sync"
    return do(name, lower_expr(number, ctx), lower_expr(count, ctx))


def _grid_barrier(op: Barrier, ctx: SimtContext) -> Stmt:
    """Return the barrier of blocks that all run at a time.

    The first thread of each block counts its arrival, and waits until the highest bit changes:
    block 0 adds what all others lack for that, so the word serves for any number of barriers.

    Before   barrier(scope="grid", arrivals=n)  (4 blocks)
    After    sync()
             if tid == 0: before = atomic_add(n[0], 0x7ffffffd if bx == 0 else 1, release)
               while (before ^ atomic_load(n[0], acquire)) & 0x80000000 == 0: pass
             sync()
    """
    if op.arrivals is None:
        raise InternalError("a barrier of the whole grid is left in a launch", span=op.span)
    word = op.arrivals.buffer.dtype
    place = AddressOf(op.arrivals.buffer, (as_expr(0),))
    blocks = cast(reduce(partial(binary, BinaryOp.MUL), ctx.launch.grid, as_expr(1)), str(word))
    is_first = all_of([binary(BinaryOp.EQ, var, 0) for var in ctx.launch.block_vars])
    top = const(1 << 31, word)
    share = select(is_first, top - (blocks - 1), const(1, word))
    arrived = Call("atomic_add", (place, share, StringConst("release")), word)
    before = Var(ctx.names.fresh("before"), word)
    now = Call("atomic_load", (place, StringConst("acquire")), word)
    changed = binary(BinaryOp.BITAND, binary(BinaryOp.BITXOR, before, now), top)
    wait = While(binary(BinaryOp.EQ, changed, const(0, word)), Seq(()), span=op.span)
    meet = ctx.lower(Seq((Let(before, arrived, span=op.span), wait)), replace(ctx, by_thread=True))
    first = If(binary(BinaryOp.EQ, ctx.thread, 0), meet, span=op.span)
    return Seq((do("sync", span=op.span), first, do("sync", span=op.span)))


def _refuse_parts_of_warps(op: Barrier, ctx: SimtContext) -> None:
    """Raise if a barrier is for a number of threads that cannot be whole warps."""
    count = None if op.count is None else static_value(op.count)
    if count is not None and count % ctx.machine.warp_size:
        raise UnsupportedOnTarget(
            f"{count} threads cannot wait for each other on {ctx.machine.name}: a barrier counts "
            f"whole warps of {ctx.machine.warp_size}",
            span=op.span,
            hint="let whole warps wait for each other",
        )


def lower_print(op: Print, ctx: SimtContext) -> Stmt:
    """Return the printing of a tile by the threads that hold it, or of values by each thread.

    Before   print "c" C_local  (a fragment)
    After    for i, j: if tid == the first owner of C_local[i, j]: printf("c: C_local[i, j] = x")

    Tiles in memory are printed by the first thread. Where the program names its threads, each
    of them prints what it holds itself, and values.
    """
    source, by_threads = op.source, replace(ctx, by_thread=True)
    if source is None:
        return ctx.lower(op.serial_form(), ctx)
    printed = op.serial_form()
    if source.buffer.scope is Scope.FRAGMENT:
        return ctx.lower(rewrite(printed, lambda n: _by_owner(n, source.buffer, ctx)), by_threads)
    lowered = ctx.lower(printed, by_threads)
    if source.buffer.scope.is_thread_private and ctx.by_thread:
        return lowered
    return If(binary(BinaryOp.EQ, ctx.thread, 0), lowered, span=op.span)


def _by_owner(node: Node, tile: Buffer, ctx: SimtContext) -> Node:
    """Let the first thread that holds the printed element of `tile` print it."""
    if not isinstance(node, Evaluate):
        return node
    indices = next(n.indices for n in nodes_of(node, Load) if n.buffer is tile)
    owner = as_expr(ctx.fragment_of(tile).forward_thread(*indices))
    return If(binary(BinaryOp.EQ, ctx.thread, owner), node, span=node.span)


def lower_breakpoint(op: Breakpoint, ctx: SimtContext) -> Stmt:
    """Return nothing: only the interpreter stops."""
    return Seq(())


def ping_pong_rules(machine: SimtMachine) -> tuple[Rule[Any], ...]:
    """Return the rule of the ping-pong schedule: nothing where MMAs are not asynchronous."""

    def lower(op: PingPongOrder, ctx: SimtContext) -> Stmt:
        return lower_ping_pong(op, ctx) if machine.has("async_mma") else Seq(())

    return (Rule(name="simt.ping_pong", op=PingPongOrder, lower=lower),)


def lower_ping_pong(op: PingPongOrder, ctx: SimtContext) -> Stmt:
    """Return the wait or the arrival on one of two named barriers.

    Before   ping_pong take;  …;  ping_pong give
    After    if tid < 128: bar_sync(13, 256) else: bar_sync(12, 256)
             …;  if tid < 128: bar_arrive(12, 256) else if goes on: bar_arrive(13, 256)

    Each barrier counts the half that waits and the half that arrives. Numbers are constants:
    with one in a register the assembler would keep all of them.
    """
    both = 2 * GROUP
    first, second = (ctx.named_barrier(("turn", group), op.span) for group in (0, 1))
    is_first = binary(BinaryOp.LT, ctx.thread, GROUP)
    match op.step:
        case PingPongStep.OFFER:
            is_second = binary(BinaryOp.GE, ctx.thread, GROUP)
            return If(_and(is_second, op, ctx), do("bar_arrive", first, both))
        case PingPongStep.TAKE:
            return If(is_first, do("bar_sync", first, both), do("bar_sync", second, both))
        case PingPongStep.GIVE:
            back: Stmt = do("bar_arrive", first, both)
            if op.goes_on is not None:
                back = If(lower_expr(op.goes_on, ctx), back)
            return If(is_first, do("bar_arrive", second, both), back)


def _and(condition: Any, op: PingPongOrder, ctx: SimtContext) -> Any:
    if op.goes_on is None:
        return condition
    return binary(BinaryOp.AND, condition, lower_expr(as_expr(op.goes_on), ctx))
