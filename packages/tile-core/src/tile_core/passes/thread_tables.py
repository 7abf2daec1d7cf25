"""Integer expressions evaluated for all threads of a block, in all rounds of loops, at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tile_core.ir.expr import (
    Binary,
    BinaryOp,
    Cast,
    Const,
    Extent,
    Select,
    Unary,
    UnaryOp,
    Var,
)

Array: TypeAlias = "npt.NDArray[Any]"
"""Axes: combinations of rounds, threads of the block; either may have length 1."""


def _truncated(a: Array, b: Array) -> Array:
    return np.abs(a) // np.abs(b) * np.where((a < 0) == (b < 0), 1, -1)


_BINARY: dict[BinaryOp, Callable[[Array, Array], Array]] = {
    BinaryOp.ADD: np.add,
    BinaryOp.SUB: np.subtract,
    BinaryOp.MUL: np.multiply,
    BinaryOp.FLOORDIV: np.floor_divide,
    BinaryOp.FLOORMOD: np.mod,
    BinaryOp.TRUNCDIV: _truncated,
    BinaryOp.TRUNCMOD: lambda a, b: a - _truncated(a, b) * b,
    BinaryOp.MIN: np.minimum,
    BinaryOp.MAX: np.maximum,
    BinaryOp.AND: np.logical_and,
    BinaryOp.OR: np.logical_or,
    BinaryOp.BITAND: np.bitwise_and,
    BinaryOp.BITOR: np.bitwise_or,
    BinaryOp.BITXOR: np.bitwise_xor,
    BinaryOp.SHL: np.left_shift,
    BinaryOp.SHR: np.right_shift,
    BinaryOp.EQ: np.equal,
    BinaryOp.NE: np.not_equal,
    BinaryOp.LT: np.less,
    BinaryOp.LE: np.less_equal,
    BinaryOp.GT: np.greater,
    BinaryOp.GE: np.greater_equal,
}
_DIVISIONS = (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD)
_SHIFTS = (BinaryOp.SHL, BinaryOp.SHR)
_MOST_BITS = 40
"""Shifts beyond it leave the numbers of the table."""


def table(expr: Extent, values: Mapping[Var, Array]) -> Array | None:
    """Return the values of `expr`, or None where it is not arithmetic on `values` alone.

    Arithmetic is that of unbounded integers: indices are taken not to overflow. What has no
    meaning, such as a division by zero in a round that never comes, is any number.
    """
    match expr:
        case int():
            return np.asarray([[expr]])
        case Const(value=value) if not expr.dtype.is_float and expr.dtype.lanes == 1:
            return np.asarray([[value]])
        case Var():
            return values.get(expr)
        case Binary(op=op, a=a, b=b) if op in _BINARY and not a.dtype.is_float:
            left, right = table(a, values), table(b, values)
            if left is None or right is None:
                return None
            if op in _DIVISIONS:
                right = np.where(right == 0, 1, right)
            elif op in _SHIFTS:
                right = np.clip(right, 0, _MOST_BITS)
            return _BINARY[op](left, right)
        case Unary(op=UnaryOp.NEG, a=a) if a.dtype.is_int:
            inner = table(a, values)
            return None if inner is None else -inner
        case Unary(op=UnaryOp.NOT | UnaryOp.BITNOT, a=a):
            inner = table(a, values)
            if inner is None or inner.dtype == np.bool_:
                return None if inner is None else np.logical_not(inner)
            return ~inner if expr.dtype.kind.value == "int" else None
        case Select(cond=cond, then=then, otherwise=otherwise):
            parts = [table(x, values) for x in (cond, then, otherwise)]
            known = [p for p in parts if p is not None]
            return np.where(known[0], known[1], known[2]) if len(known) == 3 else None
        case Cast(value=value, dtype=dtype) if dtype.is_int and not value.dtype.is_float:
            return table(value, values)
    return None


def meet(a: Array, b: Array, groups: Array, here: Array, there: Array) -> bool:
    """Whether some element is touched by two threads that are not of one group.

    Parameters
    ----------
    a, b
        Numbers of the elements that each thread touches in two statements: (round, thread,
        element).
    groups
        The group of each thread.
    here, there
        Which threads get to the statements, for each round.
    """
    keys, who = _flattened(a, groups, here)
    others, whose = _flattened(b, groups, there)
    if not len(keys) or not len(others):
        return False
    order = np.lexsort((whose, others))
    others, whose = others[order], whose[order]
    starts = np.flatnonzero(np.r_[True, others[1:] != others[:-1]])
    ends = np.r_[starts[1:], len(others)] - 1
    found = np.searchsorted(others[starts], keys)
    found = np.minimum(found, len(starts) - 1)
    same = others[starts][found] == keys
    foreign = (whose[starts][found] != who) | (whose[ends][found] != who)
    return bool((same & foreign).any())


def _flattened(elements: Array, groups: Array, active: Array) -> tuple[Array, Array]:
    """Return the keys of elements in their rounds, and who touches them."""
    rounds = np.arange(elements.shape[0]).reshape(-1, 1, 1)
    keys = elements * elements.shape[0] + rounds
    who = np.broadcast_to(groups.reshape(1, -1, 1), keys.shape)
    kept = np.broadcast_to(active[..., None], keys.shape)
    return keys[kept], who[kept]
