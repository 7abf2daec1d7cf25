"""Random numbers that no generator can give."""

from __future__ import annotations

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.expr import Call
from tile_cpu.lowering.context import Context
from tile_cpu.tir.nodes import PrimExpr


def emit_random(ctx: Context, call: Call) -> PrimExpr:
    """Refuse: draws of a started generator are arithmetic by now."""
    raise UnsupportedOnTarget(
        f"T.{call.function} has no generator to draw from",
        span=call.span,
        hint="call T.rng_init(seed) before, inside the same T.Kernel",
    )
