"""`printf` from compiled code: one wrapper per list of argument types.

C passes variable arguments differently from fixed ones, which TVM's code generator does not
know; LLVM does.
"""

from __future__ import annotations

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.expr import Call, StringConst
from tile_cpu.lowering.context import Context
from tile_cpu.lowering.types import prim, scalar_name
from tile_cpu.tir.build import extern
from tile_cpu.tir.nodes import Cast as TirCast
from tile_cpu.tir.nodes import PrimExpr, StringImm

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
