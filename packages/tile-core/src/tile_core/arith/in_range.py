"""Whether an index stays inside of a dimension: what bounds checks on every target rely on."""

from __future__ import annotations

from tile_core.arith.bounds import Ranges
from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.buffer import static_value
from tile_core.ir.expr import Expr, Extent


def prove_in_range(index: Expr, extent: Extent, env: ConstraintSet) -> bool:
    """Whether ``0 <= index < extent`` holds where `env` describes the program, in exact numbers."""
    at = env.linear(index)
    return env.is_natural(at) and env.is_natural(env.linear(extent) - at.plus(1))


def open_ends(index: Expr, extent: Extent, env: ConstraintSet) -> tuple[bool, bool]:
    """Return which of ``0 <= index`` and ``index < extent`` are not proven.

    Proofs are those of exact arithmetic. Where a part of the index may wrap, only what bounds the
    result within its type counts.

    Before   A[min(n + i, 63)], n from the caller, A of 64 elements
    After    (True, False)
    """
    if not env.wraps(index):
        at = env.linear(index)
        below = not env.is_natural(at)
        return below, not env.is_natural(env.linear(extent) - at.plus(1))
    low, high = Ranges(env).of(index)
    fixed = static_value(extent)
    return low < 0, fixed is None or high >= fixed
