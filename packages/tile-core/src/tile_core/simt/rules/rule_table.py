"""The rules that all makers' GPUs have, around those of one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tile_core.ir.build_expr import binary
from tile_core.ir.expr import BinaryOp
from tile_core.ir.stmt import If, Stmt
from tile_core.machine import SimtMachine
from tile_core.ops.async_copy import CopyCommit, CopyWait
from tile_core.ops.atomic import AtomicTile
from tile_core.ops.control import Barrier, Breakpoint
from tile_core.ops.copy import Copy
from tile_core.ops.gpu_only import GpuOperator
from tile_core.ops.operator import TileOperator
from tile_core.ops.parallel_form import is_element_wise
from tile_core.ops.printing import Print
from tile_core.ops.reduce import Reduce
from tile_core.ops.reducer import ReducerFinalize, ReducerInit
from tile_core.ops.rule import Rule
from tile_core.ops.scan import Scan
from tile_core.ops.serial_forms import expand, has_serial_form
from tile_core.ops.signals import Signal, WaitSignal
from tile_core.records import replace
from tile_core.simt.context import SimtContext
from tile_core.simt.elementwise import lower_element_wise
from tile_core.simt.rules.control import (
    lower_barrier,
    lower_breakpoint,
    lower_print,
    ping_pong_rules,
)
from tile_core.simt.rules.copy import infer_copy, lower_commit, lower_copy, lower_wait, why_no_copy
from tile_core.simt.rules.mbarrier import mbarrier_rules
from tile_core.simt.rules.reduce import (
    infer_init,
    infer_reduce,
    lower_finalize,
    lower_init,
    lower_reduce,
)
from tile_core.simt.rules.scan import lower_scan
from tile_core.simt.rules.signals import lower_signal, lower_wait_signal
from tile_core.simt.shared_staging import by_each_thread
from tile_core.target import Target


def gpu_rules(machine: SimtMachine, own: Iterable[Rule[Any]]) -> tuple[Rule[Any], ...]:
    """Return every rule of a backend: the shared ones, and its `own` for its matrix units."""
    barriers = machine.has("transaction_barriers"), machine.has("register_reallocation")
    return with_default(
        (*SHARED_RULES, *own, *mbarrier_rules(*barriers), *ping_pong_rules(machine))
    )


DEFAULT_PRIORITY = -100


def _rejects_bulk(op: AtomicTile, target: Target) -> str | None:
    if op.use_bulk:
        return "bulk reductions of the tensor memory accelerator are not available"
    return None


def with_default(rules: Iterable[Rule[Any]]) -> tuple[Rule[Any], ...]:
    """Return `rules`, and the one for every operator that none of them is for."""
    known = tuple(rules)
    default: Rule[Any] = Rule(
        name="simt.serial_form",
        op=TileOperator,
        lower=lower_serial_form,
        rejects=_rejects,
        priority=DEFAULT_PRIORITY,
        except_for=frozenset(rule.op for rule in known) | {GpuOperator},
    )
    return (*known, default)


def lower_serial_form(op: TileOperator, ctx: SimtContext) -> Stmt:
    """Return the serial form as a program of one thread.

    Before   fill C, 0;  merge a, b -> c  (whose elements depend on each other)
    After    for r in unrolled(4): C[r] = 0;  if tid == 0: for i in range(32): c[i] = ...

    The threads share out the elements of an element-wise operator. What one thread has for itself
    is its own affair; of anything else the first thread does all.
    """
    if is_element_wise(op):
        return lower_element_wise(op, ctx)
    form = expand(op)
    buffers = op.buffers()
    if buffers and all(buffer.scope.is_thread_private for buffer in buffers):
        return by_each_thread(form, ctx)
    alone = ctx.lower(form, replace(ctx, by_thread=True))
    return If(binary(BinaryOp.EQ, ctx.thread, 0), alone, span=op.span)


def _rejects(op: TileOperator, target: Target) -> str | None:
    if not has_serial_form(type(op)):
        return "the operator has no serial form"
    if is_element_wise(op):
        return None
    spread = [buffer.name for buffer in op.buffers() if buffer.scope.is_spread]
    if spread:
        return f"one thread runs its serial form, and {spread[0]!r} is spread over the threads"
    return None


SHARED_RULES: tuple[Rule[Any], ...] = (
    Rule(name="simt.copy", op=Copy, lower=lower_copy, infer_layout=infer_copy, rejects=why_no_copy),
    Rule(name="simt.copy_commit", op=CopyCommit, lower=lower_commit),
    Rule(name="simt.copy_wait", op=CopyWait, lower=lower_wait),
    Rule(name="simt.atomic", op=AtomicTile, lower=lower_element_wise, rejects=_rejects_bulk),
    Rule(name="simt.barrier", op=Barrier, lower=lower_barrier),
    Rule(name="simt.signal", op=Signal, lower=lower_signal),
    Rule(name="simt.wait_signal", op=WaitSignal, lower=lower_wait_signal),
    Rule(name="simt.print", op=Print, lower=lower_print),
    Rule(name="simt.breakpoint", op=Breakpoint, lower=lower_breakpoint),
    Rule(name="simt.reduce", op=Reduce, lower=lower_reduce, infer_layout=infer_reduce),
    Rule(name="simt.reducer_init", op=ReducerInit, lower=lower_init, infer_layout=infer_init),
    Rule(name="simt.reducer_finalize", op=ReducerFinalize, lower=lower_finalize),
    Rule(name="simt.scan", op=Scan, lower=lower_scan),
)
"""Those that ask nothing of the machine; others may claim special cases with a higher priority."""
