"""Expressions and regions of tile IR in the spelling of the language."""

from __future__ import annotations

import math

from tile_core.ir.buffer import Region, static_value
from tile_core.ir.expr import (
    Binary,
    BinaryOp,
    Bitcast,
    Call,
    Cast,
    Const,
    Expr,
    Extent,
    Load,
    Select,
    StringConst,
    Unary,
    UnaryOp,
    Var,
)
from tile_core.ir.intrinsics import INTRINSICS
from tile_core.ir.names import Names

_FUNCTIONS = {
    BinaryOp.AND: "T.And",
    BinaryOp.OR: "T.Or",
    BinaryOp.MIN: "T.min",
    BinaryOp.MAX: "T.max",
    BinaryOp.TRUNCDIV: "T.truncdiv",
    BinaryOp.TRUNCMOD: "T.truncmod",
}


class NoSpelling(Exception):
    """A node has no form in the language, or none that is known here. Never leaves the package."""


def spelt(expr: Extent, names: Names) -> str:
    """Return an expression as a user writes it, in parentheses wherever that may matter."""
    if isinstance(expr, int):
        return str(expr)

    def s(part: Expr) -> str:
        return spelt(part, names)

    match expr:
        case Const():
            return _constant(expr)
        case StringConst(value=value):
            return repr(value)
        case Var():
            return names.of(expr)
        case Binary(op=op, a=a, b=b) if op in _FUNCTIONS:
            return f"{_FUNCTIONS[op]}({s(a)}, {s(b)})"
        case Binary(op=op, a=a, b=b):
            return f"({s(a)} {op.value} {s(b)})"
        case Unary(op=UnaryOp.NOT, a=a):
            return f"T.Not({s(a)})"
        case Unary(op=op, a=a):
            return f"({op.value}{s(a)})"
        case Select(cond=cond, then=then, otherwise=otherwise):
            return f"T.if_then_else({s(cond)}, {s(then)}, {s(otherwise)})"
        case Cast(dtype=dtype, value=value, saturate=True) if dtype.lanes == 1:
            return f'T.cast({s(value)}, "{dtype}")'
        case Bitcast(dtype=dtype, value=value) if dtype.lanes == 1:
            return f'T.reinterpret({s(value)}, "{dtype}")'
        case Load(buffer=buffer, indices=indices):
            return f"{names.of(buffer)}[{', '.join(map(s, indices))}]"
        case Call(function=function, args=args) if function in INTRINSICS:
            return f"T.{function}({', '.join(map(s, args))})"
    raise NoSpelling(type(expr).__name__)


def _constant(const: Const) -> str:
    value, dtype = const.value, const.dtype
    if dtype.is_bool:
        return str(bool(value))
    if dtype.is_float and not math.isfinite(value):
        if math.isnan(value):
            raise NoSpelling("nan")
        return f'{"-" if value < 0 else ""}T.infinity("{dtype}")'
    text = repr(float(value)) if dtype.is_float else str(int(value))
    return text if dtype in ("int32", "float32") else f"T.{dtype}({text})"


def region(region: Region, names: Names) -> str:
    """Return a region as a tile operator takes it: a name, a slice, or a first element."""
    name = names.of(region.buffer)
    if region.is_element:
        return f"{name}[{', '.join(spelt(start, names) for start in region.starts)}]"
    if region.is_whole:
        return name
    inside = []
    for start, extent in zip(region.starts, region.extents, strict=True):
        first, count = static_value(start), static_value(extent)
        begin = spelt(start, names)
        if first is not None and count is not None:
            inside.append(f"{first}:{first + count}")
        else:
            inside.append(f"{begin} : {begin} + {spelt(extent, names)}")
    return f"{name}[{', '.join(inside)}]"
