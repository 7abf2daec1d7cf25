"""How rows are sorted: the one place where that is chosen by the target.

On a GPU a block holds a row, and all its threads take the steps of the network together. Rows that
no block holds are cut into runs, which are sorted each: an element comes where the number of those
before it says, and that number is found by a binary search in each run. On a CPU one thread sorts
a row by the digits of its elements, the last one first; few elements are sorted by the network
there, many rows side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.dims import variable_of
from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import Expr, const, make, rebuild, walk
from tile_api.arrays.equations.recurrence import Recurrence, Steps, recurrence, steps_of
from tile_api.arrays.equations.sorting_network import is_before, sorting_steps, steps_of_network
from tile_api.arrays.equations.substitution import substituted

MOST_BYTES = 1 << 15
"""Of what a network starts from: a block holds as many after a step, too."""
FEWEST_BY_DIGITS = 128
"""Elements of a row whose digits are counted: the counters of fewer take more time."""
MOST_DIGIT_BITS = 11
"""The counters of as many bits stay close to a core of a CPU."""


@dataclass(frozen=True)
class Digits:
    """The digits of what is sorted.

    Parameters
    ----------
    first, bits
        The bits of elements that tell their order; the last one is their sign.
    width
        Bits of a digit.
    """

    first: int
    bits: int
    width: int

    @property
    def count(self) -> int:
        """How many digits there are: each is one pass over all elements."""
        return -(-self.bits // self.width)

    @property
    def flipped(self) -> int:
        """The bits that differ from those of numbers without sign in the same order."""
        return -(1 << self.first + self.bits - 1)


def digits_of(of: Recurrence) -> Digits:
    """Return the digits by which a recurrence is sorted: the fewer elements, the shorter ones."""
    assert of.sorted_by is not None
    first, bits = of.sorted_by
    size = length_of(of)

    def work(digits: Digits) -> int:
        return digits.count * (12 * size + (1 << digits.width))

    return min((Digits(first, bits, w) for w in range(4, MOST_DIGIT_BITS + 1)), key=work)


def length_of(of: Recurrence) -> int:
    """Return the elements of a row that is sorted."""
    return of.carried[0][0][1]


def with_sorts(outputs: Sequence[Output], *, is_serial: bool) -> list[Output]:
    """Return outputs in terms of the sorts of a target.

    Parameters
    ----------
    is_serial
        Whether a block is one thread.
    """
    known: dict[Expr, Expr] = {}
    runs: dict[Steps, _Runs] = {}
    for n in walk(*(o.element for o in outputs)):
        if n.op != "scan" or n.value.of.sorted_by is None:
            continue
        made = rebuild(n, known)
        steps, read = steps_of(made), made.value
        size, longest = length_of(steps.of), MOST_BYTES // (8 * len(steps.steps))
        if is_serial and size >= FEWEST_BY_DIGITS:
            known[n] = made
        elif size <= longest:
            plain = replace(steps, of=replace(steps.of, sorted_by=None))
            known[n] = plain.value(read.carry, made.args[0], made.args[1 : read.rank])
        else:
            if steps not in runs:
                runs[steps] = _Runs(steps, longest)
            place, *row = made.args[1 : read.rank]
            known[n] = runs[steps].at(read.carry, row, place)
    return [replace(o, element=rebuild(o.element, known)) for o in outputs] if known else [*outputs]


class _Runs:
    """Rows cut into runs that are sorted each.

    Parameters
    ----------
    length
        Elements of a run, a power of two; those beyond the end of a row come last.
    """

    def __init__(self, steps: Steps, length: int) -> None:
        (name, size), *rows = steps.of.carried[0]
        self._length, self._count = length, -(-size // length)
        shape = [*(n for _, n in rows), self._count, length]
        of = recurrence(steps_of_network(length), [shape] * len(steps.steps))
        *row, run, place = of.indices(0)
        position = eq.add(eq.multiply(const(length), run), place)
        own = {v: i for (v, _), i in zip(rows, row, strict=True) if v}
        is_there, last = make("lt", position, const(size)), const((1 << 63) - 1)
        starts = (substituted(x, {name: position, **own}) for x in steps.starts)
        self._steps = Steps(
            of, tuple(eq.where(is_there, x, last) for x in starts), sorting_steps(of, len(row) + 1)
        )

    def at(self, carry: int, row: Sequence[Expr], place: Expr) -> Expr:
        """Return one of the values of the element that comes at a place."""
        size, length = self._count * self._length, const(self._length)
        free = _free((*row, place))
        n = eq.index(variable_of(size, free), size)
        mine = self._read(row, *(eq.integer_part(op, n, length) for op in ("floordiv", "mod")))
        run = eq.index(variable_of(self._count, free | n.free), self._count)
        rank = eq.reduce("sum", run.value[0], self._count, self._before(row, run, mine))
        body = eq.where(make("eq", rank, place), mine[carry], const(0))
        return eq.reduce("sum", n.value[0], size, body)

    def _read(self, row: Sequence[Expr], run: Expr, at: Expr) -> tuple[Expr, ...]:
        of, indices = self._steps.of, (*row, run, at)
        values = range(len(self._steps.steps))
        return tuple(self._steps.value(k, const(of.last), indices) for k in values)

    def _before(self, row: Sequence[Expr], run: Expr, mine: tuple[Expr, ...]) -> Expr:
        """Return how many elements of a run come before another element."""
        found: Expr = const(0)
        step = self._length
        while step > 1:
            step //= 2
            there = self._read(row, run, eq.add(found, const(step - 1)))
            found = eq.add(found, eq.where(is_before(there, mine), const(step), const(0)))
        is_last = is_before(self._read(row, run, found), mine)
        return eq.add(found, eq.where(is_last, const(1), const(0)))


def _free(roots: Iterable[Expr]) -> frozenset[str]:
    return frozenset().union(*(x.free for x in roots))
