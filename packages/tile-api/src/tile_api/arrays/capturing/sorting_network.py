"""Positions of a row's elements in ascending order, by Batcher's bitonic network.

A step compares each element with one a power of two away, and keeps the lesser or the greater of
the two: ``log2(n) * (log2(n) + 1) / 2`` steps, whatever the elements are. Elements of up to 32 bits
stand with their positions in one integer, so that equal ones keep their order, and a step is a
minimum and a maximum. (K. E. Batcher, Sorting networks and their applications, AFIPS 1968.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.expressions import INDEX, Expr, const, make
from tile_api.arrays.equations.recurrence import Steps, recurrence
from tile_core.dtypes import dtype_of

MOST_BYTES = 1 << 15
"""Of what a step starts from: a block holds as many after the step, too."""


def takes(x: Array) -> bool:
    """Tell whether a block holds a row; rows are the last dimension."""
    return _whole(x) * 8 * (1 + _is_apart(x)) <= MOST_BYTES


def _whole(x: Array) -> int:
    return 1 << (int(x.shape[-1]) - 1).bit_length()


def positions(x: Array) -> Callable[[Sequence[Expr], Expr], Expr]:
    """Return where the element of a row is that comes at a place; rows are the last dimension.

    Equal elements keep their order, and what is no number is last.
    """
    size, whole = int(x.shape[-1]), _whole(x)
    of = recurrence(steps_of_network(whole), [[whole, *x.shape[:-1]]] * (1 + _is_apart(x)))
    place, *row = of.indices(0)
    partner, is_lesser = _pairs(of.step, place, whole)
    is_there = make("lt", place, const(size))
    key = _key(x.at((*row, place)))
    last = const((1 << 63) - 1)
    if not _is_apart(x):
        packed = make("bitor", make("shl", key, const(32)), place)
        one, other = (
            make("carry", at, *row, value=(of.token, 0), dtype=INDEX) for at in (place, partner)
        )
        least, most = make("minimum", one, other), make("maximum", one, other)
        steps = Steps(of, (eq.where(is_there, packed, last),), (eq.where(is_lesser, least, most),))
        return lambda row, at: make(
            "bitand", steps.value(0, const(of.last), (at, *row)), const((1 << 32) - 1)
        )
    (one, mine), (other, theirs) = (
        [make("carry", at, *row, value=(of.token, k), dtype=INDEX) for k in range(2)]
        for at in (place, partner)
    )
    same = make("eq", one, other)
    is_before = make("or", make("lt", one, other), make("and", same, make("lt", mine, theirs)))
    is_kept = make("eq", is_before, is_lesser)
    steps = Steps(
        of, (eq.where(is_there, key, last), place),
        (eq.where(is_kept, one, other), eq.where(is_kept, mine, theirs)),
    )  # fmt: skip
    return lambda row, at: steps.value(1, const(of.last), (at, *row))


def steps_of_network(size: int) -> int:
    """Return how many steps sort a power of two of elements.

    Examples
    --------
    >>> steps_of_network(8)
    6
    """
    levels = size.bit_length() - 1
    return levels * (levels + 1) // 2


def _is_apart(x: Array) -> bool:
    """Tell whether elements and positions are too long for one integer."""
    return x.dtype.bits > 32


def _pairs(step: Expr, place: Expr, size: int) -> tuple[Expr, Expr]:
    """Return what an element is compared with in a step, and whether the lesser one stays there.

    Level n merges runs of ``2 ** n`` elements in n steps, at distances from half a run down to 1;
    every second run descends, so that two of them are one that ascends, and then descends.
    """
    level: Expr = const(0)
    begun: Expr = const(0)
    for n in range(1, size.bit_length() - 1):
        is_on = make("le", const(n * (n + 1) // 2), step)
        level = eq.add(level, eq.cast(is_on, INDEX))
        begun = eq.where(is_on, const(n * (n + 1) // 2), begun)
    distance = make("shl", const(1), eq.subtract(eq.add(level, begun), step))
    partner = make("bitxor", place, distance)
    ascends = make("eq", make("bitand", place, make("shl", const(2), level)), const(0))
    return partner, make("eq", ascends, make("lt", place, partner))


def _key(x: Expr) -> Expr:
    """Return an integer that is as much less than another one as `x` is less than it."""
    if not x.dtype.is_float:
        key = eq.cast(x, INDEX)
        if x.dtype == "uint64":
            return make("bitxor", key, const(-(1 << 63)))
        return eq.subtract(key, const(1 << 31)) if x.dtype == "uint32" else key
    most = (1 << x.dtype.bits - 1) - 1
    kind = dtype_of(f"int{x.dtype.bits}")
    bits = make("bits", eq.where(make("eq", x, const(0.0, x.dtype)), const(0.0, x.dtype), x),
                dtype=kind)  # fmt: skip
    ordered = eq.where(make("lt", bits, const(0, kind)), make("bitxor", bits, const(most, kind)),
                       bits)  # fmt: skip
    return eq.cast(eq.where(make("eq", x, x), ordered, const(most, kind)), INDEX)
