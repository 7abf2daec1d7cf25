"""Signals between ranks: counters in memory that processes share, and sleep beside them.

What compiled code cannot do alone, sleeping and waking, functions do whose addresses lie in the
line before a rank's own counters: `tile_launch.ranks.signal_header` says how.
"""

from __future__ import annotations

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.build_expr import as_expr, const
from tile_core.ir.expr import Expr
from tile_core.ir.stmt import Check, CheckKind
from tile_core.ops.signals import Signal, WaitSignal
from tile_cpu.cpu_machine import CpuMachine, Isa
from tile_cpu.lowering import access
from tile_cpu.lowering.cache_hints import fence
from tile_cpu.lowering.context import Context
from tile_cpu.lowering.failures import failure
from tile_cpu.tir.build import extern, i32, prim, seq
from tile_cpu.tir.nodes import Cast, Evaluate, IfThenElse, tirx
from tile_cpu.tir.nodes import Stmt as TirStmt
from tile_launch.ranks.signal_header import LINE, SLEEPERS, SignalHeader

GIVEN_UP = "a wait for a signal was given up"
"""What a kernel says that stops while it waits; the ranks' own error says why."""

_RAISE, _WAIT, _TAKE = "cpu_raise_signal", "cpu_wait_signal", "cpu_take_signal"


def emit_signal(ctx: Context, stmt: Signal | WaitSignal) -> TirStmt:
    """Return what adds to a flag after all stores, or waits for one, in front of all loads.

    Nothing happens outside the tensor of flags. Where a flag never comes, the block ends.
    """
    indices = tuple(map(as_expr, stmt.flag.starts))
    inside = access.guard(ctx, stmt.flag.buffer, indices)
    with ctx.branch() as statements:
        flag = access.address(ctx, stmt.flag.buffer, indices)
        own = access.address(ctx, stmt.flag.buffer, (_own_rank(ctx, stmt), const(0)))
        value = ctx.keep(Cast(prim("int32"), ctx.value(stmt.value)))
        if isinstance(stmt, Signal):
            ctx.helpers[_RAISE] = _RAISE_TEXT
            ctx.run(fence(ctx.machine))  # a release does not order stores past the caches
            ctx.run(Evaluate(extern("int32", _RAISE, flag, own, value)))
        else:
            ctx.helpers[_WAIT] = _wait_text(ctx.machine)
            ctx.helpers[_TAKE] = _TAKE_TEXT
            stuck = ctx.keep(extern("int32", _WAIT, flag, own, value))
            given_up = failure(ctx, Check(const(False), GIVEN_UP, CheckKind.ASSERT, span=stmt.span))
            take = Evaluate(extern("int32", _TAKE, flag, value)) if stmt.takes else None
            ctx.run(IfThenElse(tirx.NE(stuck, i32(0)), given_up, take))
    whole = seq(statements)
    return whole if inside is None else IfThenElse(inside, whole, None)


def _own_rank(ctx: Context, stmt: Signal | WaitSignal) -> Expr:
    if ctx.rank is None:
        raise UnsupportedOnTarget(
            "blocks of the CPU run one after the other, and those of several ranks in one kernel "
            "wait for each other",
            span=stmt.span,
            hint='compile for "interpret" or an emulated GPU, "cuda:sm_80@sim", or run each rank '
            "with tile.ranks",
        )
    return ctx.rank


_AT = f"""\
  %header = getelementptr i8, ptr %own, i64 -{LINE}
"""

_RAISE_TEXT = f"""\
define i32 @{_RAISE}(ptr %flag, ptr %own, i32 %value) noinline {{
entry:
  %before = atomicrmw add ptr %flag, i32 %value seq_cst
  %place = getelementptr i8, ptr %flag, i64 {SLEEPERS}
  %sleepers = load atomic i32, ptr %place seq_cst, align 4
  %none = icmp eq i32 %sleepers, 0
  br i1 %none, label %done, label %wake
wake:
{_AT}  %slot = getelementptr i8, ptr %header, i64 {SignalHeader.wake.offset}
  %function = load ptr, ptr %slot, align 8
  call void %function(ptr %flag)
  br label %done
done:
  ret i32 0
}}
"""

_TAKE_TEXT = f"""\
define i32 @{_TAKE}(ptr %flag, i32 %value) alwaysinline {{
  %before = atomicrmw sub ptr %flag, i32 %value seq_cst
  ret i32 0
}}
"""


def _wait_text(machine: CpuMachine) -> str:
    pause, arguments = "llvm.x86.sse2.pause", ""
    if machine.isa is Isa.AARCH64:
        pause, arguments = "llvm.aarch64.hint", "i32 1"  # yield
    return f"""\
declare void @{pause}({arguments.partition(" ")[0]})
define i32 @{_WAIT}(ptr %flag, ptr %own, i32 %wanted) noinline {{
entry:
{_AT}  %place = getelementptr i8, ptr %header, i64 {SignalHeader.looks.offset}
  %looks = load i32, ptr %place, align 4
  br label %look
look:
  %count = phi i32 [ 0, %entry ], [ %next, %pause ]
  %seen = load atomic i32, ptr %flag acquire, align 4
  %less = icmp ult i32 %seen, %wanted
  br i1 %less, label %again, label %come
again:
  %next = add i32 %count, 1
  %more = icmp ult i32 %next, %looks
  br i1 %more, label %pause, label %sleep
pause:
  call void @{pause}({arguments})
  br label %look
sleep:
  %slot = getelementptr i8, ptr %header, i64 {SignalHeader.wait.offset}
  %function = load ptr, ptr %slot, align 8
  %code = call i32 %function(ptr %flag, i32 %wanted)
  fence acquire
  ret i32 %code
come:
  ret i32 0
}}
"""
