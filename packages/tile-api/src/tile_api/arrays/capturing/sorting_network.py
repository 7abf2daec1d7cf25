"""Positions of a row's elements in ascending order, by Batcher's bitonic network.

A step compares each element with one a power of two away, and keeps the lesser or the greater of
the two: ``log2(n) * (log2(n) + 1) / 2`` steps, whatever the elements are. Elements of up to 32 bits
stand with their positions in one integer, so that equal ones keep their order, and a step is a
minimum and a maximum. Rows that no block holds are cut into runs. (K. E. Batcher, Sorting networks
and their applications, AFIPS 1968.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.dims import variable_of
from tile_api.arrays.equations.expressions import INDEX, Expr, const, make
from tile_api.arrays.equations.recurrence import Steps, recurrence
from tile_core.dtypes import dtype_of

MOST_BYTES = 1 << 15
"""Of what a step starts from: a block holds as many after the step, too."""

Read = Callable[[Sequence[Expr], Expr, Expr], tuple[Expr, ...]]
"""What stands for the element at a place of a run of a row: integers, compared one by one."""


def takes(x: Array) -> bool:
    """Tell whether a block holds a row; rows are the last dimension."""
    return _whole(x) <= _longest(x)


def steps_of(x: Array) -> int:
    """Return how many steps sort a row."""
    return steps_of_network(_whole(x))


def _whole(x: Array) -> int:
    return 1 << (int(x.shape[-1]) - 1).bit_length()


def _longest(x: Array) -> int:
    return MOST_BYTES // (8 * (1 + _is_apart(x)))


def positions(x: Array) -> Callable[[Sequence[Expr], Expr], Expr]:
    """Return where the element of a row is that comes at a place; rows are the last dimension.

    Equal elements keep their order, and what is no number is last.
    """
    read = _sorted_runs(x, 1, _whole(x))
    return lambda row, at: _position(read(row, const(0), at))


class Runs:
    """Rows that no block holds, as runs that are sorted each.

    An element comes where the number of those before it says: in its own run and in each other one
    that number is found by a binary search.

    Attributes
    ----------
    size
        Elements of all runs of a row; those beyond its end come last.
    """

    def __init__(self, x: Array) -> None:
        self._length = _longest(x)
        self._count = -(-int(x.shape[-1]) // self._length)
        self._read = _sorted_runs(x, self._count, self._length)
        self.size = self._count * self._length

    def at(self, row: Sequence[Expr], n: Expr) -> tuple[Expr, Expr]:
        """Return the position of element `n` of the runs in its row, and where it comes."""
        length = const(self._length)
        run, place = (eq.integer_part(op, n, length) for op in ("floordiv", "mod"))
        mine = self._read(row, run, place)
        free = frozenset[str]().union(*(i.free for i in (*row, n)))
        run = eq.index(variable_of(self._count, free), self._count)
        before = self._before(row, run, mine)
        return _position(mine), eq.reduce("sum", run.value[0], self._count, before)

    def _before(self, row: Sequence[Expr], run: Expr, mine: tuple[Expr, ...]) -> Expr:
        """Return how many elements of a run come before another element."""
        found: Expr = const(0)
        step = self._length
        while step > 1:
            step //= 2
            there = self._read(row, run, eq.add(found, const(step - 1)))
            found = eq.add(found, eq.where(_is_before(there, mine), const(step), const(0)))
        is_last = _is_before(self._read(row, run, found), mine)
        return eq.add(found, eq.where(is_last, const(1), const(0)))


def _sorted_runs(x: Array, count: int, length: int) -> Read:
    """Return what reads the elements of rows that are cut into runs, of which each is sorted."""
    is_apart, is_cut = _is_apart(x), count > 1
    # Steps go through many short rows side by side; runs are searched, each for itself.
    shape = [*x.shape[:-1], count, length] if is_cut else [length, *x.shape[:-1]]
    of = recurrence(steps_of_network(length), [shape] * (1 + is_apart))
    rest = of.indices(0)
    (*row, run, place) = rest if is_cut else (*rest[1:], const(0), rest[0])

    def indices(row: Sequence[Expr], run: Expr, at: Expr) -> tuple[Expr, ...]:
        return (*row, run, at) if is_cut else (at, *row)

    position = eq.add(eq.multiply(const(length), run), place)
    partner, is_lesser = _pairs(of.step, place, length)
    is_there = make("lt", position, const(int(x.shape[-1])))
    key, last = _key(x.at((*row, position))), const((1 << 63) - 1)
    one, other = (
        tuple(
            make("carry", *indices(row, run, at), value=(of.token, k), dtype=INDEX)
            for k in range(1 + is_apart)
        )
        for at in (place, partner)
    )
    if is_apart:
        starts: tuple[Expr, ...] = (eq.where(is_there, key, last), position)
        is_kept = make("eq", _is_before(one, other), is_lesser)
        kept = tuple(eq.where(is_kept, *pair) for pair in zip(one, other, strict=True))
    else:
        packed = make("bitor", make("shl", key, const(32)), position)
        starts = (eq.where(is_there, packed, last),)
        least, most = (make(op, *one, *other) for op in ("minimum", "maximum"))
        kept = (eq.where(is_lesser, least, most),)
    steps = Steps(of, starts, kept)

    def read(row: Sequence[Expr], run: Expr, at: Expr) -> tuple[Expr, ...]:
        at_last = indices(row, run, at)
        return tuple(steps.value(k, const(of.last), at_last) for k in range(1 + is_apart))

    return read


def _is_before(one: tuple[Expr, ...], other: tuple[Expr, ...]) -> Expr:
    if len(one) == 1:
        return make("lt", *one, *other)
    same = make("eq", one[0], other[0])
    return make("or", make("lt", one[0], other[0]), make("and", same, make("lt", one[1], other[1])))


def _position(element: tuple[Expr, ...]) -> Expr:
    """Return where in its row an element is that was read from a run."""
    if len(element) > 1:
        return element[1]
    return make("bitand", *element, const((1 << 32) - 1))


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
