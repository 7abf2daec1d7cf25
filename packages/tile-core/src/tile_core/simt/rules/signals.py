"""Signals between ranks, and waits for them, as programs of one thread."""

from __future__ import annotations

from tile_core.ir.build_expr import as_expr, binary, cast
from tile_core.ir.expr import AddressOf, BinaryOp, Call, Expr, StringConst
from tile_core.ir.stmt import Evaluate, If, Seq, Stmt, While
from tile_core.ops.signals import Signal, WaitSignal
from tile_core.records import replace
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import do


def lower_signal(op: Signal, ctx: SimtContext) -> Stmt:
    """Return the addition to a flag, by one thread, behind what all threads did.

    Before   signal(flag=F[p, i], value=1)
    After    sync();  if tid == 0: atomic_add(F[p, i], 1, system_release)
    """
    raised = _call(op, "atomic_add", "system_release", _word(op, op.value))
    return Seq((do("sync", span=op.span), _by_first(Evaluate(raised, span=op.span), ctx)))


def lower_wait_signal(op: WaitSignal, ctx: SimtContext) -> Stmt:
    """Return the wait for a flag, by one thread, in front of what all threads do.

    Before   wait_signal(flag=F[rank, i], value=v)
    After    if tid == 0: while atomic_load(F[rank, i], system_acquire) < v: pass
             sync()

    Where the wait takes what it waited for, the thread subtracts it from the flag.
    """
    seen = _call(op, "atomic_load", "system_acquire")
    value = _word(op, op.value)
    program: list[Stmt] = [While(binary(BinaryOp.LT, seen, value), Seq(()), span=op.span)]
    if op.takes:
        zero = as_expr(0, value.dtype)
        taken = _call(op, "atomic_add", "relaxed", binary(BinaryOp.SUB, zero, value))
        program.append(Evaluate(taken, span=op.span))
    return Seq((_by_first(Seq(tuple(program)), ctx), do("sync", span=op.span)))


def _by_first(program: Stmt, ctx: SimtContext) -> If:
    alone = ctx.lower(program, replace(ctx, by_thread=True))
    return If(binary(BinaryOp.EQ, ctx.thread, 0), alone, span=program.span)


def _word(op: Signal | WaitSignal, value: Expr) -> Expr:
    return cast(value, str(op.flag.buffer.dtype))


def _call(op: Signal | WaitSignal, function: str, order: str, *values: Expr) -> Call:
    place = AddressOf(op.flag.buffer, tuple(as_expr(start) for start in op.flag.starts))
    return Call(function, (place, *values, StringConst(order)), op.flag.buffer.dtype, span=op.span)
