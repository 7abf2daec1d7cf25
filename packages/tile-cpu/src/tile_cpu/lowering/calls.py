"""Calls: intrinsics, printing, and C functions, libc's and those that a kernel brings along."""

from __future__ import annotations

import ctypes
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping

from tile_core.dtypes import DType
from tile_core.errors import ToolchainError, UnsupportedOnTarget
from tile_core.ir.expr import AddressOf, Call, Expr, StringConst
from tile_core.ir.intrinsics import Effect, effect_of
from tile_core.ir.node import Node, nodes_of
from tile_cpu.lowering import access
from tile_cpu.lowering.atomics import emit_atomic
from tile_cpu.lowering.context import Context, assigned, loaded
from tile_cpu.lowering.exponents import of_nonpositive
from tile_cpu.lowering.types import all_of, lanes_of, number, scalar_name, together, value_type
from tile_cpu.tir.build import extern, prim, seq, with_lanes
from tile_cpu.tir.nodes import Cast as TirCast
from tile_cpu.tir.nodes import IfThenElse, PrimExpr, StringImm, tirx

PREFIX = "extern:"


def emit_call(ctx: Context, call: Call) -> PrimExpr:
    """Return the value of a call; a call with an effect runs once, here.

    Raises
    ------
    UnsupportedOnTarget
        For exchanges between threads, which must be gone by now, and for instructions x86
        does not have.
    """
    if call.function.startswith(PREFIX):
        return emit_extern(ctx, call)
    effect = effect_of(call.function)
    if effect & Effect.ATOMIC:
        return emit_atomic(ctx, call)
    if effect & Effect.OUTPUT:
        return emit_printf(ctx, call)
    if effect & Effect.STATE:
        raise UnsupportedOnTarget(  # draws of a started generator are arithmetic by now
            f"T.{call.function} has no generator to draw from",
            span=call.span,
            hint="call T.rng_init(seed) before, inside the same T.Kernel",
        )
    if effect & (Effect.WARP | Effect.BLOCK):
        raise UnsupportedOnTarget(
            f"T.{call.function} exchanges values between threads, and here there is one",
            span=call.span,
            hint="use it in a kernel that indexes its threads, T.get_thread_binding()",
        )
    bounded = of_nonpositive(call)
    if bounded is not None:
        return _pure(ctx, call, bounded[0], (ctx.value(bounded[1]),))
    return _pure(ctx, call, call.function, together(*(ctx.value(a) for a in call.args)))


def _pure(ctx: Context, call: Call, function: str, args: tuple[PrimExpr, ...]) -> PrimExpr:
    from tile_cpu.math.table import FUNCTIONS
    from tile_cpu.math.table import call as emit_math

    if function not in FUNCTIONS:
        raise UnsupportedOnTarget(
            f"T.{call.function} is an instruction that {ctx.target} does not have",
            span=call.span,
            hint="use the portable operators, or compile for a GPU",
        )
    result = emit_math(ctx.keep, function, *args, lanes=lanes_of(args[0]))
    wanted = with_lanes(value_type(call.dtype), lanes_of(result))
    return result if str(result.ty.dtype) == wanted else TirCast(prim(wanted), result)


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


def names_called(root: Node) -> tuple[str, ...]:
    """Return the C functions called under `root`, sorted."""
    return tuple(sorted({node.function.removeprefix(PREFIX) for node in _calls(root)}))


def _calls(root: Node) -> Iterator[Call]:
    for node in nodes_of(root, Call):
        if node.function.startswith(PREFIX):
            yield node


def require_symbols(root: Node, symbols: Mapping[str, str]) -> None:
    """Check that this process has every C function that is called under `root`.

    `symbols` are those of the functions that the kernel brought along, by C name.

    Raises
    ------
    ToolchainError
        At the first call of a function that is nowhere: linking would end the process.
    """
    process = ctypes.CDLL(None)
    for call in _calls(root):
        name = call.function.removeprefix(PREFIX)
        if not hasattr(process, symbols.get(name, name)):
            raise ToolchainError(
                f"the kernel calls the C function {name!r}, which neither its own C text nor this "
                "process has",
                span=call.span,
                hint=f'bring it along: T.import_source("... {name}(...) {{ ... }}"), or load the '
                "library that has it with ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)",
            )


def own_symbols(sources: Iterable[str], names: Iterable[str]) -> Mapping[str, str]:
    """Return the symbols of the functions that `sources` define, by C name.

    A symbol is unlike all others in the process: two kernels may bring different functions
    of one name.
    """
    text = "\n".join(sources)
    mark = hashlib.sha256(text.encode()).hexdigest()[:12]
    return {name: f"{name}_{mark}" for name in names if defines(text, name)}


def defines(text: str, name: str) -> bool:
    """Whether C text defines a function `name`."""
    return re.search(rf"\b{re.escape(name)}\s*\([^;{{}}]*\)\s*\{{", text) is not None


def emit_extern(ctx: Context, call: Call) -> PrimExpr:
    """Return the result of a C function, called once, here.

    If an address among the arguments lies outside its global buffer the function is not
    called and the result is 0.
    """
    name = call.function.removeprefix(PREFIX)
    symbol = ctx.settings.extern_names.get(name, name)
    returned = _returned(call.dtype)
    inside = all_of(
        access.guard(ctx, a.buffer, a.indices) for a in call.args if isinstance(a, AddressOf)
    )
    cell = ctx.cell(returned, "returned")
    if inside is not None:
        ctx.run(assigned(cell, number(0, returned)))
    with ctx.branch() as statements:
        args = [_argument(ctx, a) for a in call.args]
        ctx.run(assigned(cell, extern(returned, symbol, *args)))
    body = seq(statements)
    ctx.run(body if inside is None else IfThenElse(inside, body, None))
    result = loaded(cell)
    if call.dtype.is_handle:
        return tirx.reinterpret("handle", result)
    if call.dtype.is_bool:
        return tirx.NE(result, number(0, "uint8"))
    return result


def _returned(dtype: DType) -> str:
    if dtype.is_handle:
        return "int64"  # also stands for void, whose result nobody reads
    return "uint8" if dtype.is_bool else value_type(dtype)


def _argument(ctx: Context, arg: Expr) -> PrimExpr:
    value = ctx.value(arg)
    if isinstance(arg, StringConst):
        return value
    return TirCast(prim("int32"), value) if scalar_name(value) == "bool" else value
