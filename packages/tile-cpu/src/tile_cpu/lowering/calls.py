"""Intrinsic calls: mathematics, bits, atomics, extern functions, printing."""

from __future__ import annotations

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.expr import Call
from tile_core.ir.intrinsics import Effect, effect_of
from tile_cpu.lowering.atomics import emit_atomic
from tile_cpu.lowering.context import Context
from tile_cpu.lowering.externs import emit_extern
from tile_cpu.lowering.printing import emit_printf
from tile_cpu.lowering.refuse_random import emit_random
from tile_cpu.lowering.types import lanes_of, prim, together, value_type, with_lanes
from tile_cpu.tir.nodes import Cast as TirCast
from tile_cpu.tir.nodes import PrimExpr


def emit_call(ctx: Context, call: Call) -> PrimExpr:
    """Return the value of a call; a call with an effect runs once, here.

    Raises
    ------
    UnsupportedOnTarget
        For exchanges between threads, which must be gone by now, and for instructions x86
        does not have.
    """
    if call.function.startswith("extern:"):
        return emit_extern(ctx, call)
    effect = effect_of(call.function)
    if effect & Effect.ATOMIC:
        return emit_atomic(ctx, call)
    if effect & Effect.OUTPUT:
        return emit_printf(ctx, call)
    if effect & Effect.STATE:
        return emit_random(ctx, call)
    if effect & (Effect.WARP | Effect.BLOCK):
        raise UnsupportedOnTarget(
            f"T.{call.function} exchanges values between threads, and here there is one",
            span=call.span,
            hint="use it in a kernel that indexes its threads, T.get_thread_binding()",
        )
    args = together(*(ctx.value(a) for a in call.args))
    return _pure(ctx, call, list(args))


def _pure(ctx: Context, call: Call, args: list[PrimExpr]) -> PrimExpr:
    from tile_cpu.math.table import FUNCTIONS
    from tile_cpu.math.table import call as emit_math

    if call.function not in FUNCTIONS:
        raise UnsupportedOnTarget(
            f"T.{call.function} is an instruction that {ctx.target} does not have",
            span=call.span,
            hint="use the portable operators, or compile for a GPU",
        )
    result = emit_math(ctx.temporaries, call.function, *args, lanes=lanes_of(args[0]))
    wanted = with_lanes(value_type(call.dtype), lanes_of(result))
    return result if str(result.ty.dtype) == wanted else TirCast(prim(wanted), result)
