"""Exponentials whose results are 1 at most: there are functions for them that cost less."""

from __future__ import annotations

from tile_core.ir.expr import Binary, BinaryOp, Call, Cast, Const, Expr, Select, Unary, UnaryOp
from tile_core.ir.structural_equality import same_value
from tile_cpu.passes.bound_exponents import OF_NONPOSITIVE


def of_nonpositive(call: Call) -> tuple[str, Expr] | None:
    """Return the function of `OF_NONPOSITIVE` that `call` is, and its argument; or None.

    Examples
    --------
    >>> from tile_core.ir.build_expr import binary, call, const, select
    >>> from tile_core.dtypes import dtype_of
    >>> from tile_core.ir.expr import Var
    >>> x, zero = Var("x", dtype_of("float32")), const(0.0, dtype_of("float32"))
    >>> name, arg = of_nonpositive(call("exp", select(binary(BinaryOp.GT, x, zero), zero, x)))
    >>> name, arg is x
    ('exp_nonpositive', True)
    >>> of_nonpositive(call("exp", x)) is None
    True
    """
    if call.function not in OF_NONPOSITIVE or call.dtype.bits > 32:
        return None
    arg = call.args[0]
    found = _limited(arg)
    if found is None and sign_of(arg) < 0:
        found = arg
    return None if found is None else (OF_NONPOSITIVE[call.function], found)


def _limited(arg: Expr) -> Expr | None:
    """Return `x` if `arg` is ``0 if x > 0 else x``."""
    match arg:
        case Select(
            cond=Binary(op=BinaryOp.GT, a=x, b=Const(value=0)), then=Const(value=0), otherwise=same
        ) if same_value(x, same):
            return x
    return None


def sign_of(expr: Expr) -> int:
    """Return 1 if a float is at least 0 or NaN, -1 if it is at most 0 or NaN, 0 if nobody knows.

    Sums are of no known sign: one of a product and a number may be rounded as a whole.
    """
    match expr:
        case Const(value=value):
            return 1 if value > 0 else -1
        case Call(function="abs"):
            return 1
        case Unary(op=UnaryOp.NEG, a=a):
            return -sign_of(a)
        case Cast(value=inner, dtype=dtype) if dtype.is_float and inner.dtype.is_float:
            return sign_of(inner)
        case Binary(op=BinaryOp.MUL | BinaryOp.DIV, a=a, b=b):
            return 1 if same_value(a, b) else sign_of(a) * sign_of(b)
        case Binary(op=BinaryOp.MIN, a=a, b=b):
            return min(sign_of(a), sign_of(b), 0)
        case Binary(op=BinaryOp.MAX, a=a, b=b):
            return max(sign_of(a), sign_of(b), 0)
    return 0
