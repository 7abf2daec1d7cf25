"""Which values a formula takes over a box: bounds, and whether they are attained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from tile_core.arith.interval import combine
from tile_core.errors import InternalError
from tile_core.ir.expr import Binary, BinaryOp, Const, Expr, Var
from tile_core.layout.formulas import as_index, axis_of
from tile_core.records import dataclass

_NOWHERE: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Reach:
    """The values of a formula over a box.

    Every value lies in ``lo ... hi``. If `gap` is known, both ends are attained, and from one
    attained value to the next it is at most `gap`; None: the ends may be too generous.
    """

    lo: int
    hi: int
    gap: int | None
    axes: frozenset[int]  # coordinates the formula depends on

    @property
    def is_exact(self) -> bool:
        """Whether both ends are attained."""
        return self.gap is not None

    @property
    def span(self) -> int:
        """Distance between the ends."""
        return self.hi - self.lo


def reach(expr: Expr, extents: Sequence[int]) -> Reach:
    """Return the reach of `expr` when coordinate `k` runs over ``0 <= x < extents[k]``."""
    return Reaches(tuple(extents)).of(as_index(expr))


@dataclass(frozen=True, slots=True)
class Reaches:
    """The reaches of many formulas over one box, each part worked out once."""

    extents: tuple[int, ...]
    done: dict[Expr, Reach] = field(default_factory=dict)

    def of(self, node: Expr) -> Reach:
        """Return the reach of `node`."""
        found = self.done.get(node)
        if found is None:
            found = self.done[node] = self._of(node)
        return found

    def _of(self, node: Expr) -> Reach:
        match node:
            case Const(value=value):
                return Reach(int(value), int(value), 0, _NOWHERE)
            case Var():
                axis = axis_of(node)
                axes = frozenset((axis,)) if self.extents[axis] > 1 else _NOWHERE
                return Reach(0, self.extents[axis] - 1, 1 if axes else 0, axes)
            case Binary(op=op, a=x, b=y):
                a, b = self.of(x), self.of(y)
                lo, hi = combine(op, (a.lo, a.hi), (b.lo, b.hi))
                if lo is None or hi is None:
                    raise InternalError(f"{op.value} has no bounds in a formula")
                gap = 0 if lo == hi else _GAPS[op](a, b, lo, hi)
                return Reach(lo, hi, gap, a.axes | b.axes)
        raise InternalError(f"{type(node).__name__} is no part of a formula")

    def extremes(self) -> tuple[int, int]:
        """Return bounds of everything worked out so far."""
        found = self.done.values()
        return min(r.lo for r in found), max(r.hi for r in found)


def _independent(a: Reach, b: Reach) -> bool:
    return a.is_exact and b.is_exact and not a.axes & b.axes


def _gap_of_sum(a: Reach, b: Reach, lo: int, hi: int) -> int | None:
    if a.gap is None or b.gap is None or not _independent(a, b):
        return None
    # between two neighbours of b, the values of a fill all but the end of the gap
    return min(max(a.gap, b.gap - a.span), max(b.gap, a.gap - b.span))


def _gap_of_product(a: Reach, b: Reach, lo: int, hi: int) -> int | None:
    if a.span == 0:
        a, b = b, a
    if b.span == 0 and a.gap is not None:
        return a.gap * abs(b.lo)
    return hi - lo if _independent(a, b) else None


def _gap_of_remainder(a: Reach, b: Reach, lo: int, hi: int) -> int | None:
    c = b.lo
    if a.lo // c == a.hi // c:
        return a.gap
    if a.gap == 1:  # it wraps without leaving anything out, so it meets c - 1 and then 0
        return 1 if a.span + 1 >= c else c - 1
    return None


def _gap_of_xor(a: Reach, b: Reach, lo: int, hi: int) -> int | None:
    full = [r for r in (a, b) if r.gap == 1 and (r.lo, r.hi) == (0, hi)]
    return 1 if full and lo == 0 and _independent(a, b) else None


def _gap_of_extreme(a: Reach, b: Reach, lo: int, hi: int) -> int | None:
    return max(a.span, b.span) if _independent(a, b) else None


_GAPS: dict[BinaryOp, Callable[[Reach, Reach, int, int], int | None]] = {
    BinaryOp.ADD: _gap_of_sum,
    BinaryOp.SUB: _gap_of_sum,
    BinaryOp.MUL: _gap_of_product,
    BinaryOp.FLOORDIV: lambda a, b, lo, hi: None if a.gap is None else -(-a.gap // b.lo),
    BinaryOp.FLOORMOD: _gap_of_remainder,
    BinaryOp.BITXOR: _gap_of_xor,
    BinaryOp.MIN: _gap_of_extreme,
    BinaryOp.MAX: _gap_of_extreme,
}
