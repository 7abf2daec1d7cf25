"""Sums of indices back as expressions, where no part can overflow."""

from __future__ import annotations

from tile_core.arith.affine import Atom, Linear, as_atom
from tile_core.arith.bounds import Range, limits
from tile_core.dtypes import DType, dtype_of
from tile_core.ir.expr import Binary, BinaryOp, Cast, Const, Expr

INT32, INT64 = dtype_of("int32"), dtype_of("int64")


class MayOverflow(Exception):
    """A sum has no order in which every part certainly fits its type."""


def fits(value: Linear, dtype: DType) -> bool:
    """Whether the value is certainly in the range of `dtype`."""
    least, most = limits(dtype)
    low, high = value.bounds
    return least <= low and high <= most


def within(bounds: Range, dtype: DType) -> bool:
    """Whether `dtype` holds all values between `bounds`."""
    low, high = limits(dtype)
    return low <= bounds[0] and bounds[1] <= high


def is_safe(value: Linear, dtype: DType) -> bool:
    """Whether the sum can be computed in `dtype`, given that its value fits.

    Parts that are all at least 0 are at most the whole. Otherwise the bounds of each partial
    sum must fit.
    """
    terms = value.terms
    least, most = limits(dtype)
    natural = value.constant >= 0
    for atom, factor in terms:
        natural = natural and factor > 0 and atom.low >= 0
        if abs(factor) > most:
            return False
    if abs(value.constant) > most:
        return value.constant == least and not terms
    if natural:
        return True
    low = high = 0
    for atom, factor in sorted(terms, key=_printed_order):
        ends = (factor * atom.low, factor * atom.high)
        low, high = low + min(ends), high + max(ends)
        if min(ends) < least or max(ends) > most or low < least or high > most:
            return len(terms) == 1 and factor == 1 and value.constant == 0
    low, high = low + value.constant, high + value.constant
    return within((low, high), dtype)


def _printed_order(term: tuple[Atom, int]) -> tuple[bool, int, int]:
    """Sort what is added before what is subtracted, and large steps first."""
    atom, factor = term
    is_product = atom.operands is not None and atom.operands[0] is BinaryOp.MUL
    return factor < 0, -abs(factor) if not is_product else -(2**63), atom.number


def write(value: Linear, dtype: DType) -> Expr:
    """Return the expression of a sum, in the arithmetic of `dtype`: int32 or int64.

    Sums of 64 bits are computed in 32 as far as that certainly suffices.

    Raises `MayOverflow` if a part of the sum might not fit, though its value does.
    """
    if not is_safe(value, dtype):
        raise MayOverflow
    if dtype == INT64 and value.terms and is_narrow(value):
        return Cast(INT64, write(value, INT32))
    total: Expr | None = None
    for atom, factor in sorted(value.terms, key=_printed_order):
        term = _term(atom, abs(factor), dtype)
        if total is None:
            total = term if factor > 0 else _negative(atom, factor, value.constant, term, dtype)
        else:
            total = Binary(BinaryOp.ADD if factor > 0 else BinaryOp.SUB, total, term, dtype)
    if total is None:
        return Const(value.constant, dtype)
    if value.constant == 0 or all(factor < 0 for _, factor in value.terms):
        return total
    op = BinaryOp.ADD if value.constant > 0 else BinaryOp.SUB
    return Binary(op, total, Const(abs(value.constant), dtype), dtype)


def is_narrow(value: Linear) -> bool:
    """Whether a sum is certainly computed right in 32 bits."""
    if not fits(value, INT32) or any(atom.expr.dtype != INT32 for atom, _ in value.terms):
        return False
    return is_safe(value, INT32)


def _negative(atom: Atom, factor: int, const: int, term: Expr, dtype: DType) -> Expr:
    """Return ``const - term``, where nothing positive can stand in front."""
    if const == 0:
        return _scaled(atom, factor, dtype)
    return Binary(BinaryOp.SUB, Const(const, dtype), term, dtype)


def _term(atom: Atom, factor: int, dtype: DType) -> Expr:
    narrow = atom.expr.dtype == INT32
    if dtype == INT64 and narrow and fits(Linear(((atom, factor),)), INT32):
        return Cast(INT64, _scaled(atom, factor, INT32))
    return _scaled(atom, factor, dtype)


def _scaled(atom: Atom, factor: int, dtype: DType) -> Expr:
    value = atom.expr
    if value.dtype != dtype:
        if dtype == INT32 and not fits(as_atom(atom), INT32):
            raise MayOverflow
        value = Cast(dtype, value)
    return value if factor == 1 else Binary(BinaryOp.MUL, value, Const(factor, dtype), dtype)
