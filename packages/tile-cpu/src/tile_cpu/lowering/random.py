"""Per-thread random numbers."""

from __future__ import annotations

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.expr import Call
from tile_core.tir.nodes import PrimExpr
from tile_cpu.lowering.context import Context


def emit_random(ctx: Context, call: Call) -> PrimExpr:
    """Refuse: the CPU backend has no per-thread generator."""
    raise UnsupportedOnTarget(
        f"T.{call.function} needs a random generator per thread, which the CPU target lacks",
        span=call.span,
        hint="pass a tensor of random numbers to the kernel",
    )
