"""Failures inside a kernel: which came first is told to the host, and the block ends."""

from __future__ import annotations

from tile_core.ir.stmt import Check
from tile_cpu.lowering.context import Context, assigned
from tile_cpu.tir.build import extern, i32, seq
from tile_cpu.tir.nodes import BufferLoad, Evaluate, tirx
from tile_cpu.tir.nodes import Stmt as TirStmt

REPORT = "cpu_report_failure"
"""``(ptr status, i32 number)``: remember the first failed check of a launch."""

_REPORT_TEXT = f"""\
define i32 @{REPORT}(ptr %p, i32 %n) alwaysinline {{
  %r = cmpxchg ptr %p, i32 0, i32 %n monotonic monotonic
  ret i32 0
}}
"""


def failure(ctx: Context, check: Check) -> TirStmt:
    """Return what happens where `check` fails; hosts know it by its number."""
    assert ctx.status is not None
    assert ctx.jump is not None
    ctx.checks.append(check)
    ctx.helpers[REPORT] = _REPORT_TEXT
    status = tirx.address_of(BufferLoad(ctx.status, [i32(0)]))
    tell = Evaluate(extern("int32", REPORT, status, i32(len(ctx.checks))))
    return seq(tell, assigned(ctx.jump, i32(3)))
