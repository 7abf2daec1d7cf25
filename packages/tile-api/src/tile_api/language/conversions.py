"""Conversions, bit patterns, selection, and the extreme values of element types."""

from __future__ import annotations

import math
from typing import Any

from tile_api.frontend.dtypes import dtype as Dtype
from tile_api.frontend.values import as_value
from tile_api.language.gpu_only import gpu_call
from tile_api.language.operands import choice, here, is_number, is_static
from tile_core.dtypes import DType
from tile_core.errors import DtypeMismatch, FrontendTypeError, FrontendValueError, TileError
from tile_core.ir import build_expr
from tile_core.ir.expr import Bitcast, Const, Expr, UnaryOp

__all__ = ["cast", "if_then_else", "infinity", "max_value", "min_value", "reinterpret"]


# The largest finite value of each float format.
_LARGEST = {
    "float64": 1.7976931348623157e308,
    "float32": 3.4028234663852886e38,
    "tfloat32": 3.4011621342146535e38,
    "bfloat16": 3.3895313892515355e38,
    "float16": 65504.0,
    "float8_e3m4": 15.5,
    "float8_e4m3fn": 448.0,
    "float8_e4m3fnuz": 240.0,
    "float8_e4m3b11fnuz": 30.0,
    "float8_e5m2": 57344.0,
    "float8_e5m2fnuz": 57344.0,
    "float8_e8m0fnu": 2.0**127,
    "float6_e2m3fn": 7.5,
    "float6_e3m2fn": 28.0,
    "float4_e2m1fn": 6.0,
    "float4_e2m1_unpacked": 6.0,
}
_WITH_INFINITY = frozenset(
    {"float64", "float32", "tfloat32", "bfloat16", "float16", "float8_e3m4", "float8_e5m2"}
)


def cast(value: Any, dtype: object, round: str = "", sat: bool = True, rbits: Any = None) -> Expr:
    """Return `value` converted to `dtype`.

    Parameters
    ----------
    round
        ``""`` or ``"rn"`` rounds to nearest even (floats to integers truncate); ``"rs"``
        rounds stochastically with the random bits `rbits`.
    sat
        Whether floats of 8 bits and fewer saturate at their largest value.
    rbits
        A 32-bit integer, for ``round="rs"`` only.

    Raises
    ------
    FrontendValueError
        Unknown rounding, or `rbits` given or missing contrary to it.
    """
    target = Dtype(dtype)
    mode = choice(round, ("", "rn", "rs"), "rounding")
    if (mode == "rs") is not (rbits is not None):
        raise FrontendValueError(
            "stochastic rounding and random bits go together",
            span=here(),
            hint="pass both round='rs' and rbits=..., or neither",
        )
    if mode == "rs":
        return gpu_call("cast_rs", as_value(value), as_value(rbits), dtype=target)
    if is_number(value):
        converted: Expr = target(value)
        return converted
    return build_expr.truncated(build_expr.cast(as_value(value, target), target, saturate=sat))


def Cast_(dtype: object, x: Any) -> Expr:
    """Return `x` converted to `dtype`: `T.cast` with its arguments the other way round."""
    return cast(x, dtype)


def reinterpret(value: Any, dtype: Any) -> Expr:
    """Return the bits of `value` read as `dtype`; the arguments may stand in either order.

    Raises
    ------
    DtypeMismatch
        If the widths differ.
    """
    if _names_dtype(value) and not _names_dtype(dtype):
        value, dtype = dtype, value
    target: DType = Dtype(dtype)
    if is_number(value):
        size = f"int{target.bits * target.lanes}" if isinstance(value, int) else "float32"
        expr: Expr = build_expr.const(value, Dtype(size))
    else:
        expr = as_value(value)
    have = expr.dtype.bits * expr.dtype.lanes
    if have != target.bits * target.lanes and target.lanes == 1 and expr.dtype.bits == target.bits:
        target = target.with_lanes(expr.dtype.lanes)
    if have != target.bits * target.lanes:
        raise DtypeMismatch(
            f"the {have} bits of {expr.dtype} cannot be read as the "
            f"{target.bits * target.lanes} bits of {target}",
            span=here(),
            hint="convert the value with T.cast, or choose a type of the same width",
        )
    return bits_as(expr, target)


def bits_as(value: Expr, dtype: DType) -> Expr:
    """Return the bits of `value` as `dtype`, of the same width; there and back is nothing."""
    while isinstance(value, Bitcast):
        value = value.value
    return value if value.dtype == dtype else Bitcast(dtype, value, span=here())


def _names_dtype(x: object) -> bool:
    return isinstance(x, (str, type)) or type(x).__name__ == "dtype"


def if_then_else(cond: Any, t: Any, f: Any) -> Any:
    """Return `t` if `cond` holds, else `f`; only that side is evaluated.

    A condition known while tracing selects at once.
    """
    return _select(cond, t, f, lazy=True)


def Select(condition: Any, true_value: Any, false_value: Any) -> Any:
    """Return `true_value` if `condition` holds, else `false_value`; both sides are evaluated."""
    return _select(condition, true_value, false_value, lazy=False)


def _select(condition: Any, then: Any, otherwise: Any, *, lazy: bool) -> Any:
    if is_static(condition, then, otherwise):
        return then if condition else otherwise
    a = then if is_number(then) else as_value(then)
    b = otherwise if is_number(otherwise) else as_value(otherwise)
    try:
        return build_expr.select(as_value(condition), a, b, lazy=lazy)
    except TileError as error:
        raise error.at(here()) from None


def infinity(dtype: object) -> Const:
    """Return infinity in a float type; the largest finite value where it has no infinity.

    Raises
    ------
    FrontendTypeError
        If `dtype` is not a float type.
    """
    target = Dtype(dtype)
    if not target.is_float:
        raise FrontendTypeError(
            f"{target} has no infinity", span=here(), hint=f"use T.max_value('{target}')"
        )
    return build_expr.const(
        math.inf if target.base in _WITH_INFINITY else _LARGEST[target.base], target
    )


def max_value(dtype: object) -> Const:
    """Return the largest finite value of an element type."""
    target = Dtype(dtype)
    if target.is_bool:
        return build_expr.const(True, target)
    _refuse_handle(target)
    largest = _LARGEST[target.base] if target.is_float else build_expr.integer_bounds(target)[1]
    return build_expr.const(largest, target)


def min_value(dtype: object) -> Const:
    """Return the smallest finite value of an element type: the most negative one."""
    target = Dtype(dtype)
    if target.is_bool:
        return build_expr.const(False, target)
    _refuse_handle(target)
    if target.base == "float8_e8m0fnu":  # unsigned powers of two
        return build_expr.const(2.0**-127, target)
    smallest = -_LARGEST[target.base] if target.is_float else build_expr.integer_bounds(target)[0]
    return build_expr.const(smallest, target)


def _refuse_handle(target: DType) -> None:
    if target.is_handle:
        told = "addresses have no largest or smallest value"
        raise FrontendTypeError(told, span=here(), hint="name the element type that is meant")


def logical_not(x: Any) -> Any:
    """Return whether `x` is false, or zero."""
    return (not x) if is_number(x) else build_expr.unary(UnaryOp.NOT, as_value(x))
