"""Assertions in compiled code: the first that fails stops its block and is told to the host."""

from __future__ import annotations

from tile_core.ir.stmt import Check, CheckKind
from tile_cpu.lowering.arithmetic import negated
from tile_cpu.lowering.context import Context, assigned
from tile_cpu.tir.build import extern, i32, seq
from tile_cpu.tir.nodes import BufferLoad, Evaluate, IfThenElse, tirx
from tile_cpu.tir.nodes import Stmt as TirStmt

REPORT = "cpu_report_failure"
"""``(ptr status, i32 number)``: remember the first failed check of a launch."""

_REPORT_TEXT = f"""\
define i32 @{REPORT}(ptr %p, i32 %n) alwaysinline {{
  %r = cmpxchg ptr %p, i32 0, i32 %n monotonic monotonic
  ret i32 0
}}
"""


def emit_check(ctx: Context, check: Check) -> TirStmt:
    """Return the test of an assertion; an assumption costs nothing."""
    if check.kind is CheckKind.ASSUME or ctx.env.proves(check.cond):
        return seq()
    assert ctx.status is not None
    assert ctx.jump is not None
    ctx.checks.append(check)
    number = len(ctx.checks)
    ctx.helpers[REPORT] = _REPORT_TEXT
    failed = negated(ctx, ctx.value(check.cond))
    status = tirx.address_of(BufferLoad(ctx.status, [i32(0)]))
    tell = Evaluate(extern("int32", REPORT, status, i32(number)))
    return IfThenElse(failed, seq(tell, assigned(ctx.jump, i32(3))), None)
