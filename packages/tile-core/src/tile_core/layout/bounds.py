"""Which values an index expression takes over a box: bounds, and whether they are attained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from tile_core.layout.index import AnyIndex, Binary, Const, IndexExpr, IndexOp, Input, as_index
from tile_core.records import dataclass

_NOWHERE: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Reach:
    """The values of an expression over a box.

    Every value lies in ``lo ... hi``. If `gap` is known, both ends are attained, and from one
    attained value to the next it is at most `gap`; None: the ends may be too generous.
    """

    lo: int
    hi: int
    gap: int | None
    axes: frozenset[int]  # coordinates the expression depends on

    @property
    def is_exact(self) -> bool:
        """Whether both ends are attained."""
        return self.gap is not None

    @property
    def span(self) -> int:
        """Distance between the ends."""
        return self.hi - self.lo


def reach(expr: IndexExpr, extents: Sequence[int]) -> Reach:
    """Return the reach of `expr` when coordinate `k` runs over ``0 <= x < extents[k]``."""
    return Reaches(tuple(extents)).of(as_index(expr))


@dataclass(frozen=True, slots=True)
class Reaches:
    """The reaches of many expressions over one box, each part worked out once."""

    extents: tuple[int, ...]
    done: dict[int, tuple[AnyIndex, Reach]] = field(default_factory=dict)

    def of(self, node: AnyIndex) -> Reach:
        """Return the reach of `node`."""
        known = self.done.get(id(node))
        if known is None:
            known = self.done[id(node)] = (node, self._of(node))  # holds the node: ids stay unique
        return known[1]

    def _of(self, node: AnyIndex) -> Reach:
        match node:
            case Const(value=value):
                return Reach(value, value, 0, _NOWHERE)
            case Input(axis=axis):
                axes = frozenset((axis,)) if self.extents[axis] > 1 else _NOWHERE
                return Reach(0, self.extents[axis] - 1, 1 if axes else 0, axes)
            case Binary(op=op, a=a, b=b):
                return _RULES[op](self.of(a), self.of(b))

    def extremes(self) -> tuple[int, int]:
        """Return bounds of everything worked out so far."""
        found = [reach for _, reach in self.done.values()]
        return min(r.lo for r in found), max(r.hi for r in found)


def _independent(a: Reach, b: Reach) -> bool:
    return a.is_exact and b.is_exact and not a.axes & b.axes


def _add(a: Reach, b: Reach) -> Reach:
    gap = None
    if a.gap is not None and b.gap is not None and _independent(a, b):
        # between two neighbours of b, the values of a fill all but the end of the gap
        gap = min(max(a.gap, b.gap - a.span), max(b.gap, a.gap - b.span))
    return Reach(a.lo + b.lo, a.hi + b.hi, gap, a.axes | b.axes)


def _sub(a: Reach, b: Reach) -> Reach:
    return _add(a, Reach(-b.hi, -b.lo, b.gap, b.axes))


def _mul(a: Reach, b: Reach) -> Reach:
    if a.span == 0:
        a, b = b, a
    ends = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    lo, hi = min(ends), max(ends)
    gap = None
    if b.span == 0 and a.gap is not None:
        gap = a.gap * abs(b.lo)
    elif _independent(a, b):
        gap = hi - lo
    return Reach(lo, hi, gap, a.axes | b.axes)


def _floordiv(a: Reach, b: Reach) -> Reach:
    c = b.lo
    gap = None if a.gap is None else -(-a.gap // c)
    return Reach(a.lo // c, a.hi // c, gap, a.axes)


def _floormod(a: Reach, b: Reach) -> Reach:
    c = b.lo
    if a.lo // c == a.hi // c:
        return Reach(a.lo % c, a.hi % c, a.gap, a.axes)
    gap = None
    if a.gap == 1:  # it wraps without leaving anything out, so it meets c - 1 and then 0
        gap = 1 if a.span + 1 >= c else c - 1
    return Reach(0, c - 1, gap, a.axes)


def _xor(a: Reach, b: Reach) -> Reach:
    if a.span == 0 and b.span == 0:
        return Reach(a.lo ^ b.lo, a.lo ^ b.lo, 0, frozenset())
    bits = max(value.bit_length() for value in (a.lo, a.hi, b.lo, b.hi))
    lo = -(1 << bits) if min(a.lo, b.lo) < 0 else 0
    hi = (1 << bits) - 1
    full = [r for r in (a, b) if r.gap == 1 and (r.lo, r.hi) == (0, hi)]
    gap = 1 if full and lo == 0 and _independent(a, b) else None
    return Reach(lo, hi, gap, a.axes | b.axes)


def _min(a: Reach, b: Reach) -> Reach:
    gap = max(a.span, b.span) if _independent(a, b) else None
    return Reach(min(a.lo, b.lo), min(a.hi, b.hi), gap, a.axes | b.axes)


def _max(a: Reach, b: Reach) -> Reach:
    gap = max(a.span, b.span) if _independent(a, b) else None
    return Reach(max(a.lo, b.lo), max(a.hi, b.hi), gap, a.axes | b.axes)


_RULES: dict[IndexOp, Callable[[Reach, Reach], Reach]] = {
    IndexOp.ADD: _add,
    IndexOp.SUB: _sub,
    IndexOp.MUL: _mul,
    IndexOp.FLOORDIV: _floordiv,
    IndexOp.FLOORMOD: _floormod,
    IndexOp.XOR: _xor,
    IndexOp.MIN: _min,
    IndexOp.MAX: _max,
}
