"""Integer expressions evaluated for all threads of a block, in all iterations of loops, at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tile_core.arith.evaluate_arrays import Unknown, value_of
from tile_core.ir.expr import Call, Expr, Extent, Load, Unary, UnaryOp, Var
from tile_core.ir.node import walk_once

Array: TypeAlias = "npt.NDArray[Any]"
"""Axes: combinations of iterations, threads of the block; either may have length 1."""


def table(expr: Extent, values: Mapping[Var, Array]) -> Array | None:
    """Return the values of `expr`, or None where it is not integer arithmetic on `values` alone."""
    if isinstance(expr, Expr) and any(map(_is_unknown, walk_once(expr))):
        return None
    try:
        return np.atleast_2d(np.asarray(value_of(expr, values, {})))
    except Unknown:
        return None


def _is_unknown(node: object) -> bool:
    """Whether threads may have other values than unbounded integers have."""
    match node:
        case Call() | Load():
            return True
        case Unary(op=UnaryOp.BITNOT):
            return node.dtype.kind.value == "uint"
        case Expr():
            return node.dtype.is_float or node.dtype.lanes > 1
    return False


def meet(a: Array, b: Array, groups: Array, here: Array, there: Array) -> bool:
    """Whether some element is touched by two threads that are not of one group.

    `a` and `b` number the elements that each thread touches in two statements: (iteration, thread,
    element). `here` and `there` tell which threads get to them, for each iteration.
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
    """Return the keys of elements in their iterations, and who touches them."""
    iterations = np.arange(elements.shape[0]).reshape(-1, 1, 1)
    keys = elements * elements.shape[0] + iterations
    who = np.broadcast_to(groups.reshape(1, -1, 1), keys.shape)
    kept = np.broadcast_to(active[..., None], keys.shape)
    return keys[kept], who[kept]
