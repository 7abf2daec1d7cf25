"""Integer expressions as Python text, for generated functions that compute launch extents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tile_core.errors import InternalError
from tile_core.ir.expr import Binary, BinaryOp, Cast, Const, Expr, Select, Unary, UnaryOp, Var

_INFIX = {
    BinaryOp.TRUNCDIV: "//",
    BinaryOp.TRUNCMOD: "%",
    BinaryOp.DIV: "/",
    **{op: op.value for op in BinaryOp if op.value in
       ("+", "-", "*", "//", "%", "and", "or", "&", "|", "^", "<<", ">>",
        "==", "!=", "<", "<=", ">", ">=")},
}  # fmt: skip


def host_text(expr: Expr, names: Mapping[Any, str]) -> str:
    """Return Python text with the value of `expr`, which extents of launches have.

    Parameters
    ----------
    names
        The Python name of each variable.

    Raises
    ------
    InternalError
        If the expression reads memory or calls a function: no extent does.

    Examples
    --------
    >>> from tile_core.dtypes import dtype_of
    >>> m = Var("m", dtype_of("int32"))
    >>> host_text((m + 127) // 128, {m: "s0"})
    '((s0 + 127) // 128)'
    """
    match expr:
        case Const(value=value):
            return repr(value)
        case Var():
            return names[expr]
        case Binary(op=op, a=a, b=b):
            left, right = host_text(a, names), host_text(b, names)
            if op in (BinaryOp.MIN, BinaryOp.MAX):
                return f"{op.value}({left}, {right})"
            return f"({left} {_INFIX[op]} {right})"
        case Unary(op=op, a=a):
            sign = {UnaryOp.NEG: "-", UnaryOp.NOT: "not ", UnaryOp.BITNOT: "~"}[op]
            return f"({sign}{host_text(a, names)})"
        case Select(cond=cond, then=then, otherwise=otherwise):
            yes, test, no = (host_text(e, names) for e in (then, cond, otherwise))
            return f"({yes} if {test} else {no})"
        case Cast(value=value, dtype=dtype) if dtype.is_int:
            return f"int({host_text(value, names)})"
    raise InternalError(f"{type(expr).__name__} in the extent of a launch", span=expr.span)
