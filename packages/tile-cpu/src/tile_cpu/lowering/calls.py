"""Intrinsic calls: mathematics, bits, atomics, extern functions, printing."""

from __future__ import annotations

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.expr import Call
from tile_core.ir.intrinsics import Effect, effect_of
from tile_core.tir.build import llvm_pure
from tile_core.tir.nodes import Cast as TirCast
from tile_core.tir.nodes import PrimExpr, Select, tirx
from tile_cpu.lowering.atomics import emit_atomic
from tile_cpu.lowering.context import Context
from tile_cpu.lowering.externs import emit_extern
from tile_cpu.lowering.printing import emit_printf
from tile_cpu.lowering.random import emit_random
from tile_cpu.lowering.types import lanes_of, number, prim, scalar_name, together, with_lanes


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
    name, dtype = call.function, call.args[0].dtype
    if name in ("popcount", "clz", "ffs"):
        return _bits(ctx, name, args[0])
    if name == "abs" and not dtype.is_float:
        return args[0] if dtype.kind.value == "uint" else _magnitude(ctx, args[0])
    if name == "dp4a":
        raise UnsupportedOnTarget("T.dp4a takes 4-element vectors", span=call.span)
    from tile_cpu.math.table import emit_math

    return emit_math(ctx.keep, name, args, dtype, ctx.machine)


def _magnitude(ctx: Context, value: PrimExpr) -> PrimExpr:
    kept = ctx.keep(value)
    zero = number(0, scalar_name(value), lanes_of(value))
    return Select(tirx.LT(kept, zero), zero - kept, kept)


def _bits(ctx: Context, name: str, value: PrimExpr) -> PrimExpr:
    kind, lanes = scalar_name(value), lanes_of(value)
    shape = with_lanes(kind, lanes)
    if name == "popcount":
        count = llvm_pure(shape, "llvm.ctpop", value)
    elif name == "clz":
        count = llvm_pure(shape, "llvm.ctlz", value, tirx.const(0, "bool"))
    else:
        kept = ctx.keep(value)
        first = llvm_pure(shape, "llvm.cttz", kept, tirx.const(0, "bool"))
        zero, one = number(0, kind, lanes), number(1, kind, lanes)
        count = Select(tirx.EQ(kept, zero), zero, first + one)
    return count if kind == "int32" else TirCast(prim("int32", lanes), count)
