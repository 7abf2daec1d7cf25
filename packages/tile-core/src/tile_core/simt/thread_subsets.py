"""Statements that some of a block's threads run by themselves."""

from __future__ import annotations

from collections.abc import Collection

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.build_expr import binary
from tile_core.ir.device import device
from tile_core.ir.device_calls import PREFIX
from tile_core.ir.expr import BinaryOp, Call, Expr
from tile_core.ir.intrinsics import Effect, effect_of
from tile_core.ir.node import Node, nodes_of, rewrite
from tile_core.ir.stmt import Evaluate, For, If, Let, OnThreads, Seq, Stmt, While
from tile_core.records import replace
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import seq


def lower_on_threads(stmt: OnThreads, ctx: SimtContext) -> Stmt:
    """Return `stmt.body` under a test of the thread's number.

    Before   threads 128 count 256: copy A, A_s;  barrier;  …
    After    if 128 <= tid < 384: thread = tid - 128;  …;  bar_sync(15, 256);  …

    Barriers inside wait for these threads alone, on a named barrier of their own; a warp needs
    none. What operators exchange through shared memory lies apart from what other threads exchange.

    Raises
    ------
    UnsupportedOnTarget
        If the program has more ranges of threads than the machine has barriers, a range that
        needs a barrier is no whole number of warps, or asks what the whole block votes.
    """
    if (stmt.first, stmt.count) == (0, ctx.threads):
        return ctx.lower_stmt(stmt.body)
    _refuse_votes(stmt)
    thread = ctx.thread if stmt.first == 0 else ctx.fresh_var("thread")
    inner = replace(
        ctx,
        thread=thread,
        threads=stmt.count,
        first=ctx.first + stmt.first,
        env=ctx.env.with_loop(thread, 0, stmt.count),
        workspaces=ctx.workspaces_of(ctx.first + stmt.first, stmt.count),
    )
    lowered = inner.lower_stmt(stmt.body)
    turns = [ctx.named_barrier(use) for use in ctx.barriers if use[0] == "turn"]
    body = rewrite(drop_ping_pong(lowered, turns), lambda n: _among(n, stmt, ctx), (Call,))
    if stmt.first:
        body = Seq((Let(thread, ctx.thread - stmt.first), body))
    return If(_belongs(stmt, ctx), body, span=stmt.span)


def _refuse_votes(stmt: OnThreads) -> None:
    """Raise if the threads of a range count themselves: the instruction asks the whole block."""
    for node in nodes_of(stmt.body, Call):
        if effect_of(node.function) & Effect.BLOCK:
            raise UnsupportedOnTarget(
                f"T.{node.function} asks all threads of the block, and {stmt.count} of them "
                "get here",
                span=node.span or stmt.span,
                hint="move it out of the branch, or count with T.atomic_add in shared memory",
            )


def _belongs(stmt: OnThreads, ctx: SimtContext) -> Expr:
    """Return whether this thread is one of those that run the statement."""
    last = stmt.first + stmt.count
    if stmt.count == 1:
        return binary(BinaryOp.EQ, ctx.thread, stmt.first)
    below = binary(BinaryOp.LT, ctx.thread, last)
    above = binary(BinaryOp.GE, ctx.thread, stmt.first)
    if stmt.first == 0:
        return below
    return above if last == ctx.threads else binary(BinaryOp.AND, above, below)


def _among(node: Node, stmt: OnThreads, ctx: SimtContext) -> Node:
    """Turn the barrier of all threads into that of the range."""
    if not isinstance(node, Call) or node.function != f"{PREFIX}sync":
        return node
    first = ctx.first + stmt.first
    if stmt.count % ctx.machine.warp_size or first % ctx.machine.warp_size:
        raise UnsupportedOnTarget(
            f"{stmt.count} threads from thread {first} on cannot wait for each other: a barrier "
            f"counts whole warps of {ctx.machine.warp_size}",
            span=stmt.span,
            hint="give the work to whole warps",
        )
    if stmt.count == ctx.machine.warp_size:
        return device("sync_warp")
    number = ctx.named_barrier((first, stmt.count), stmt.span)
    return device("bar_sync", number, stmt.count)


_STEPS = (f"{PREFIX}bar_sync", f"{PREFIX}bar_arrive")
_BARRIER = f"{PREFIX}sync"


def drop_ping_pong(body: Stmt, turns: Collection[int]) -> Stmt:
    """Return `body` without turns, if a loop has them and a barrier of all its threads.

    Before   for k:  if tid < 128: bar_sync(14, 256) else: bar_sync(13, 256);  …;  sync;  …
    After    for k:  …;  sync;  …

    Whoever has the turn would wait at the barrier for those who wait for the turn. And groups
    that meet in every iteration do the same work at the same time: no turns change that.

    `turns` are the numbers of the barriers that hand the turn over.
    """

    def is_step(node: Node) -> bool:
        return isinstance(node, Call) and node.function in _STEPS and _number(node) in turns

    def meets(loop: Stmt) -> bool:
        calls = [*nodes_of(loop, Call)]
        return any(n.function == _BARRIER for n in calls) and any(map(is_step, calls))

    def rule(node: Node) -> Node:
        match node:
            case Evaluate(value=value) if is_step(value):
                return seq()
            case If(then=then, otherwise=otherwise) if _is_empty(then) and (
                otherwise is None or _is_empty(otherwise)
            ):
                return seq()
        return node

    if not turns or not any(map(meets, nodes_of(body, For, While))):
        return body
    return rewrite(body, rule, (Evaluate, If))


def _number(call: Call) -> object:
    return getattr(call.args[0], "value", None)


def _is_empty(stmt: Stmt) -> bool:
    return isinstance(stmt, Seq) and all(map(_is_empty, stmt.body))
