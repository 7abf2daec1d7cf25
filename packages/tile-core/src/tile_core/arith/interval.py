"""Interval arithmetic: which integers an operation can give, from those of its operands.

The one table that every range analysis reads. Arithmetic is that of unbounded integers; what a
type makes of a result that it cannot hold is for the caller to say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tile_core.ir.expr import BinaryOp
from tile_core.records import dataclass

End: TypeAlias = "int | None"
Ends: TypeAlias = "tuple[End, End]"
"""The smallest and the largest value, both included; None is unbounded."""

UNBOUNDED: Ends = (None, None)
_WIDEST_SHIFT = 64


@dataclass(frozen=True, slots=True)
class Interval:
    """All integers from `low` to `high`, both included; None is unbounded."""

    low: int | None
    high: int | None

    @property
    def ends(self) -> Ends:
        """Both ends, as interval arithmetic takes them."""
        return self.low, self.high

    @property
    def is_negative(self) -> bool:
        """Whether every value is below zero."""
        return self.high is not None and self.high < 0

    @property
    def is_natural(self) -> bool:
        """Whether no value is below zero."""
        return self.low is not None and self.low >= 0


ANYTHING = Interval(None, None)


def combine(op: BinaryOp, a: Ends, b: Ends) -> Ends:
    """Return bounds of ``x op y`` for all ``x`` within `a` and ``y`` within `b`.

    Every value is within them; they are attained wherever both operands are finite, for all
    operations but bitwise ones and remainders. Operations that are not arithmetic of integers, and
    divisors that may not be positive, give `UNBOUNDED`; so do operands without values, such as
    the counter of a loop that never runs.

    Examples
    --------
    >>> combine(BinaryOp.BITXOR, (0, 63), (5, 5))
    (0, 63)
    >>> combine(BinaryOp.SHR, (0, None), (2, 2))
    (0, None)
    """
    rule = _RULES.get(op)
    return UNBOUNDED if rule is None or _is_empty(a) or _is_empty(b) else rule(a, b)


def _is_empty(a: Ends) -> bool:
    low, high = a
    return low is not None and high is not None and low > high


def negated(a: Ends) -> Ends:
    """Return bounds of ``-x``.

    >>> negated((None, 3))
    (-3, None)
    """
    low, high = a
    return (None if high is None else -high, None if low is None else -low)


def hull(a: Ends, b: Ends) -> Ends:
    """Return bounds of what is within either.

    >>> hull((0, 3), (2, None))
    (0, None)
    """
    low = None if a[0] is None or b[0] is None else min(a[0], b[0])
    high = None if a[1] is None or b[1] is None else max(a[1], b[1])
    return low, high


def intersection(a: Ends, b: Ends) -> Ends:
    """Return bounds of what is within both.

    >>> intersection((0, 3), (2, None))
    (2, 3)
    """
    low = max((end for end in (a[0], b[0]) if end is not None), default=None)
    return low, min((end for end in (a[1], b[1]) if end is not None), default=None)


def is_natural(a: Ends) -> bool:
    """Whether no value is below zero."""
    return a[0] is not None and a[0] >= 0


def _add(a: Ends, b: Ends) -> Ends:
    low = None if a[0] is None or b[0] is None else a[0] + b[0]
    high = None if a[1] is None or b[1] is None else a[1] + b[1]
    return low, high


def _mul(a: Ends, b: Ends) -> Ends:
    if a[0] is not None and a[1] is not None and b[0] is not None and b[1] is not None:
        ends = (a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1])
        return min(ends), max(ends)
    if a == (0, 0) or b == (0, 0):
        return 0, 0
    for x, y in ((a, b), (b, a)):  # the sign of one operand is known, and an end of the other
        if is_natural(x):
            return _scaled(x, y)
        if is_natural(negated(x)):
            return negated(_scaled(negated(x), y))
    return UNBOUNDED


def _scaled(a: Ends, b: Ends) -> Ends:
    """Return bounds of a product with a first operand that is not negative."""

    def lowest(end: End) -> End:
        if end is None:
            return None
        by = a[0] if end >= 0 else a[1]
        return 0 if end == 0 else None if by is None else end * by

    low, high = lowest(b[0]), lowest(None if b[1] is None else -b[1])
    return low, None if high is None else -high


def _floordiv(a: Ends, b: Ends) -> Ends:
    least, most = b
    if least is None or least <= 0:
        return UNBOUNDED

    def lowest(end: End) -> End:
        if end is None or end < 0:
            return None if end is None else end // least
        return 0 if most is None else end // most

    def highest(end: End) -> End:
        if end is None or end >= 0:
            return None if end is None else end // least
        return -1 if most is None else end // most

    return lowest(a[0]), highest(a[1])


def _floormod(a: Ends, b: Ends) -> Ends:
    low, high = a
    least, most = b
    if least is None or least <= 0:
        return UNBOUNDED
    if least == most and low is not None and high is not None and low // least == high // least:
        return low % least, high % least
    largest = None if most is None else most - 1
    if high is not None and is_natural(a):
        if high < least:  # nothing is divided
            return low, high
        largest = high if largest is None else min(high, largest)
    return 0, largest


def _min(a: Ends, b: Ends) -> Ends:
    return hull(a, b)[0], intersection(a, b)[1]


def _max(a: Ends, b: Ends) -> Ends:
    return negated(_min(negated(a), negated(b)))


def _bit_and(a: Ends, b: Ends) -> Ends:
    natural = [x for x in (a, b) if is_natural(x)]
    if natural:
        return 0, min((x[1] for x in natural if x[1] is not None), default=None)
    low, _ = _of_as_many_bits(a, b)
    return low, None if a[1] is None or b[1] is None else max(a[1], b[1])


def _of_as_many_bits(a: Ends, b: Ends) -> Ends:
    """Return what numbers can be that have no more bits than any value of two, and a sign."""
    if a[0] is None or a[1] is None or b[0] is None or b[1] is None:
        return 0 if is_natural(a) and is_natural(b) else None, None
    bits: int = max((end if end >= 0 else ~end).bit_length() for end in (*a, *b) if end is not None)
    return (0 if is_natural(a) and is_natural(b) else -(1 << bits)), (1 << bits) - 1


def _bit_or(a: Ends, b: Ends) -> Ends:
    low, high = _of_as_many_bits(a, b)
    if a[0] is not None and b[0] is not None:
        low = max(a[0], b[0]) if is_natural(a) and is_natural(b) else min(a[0], b[0])
    return low, high


def _bit_xor(a: Ends, b: Ends) -> Ends:
    if a[0] == a[1] and b[0] == b[1] and a[0] is not None and b[0] is not None:
        return a[0] ^ b[0], a[0] ^ b[0]
    return _of_as_many_bits(a, b)


def _powers(b: Ends) -> Ends | None:
    """Return bounds of ``2**y``, if every `y` is one that a type can be shifted by."""
    if b[0] is None or b[1] is None or b[0] < 0 or b[1] >= _WIDEST_SHIFT:
        return None
    return 1 << b[0], 1 << b[1]


def _shl(a: Ends, b: Ends) -> Ends:
    by = _powers(b)
    return UNBOUNDED if by is None else _mul(a, by)


def _shr(a: Ends, b: Ends) -> Ends:
    by = _powers(b)
    return UNBOUNDED if by is None else _floordiv(a, by)


def _towards_zero(rule: Callable[[Ends, Ends], Ends]) -> Callable[[Ends, Ends], Ends]:
    """Return what `rule`, of a quotient rounded down, is where it is rounded towards zero."""

    def bounds(a: Ends, b: Ends) -> Ends:
        positive, opposite = (intersection(x, (0, None)) for x in (a, negated(a)))
        if _is_empty(positive):
            return negated(rule(opposite, b))
        if _is_empty(opposite):
            return rule(positive, b)
        return hull(rule(positive, b), negated(rule(opposite, b)))

    return bounds


_RULES: dict[BinaryOp, Callable[[Ends, Ends], Ends]] = {
    BinaryOp.ADD: _add,
    BinaryOp.SUB: lambda a, b: _add(a, negated(b)),
    BinaryOp.MUL: _mul,
    BinaryOp.FLOORDIV: _floordiv,
    BinaryOp.FLOORMOD: _floormod,
    BinaryOp.TRUNCDIV: _towards_zero(_floordiv),
    BinaryOp.TRUNCMOD: _towards_zero(_floormod),
    BinaryOp.MIN: _min,
    BinaryOp.MAX: _max,
    BinaryOp.BITAND: _bit_and,
    BinaryOp.BITOR: _bit_or,
    BinaryOp.BITXOR: _bit_xor,
    BinaryOp.SHL: _shl,
    BinaryOp.SHR: _shr,
}


def compare(op: BinaryOp, a: Ends, b: Ends) -> Ends:
    """Return bounds of a comparison, or of a combination of two truth values: 0 is false.

    >>> compare(BinaryOp.LT, (0, 3), (4, None))
    (1, 1)
    """
    rule = _COMPARISONS.get(op)
    return (0, 1) if rule is None or _is_empty(a) or _is_empty(b) else rule(a, b)


def _decided(yes: bool, no: bool) -> Ends:
    return (1, 1) if yes else (0, 0) if no else (0, 1)


def _below(a: Ends, b: Ends) -> bool:
    return a[1] is not None and b[0] is not None and a[1] < b[0]


def _up_to(a: Ends, b: Ends) -> bool:
    return a[1] is not None and b[0] is not None and a[1] <= b[0]


def _apart(a: Ends, b: Ends) -> bool:
    return _below(a, b) or _below(b, a)


def _equal(a: Ends, b: Ends) -> bool:
    return a[0] is not None and a[0] == a[1] == b[0] == b[1]


_COMPARISONS: dict[BinaryOp, Callable[[Ends, Ends], Ends]] = {
    BinaryOp.LT: lambda a, b: _decided(_below(a, b), _up_to(b, a)),
    BinaryOp.LE: lambda a, b: _decided(_up_to(a, b), _below(b, a)),
    BinaryOp.GT: lambda a, b: _decided(_below(b, a), _up_to(a, b)),
    BinaryOp.GE: lambda a, b: _decided(_up_to(b, a), _below(a, b)),
    BinaryOp.EQ: lambda a, b: _decided(_equal(a, b), _apart(a, b)),
    BinaryOp.NE: lambda a, b: _decided(_apart(a, b), _equal(a, b)),
    BinaryOp.AND: _min,
    BinaryOp.OR: _max,
}

FLIPPED = {BinaryOp.GT: BinaryOp.LT, BinaryOp.GE: BinaryOp.LE}
"""The comparison of ``b`` and ``a`` that says the same as one of ``a`` and ``b``."""
NEGATED = {
    BinaryOp.LT: BinaryOp.GE,
    BinaryOp.LE: BinaryOp.GT,
    BinaryOp.GT: BinaryOp.LE,
    BinaryOp.GE: BinaryOp.LT,
    BinaryOp.EQ: BinaryOp.NE,
    BinaryOp.NE: BinaryOp.EQ,
}
"""The comparison that holds where another does not."""
