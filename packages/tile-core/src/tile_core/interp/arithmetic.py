"""Binary and unary operations on carried values, exactly as the language defines them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_core.dtypes import DType
from tile_core.errors import Span, UndefinedOperation
from tile_core.interp.values import Array, settle
from tile_core.ir.expr import BinaryOp, UnaryOp
from tile_core.ir.operations import BINARY, DIVISIONS


def _floor_quotient(a: Array, b: Array) -> Array:
    return np.floor(a / b) if a.dtype.kind == "f" else np.floor_divide(a, b)


def _floor_remainder(a: Array, b: Array) -> Array:
    return a - np.floor(a / b) * b if a.dtype.kind == "f" else np.remainder(a, b)


def _trunc_quotient(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.trunc(a / b)
    quotient = np.floor_divide(a, b)
    rounded_down = ((a < 0) != (b < 0)) & (quotient * b != a)
    result: Array = quotient + rounded_down.astype(quotient.dtype)
    return result


_BINARY: dict[BinaryOp, Callable[[Array, Array], Array]] = BINARY | {
    BinaryOp.FLOORDIV: _floor_quotient,
    BinaryOp.FLOORMOD: _floor_remainder,
    BinaryOp.TRUNCDIV: _trunc_quotient,
    BinaryOp.TRUNCMOD: np.fmod,
    BinaryOp.MIN: np.fmin,
    BinaryOp.MAX: np.fmax,
}


def binary(
    op: BinaryOp, a: Array, b: Array, dtype: DType, mask: Array | None, span: Span | None
) -> Array:
    """Return ``a op b`` for operands of one dtype; `dtype` is that of the result.

    Lanes outside `mask` may hold anything and never raise. Comparisons of NaN are false but
    for ``!=``; min and max prefer a number over NaN. Raises `UndefinedOperation` where an integer
    is divided by zero, or shifted by its width or more, in an active lane.
    """
    if op.is_comparison:
        return _BINARY[op](a, b)
    if b.dtype.kind in "iu":
        if op in DIVISIONS:
            b = _nonzero(op, b, mask, span)
        elif op in (BinaryOp.SHL, BinaryOp.SHR):
            b = _shift_count(op, b, dtype, mask, span)
    return settle(_BINARY[op](a, b), dtype)


def _active(bad: Array, mask: Array | None) -> Array:
    if mask is None:
        return bad
    return bad & (mask if bad.ndim == 1 else mask[:, None])


def _nonzero(op: BinaryOp, b: Array, mask: Array | None, span: Span | None) -> Array:
    zero = b == 0
    if not zero.any():
        return b
    if _active(zero, mask).any():
        raise UndefinedOperation(
            f"{op.value!r} divides an integer by zero",
            span=span,
            hint="guard it: T.if_then_else(d != 0, n // d, 0) evaluates one side only",
        )
    return np.where(zero, np.ones_like(b), b)


def _shift_count(
    op: BinaryOp, b: Array, dtype: DType, mask: Array | None, span: Span | None
) -> Array:
    bad = (b < 0) | (b >= dtype.bits)
    if not bad.any():
        return b
    wrong = np.broadcast_to(b, np.broadcast_shapes(b.shape, _active(bad, mask).shape))
    reported = wrong[_active(bad, mask)]
    if reported.size:
        raise UndefinedOperation(
            f"{op.value!r} shifts {dtype} by {reported.flat[0]}, which is not in "
            f"0..{dtype.bits - 1}",
            span=span,
            hint="mask the amount: x << (n & 31)",
        )
    return np.where(bad, np.zeros_like(b), b)


def unary(op: UnaryOp, a: Array, dtype: DType) -> Array:
    """Return ``op a``."""
    if op is UnaryOp.NOT:
        return np.logical_not(a)
    if op is UnaryOp.BITNOT:
        return settle(np.invert(a), dtype)
    return settle(np.negative(a), dtype)
