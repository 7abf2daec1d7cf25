"""Intrinsic calls: mathematics, bits, atomics, extern functions, printing."""

from __future__ import annotations

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.expr import Call, StringConst
from tile_core.ir.intrinsics import Effect, effect_of
from tile_cpu.lowering.atomics import emit_atomic
from tile_cpu.lowering.context import Context
from tile_cpu.lowering.externs import emit_extern
from tile_cpu.lowering.types import lanes_of, prim, scalar_name, together, value_type, with_lanes
from tile_cpu.tir.build import extern
from tile_cpu.tir.nodes import Cast as TirCast
from tile_cpu.tir.nodes import PrimExpr, StringImm


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


def emit_random(ctx: Context, call: Call) -> PrimExpr:
    """Refuse: draws of a started generator are arithmetic by now."""
    raise UnsupportedOnTarget(
        f"T.{call.function} has no generator to draw from",
        span=call.span,
        hint="call T.rng_init(seed) before, inside the same T.Kernel",
    )


_LLVM = {"int32": "i32", "uint32": "i32", "int64": "i64", "uint64": "i64", "float64": "double"}


def emit_printf(ctx: Context, call: Call) -> PrimExpr:
    """Return the call that prints; its text appears on the process's standard output."""
    text = call.args[0]
    if not isinstance(text, StringConst):
        raise UnsupportedOnTarget(
            "printf needs a constant format",
            span=call.span,
            hint="write the format as a string in the kernel",
        )
    ctx.prints = True
    args = [_promoted(ctx.value(a)) for a in call.args[1:]]
    kinds = [_LLVM.get(scalar_name(a), "ptr") for a in args]
    name = "_".join(["cpu_printf", *kinds])
    ctx.helpers[name] = _wrapper(name, kinds)
    ctx.helpers.setdefault("printf", "declare i32 @printf(ptr, ...)\n")
    return extern("int32", name, StringImm(text.value), *args)


def _promoted(value: PrimExpr) -> PrimExpr:
    """Return `value` widened as C widens variable arguments."""
    kind = scalar_name(value)
    if kind.startswith("float"):
        return value if kind == "float64" else TirCast(prim("float64"), value)
    if kind in ("bool", "int8", "int16", "uint8", "uint16"):
        return TirCast(prim("int32"), value)
    return value


def _wrapper(name: str, kinds: list[str]) -> str:
    params = ", ".join(f"{k} %a{i}" for i, k in enumerate(kinds))
    comma = ", " if kinds else ""
    return (
        f"define i32 @{name}(ptr %f{comma}{params}) alwaysinline {{\n"
        f"  %r = call i32 (ptr, ...) @printf(ptr %f{comma}{params})\n  ret i32 %r\n}}\n"
    )
