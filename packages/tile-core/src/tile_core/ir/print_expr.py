"""The text of scalar expressions and regions; `parse_expr` reads it back."""

from __future__ import annotations

import json
import math
from typing import cast

from typing_extensions import assert_never

from tile_core.ir.buffer import Region
from tile_core.ir.expr import (
    AddressOf,
    AnyExpr,
    Binary,
    BinaryOp,
    Bitcast,
    Broadcast,
    Call,
    Cast,
    Const,
    Expr,
    Extent,
    Load,
    Ramp,
    Select,
    Shuffle,
    StringConst,
    Unary,
    UnaryOp,
    Var,
)
from tile_core.ir.intrinsics import INTRINSICS
from tile_core.ir.names import Names
from tile_launch.expressions import STRENGTH

# Binding strength of infix operators; function-like ones are absent.
PRECEDENCE = {BinaryOp(name): level for name, level in STRENGTH.items()}
UNARY_STRENGTH = 11


def print_expr(expr: Expr, names: Names, strength: int = 0) -> str:
    """Return the text of `expr`, parenthesised if it binds less than `strength`."""
    e = cast("AnyExpr", expr)
    match e:
        case Const():
            return print_const(e)
        case StringConst(value=value):
            return json.dumps(value)
        case Var():
            return names.of(e)
        case Binary(op=op, a=a, b=b) if op in PRECEDENCE:
            level = PRECEDENCE[op]
            left = print_expr(a, names, level)
            text = f"{left} {op.value} {print_expr(b, names, level + 1)}"
            return f"({text})" if level < strength else text
        case Binary(op=op, a=a, b=b):
            return f"{op.value}({_list((a, b), names)})"
        case Unary(op=op, a=a):
            sign = "not " if op is UnaryOp.NOT else op.value
            operand = print_expr(a, names, UNARY_STRENGTH)
            # `-3` is a constant; the negation of the constant 3 is not
            return f"{sign}({operand})" if isinstance(a, Const) else f"{sign}{operand}"
        case Select(cond=c, then=t, otherwise=o, lazy=True):
            parts = (print_expr(x, names, 1) for x in (c, t, o))
            return "({} ? {} : {})".format(*parts)
        case Select(cond=c, then=t, otherwise=o):
            return f"select({_list((c, t, o), names)})"
        case Cast(dtype=dtype, value=value, saturate=saturate):
            return f"{'cast' if saturate else 'wrap'}[{dtype}]({print_expr(value, names)})"
        case Bitcast(dtype=dtype, value=value):
            return f"bitcast[{dtype}]({print_expr(value, names)})"
        case Load(buffer=buffer, indices=indices):
            return f"{names.of(buffer)}[{_list(indices, names)}]"
        case AddressOf(buffer=buffer, indices=indices, access=access):
            return f"&{access} {names.of(buffer)}[{_list(indices, names)}]"
        case Call():
            return _print_call(e, names)
        case Ramp(base=base, stride=stride, lanes=lanes):
            return f"ramp({_list((base, stride), names)}, {lanes})"
        case Broadcast(value=value, lanes=lanes):
            return f"broadcast({print_expr(value, names)}, {lanes})"
        case Shuffle(vectors=vectors, picks=picks):
            return f"shuffle([{_list(vectors, names)}], {list(picks)})"
        case _:
            assert_never(e)


def _list(exprs: tuple[Expr, ...], names: Names) -> str:
    return ", ".join(print_expr(e, names) for e in exprs)


def _print_call(call: Call, names: Names) -> str:
    args = _list(call.args, names)
    name, _, symbol = call.function.partition(":")
    if name in ("extern", "device"):
        return f"{name}[{call.dtype}] {symbol}({args})"
    known = INTRINSICS[name]
    fits = known.arity in (None, len(call.args))  # lowering adds some, such as a warp's width
    is_derived = fits and known.resolve(name, call.args)[1] == call.dtype
    typed = "" if is_derived else f"[{call.dtype}]"
    return f"{name}{typed}({args})"


def print_const(const: Const) -> str:
    """Return a constant: bare for int32, float32 and bool, ``dtype(value)`` for the rest."""
    value, dtype = const.value, const.dtype
    if dtype == "bool":
        return "true" if value else "false"
    if dtype.is_float:
        number = repr(float(value)) if math.isfinite(value) else str(float(value))
    else:
        number = str(int(value))
    bare = dtype == "int32" or (dtype == "float32" and math.isfinite(value))
    return number if bare else f"{dtype}({number})"


def print_extent(extent: Extent, names: Names) -> str:
    """Return the text of an int or an expression."""
    return str(extent) if isinstance(extent, int) else print_expr(extent, names)


def print_region(region: Region, names: Names) -> str:
    """Return ``A[start:extent, …]``, or ``A[i, j]`` for a region written as one element."""
    if region.is_element:
        inside = ", ".join(print_extent(s, names) for s in region.starts)
    else:
        inside = ", ".join(
            f"{print_extent(s, names)}:{print_extent(e, names)}"
            for s, e in zip(region.starts, region.extents, strict=True)
        )
    return f"{names.of(region.buffer)}[{inside}]"
