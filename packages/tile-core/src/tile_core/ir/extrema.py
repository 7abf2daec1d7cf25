"""Choices that LLVM takes for the greater or smaller of two floats, and folds without NaN."""

from __future__ import annotations

from tile_core.ir.expr import Binary, BinaryOp, Const, Expr, Select
from tile_core.ir.node import nodes_of
from tile_core.ir.structural_equality import same_value

_ORDERINGS = frozenset({BinaryOp.LT, BinaryOp.LE, BinaryOp.GT, BinaryOp.GE})


def is_extremum_or_nan(choice: Select) -> bool:
    """Tell whether floats are chosen by their order, and one of them may be NaN then.

    Notes
    -----
    LLVM, which compilers for CPUs and GPUs are made of, takes ``0 < m ? m : 0`` for ``m`` where
    ``m`` is ``x < 0 ? 0 : x``, without being allowed to disregard NaN: of two maxima with one
    operand in common it drops the outer, out of which no NaN comes, while out of the inner it
    does. So compilers are not to see what chose such values.

    Examples
    --------
    >>> from tile_core.ir.build_expr import binary, const, select
    >>> from tile_core.dtypes import dtype_of
    >>> from tile_core.ir.expr import Var
    >>> x, zero = Var("x", dtype_of("float32")), const(0.0, dtype_of("float32"))
    >>> is_extremum_or_nan(select(binary(BinaryOp.LT, x, zero), zero, x))
    True
    >>> is_extremum_or_nan(select(binary(BinaryOp.LT, zero, x), x, zero))  # for NaN it is 0
    False
    """
    cond, then, otherwise = choice.cond, choice.then, choice.otherwise
    if not choice.dtype.is_float or (_is_order(cond) and isinstance(otherwise, Const)):
        return False
    return any(
        (same_value(n.a, then) and same_value(n.b, otherwise))
        or (same_value(n.b, then) and same_value(n.a, otherwise))
        for n in nodes_of(cond, Binary)
        if _is_order(n)
    )


def is_compared(value: Expr, cond: Expr) -> bool:
    """Tell whether `cond` tells the order of a float that is stored where it holds, or does not.

    Notes
    -----
    ``if x < 0: m = 0`` is a choice like those of `is_extremum_or_nan` once LLVM has seen it.

    Examples
    --------
    >>> from tile_core.ir.build_expr import binary, const
    >>> from tile_core.ir.expr import Var
    >>> from tile_core.dtypes import dtype_of
    >>> x, zero = Var("x", dtype_of("float32")), const(0.0, dtype_of("float32"))
    >>> is_compared(zero, binary(BinaryOp.LT, x, zero))
    True
    >>> is_compared(const(1.0, dtype_of("float32")), binary(BinaryOp.LT, x, zero))
    False
    """
    return value.dtype.is_float and any(
        same_value(n.a, value) or same_value(n.b, value)
        for n in nodes_of(cond, Binary)
        if _is_order(n)
    )


def _is_order(cond: Expr) -> bool:
    return isinstance(cond, Binary) and cond.op in _ORDERINGS
