"""Arrays that are computed once and stored, rather than again wherever they are read.

An array is an expression for one element: whoever reads it at several places has that expression
several times, and a loop of Python over time steps has it as often as there are ways through the
steps. Where a function comes to many expressions, it is cut: the arrays that were made before and
are read behind a cut are stored. Cuts are where these have fewest elements, such as between the
steps of the loop; what is between two of them comes to no more than some expressions.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import Protocol

from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.equations import indices_of
from tile_api.arrays.equations.expressions import Expr, Indices, cast, computed_in, const
from tile_api.arrays.equations.places import Trace
from tile_api.arrays.equations.sizes import usual
from tile_core.dtypes import DType
from tile_core.errors import TooManyEquations

MOST_EXPRESSIONS = 400
"""A function of no more is captured as it is."""
MOST_ASKED = 5_000
"""Elements of arrays that are asked for until it is known to come to more."""
MOST_WITH_CUTS = 100_000
"""So many are asked for where arrays are stored: a function that asks for more is not cut."""
MOST_BETWEEN = 120
"""Expressions of an array, in terms of those that are stored."""
LOOP = 24
"""As many expressions is one that goes through a dimension: it may have a kernel of its own."""
FEW = 8
"""An array of no more, such as a view, is not worth storing."""


class Made(Protocol):
    """An array that is being captured: `tile_api.arrays.capturing.array.Array`."""

    number: int | None
    shape: tuple[int, ...]
    dtype: DType

    def at(self, indices: Indices) -> Expr:
        """Return the element at `indices`."""

    def computed_at(self, indices: Indices) -> Expr:
        """Return the element at `indices`, computed even if the array is stored."""

    def forget(self) -> None:
        """Ask anew for elements that were asked for."""


Definition = tuple[str, Made, Indices, Expr]
"""An array that is stored: its name, and its element at indices."""


def weight(*roots: Expr) -> int:
    """Return how many expressions there are, those more that go through a dimension."""
    return sum(LOOP if n.op in ("reduce", "scan") else 1 for n in eq.walk(*roots))


class Whole:
    """Nothing is stored, unless the function comes to too many expressions."""

    most = MOST_ASKED

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.asked = 0

    def begin(self, x: Made) -> None:
        """Do nothing with an array that is made."""

    def end(self, returned: Iterable[Made]) -> None:
        """Do nothing with the results."""

    def element(self, x: Made, indices: Indices) -> Expr:
        """Return an element of an array, as it is computed or loaded."""
        return self.computed(x, indices)

    def computed(self, x: Made, indices: Indices) -> Expr:
        """Return an element of an array, computed.

        Raises
        ------
        TooManyEquations
            If it is one of too many.
        """
        self.asked += 1
        if self.asked > self.most:
            raise self.trace.unrolled(f"asks for more than {self.most} elements of arrays")
        return x.computed_at(indices)

    def definitions(self) -> list[Definition]:
        """Return nothing."""
        return []

    def again(self, trace: Trace) -> Whole:
        """Return the same for another time that the function is captured."""
        return Whole(trace)


class Cut(Whole):
    """Some arrays are stored; those without elements have none that could be read."""

    most = MOST_WITH_CUTS

    def computed(self, x: Made, indices: Indices) -> Expr:
        """Return an element of an array, computed."""
        if 0 in x.shape:
            return const(0, computed_in(x.dtype))
        return super().computed(x, indices)


@dataclass(frozen=True)
class Reads:
    """What an array is made of.

    Parameters
    ----------
    arrays
        The numbers of the arrays that its elements are computed from.
    elements
        How many it has; infinite if it cannot be stored, as it depends on more than indices.
    """

    arrays: frozenset[int]
    elements: float


class Graph(Cut):
    """Which arrays are computed from which ones: all but views and the like are loads, by number.

    Attributes
    ----------
    reads
        Of each array, by its number.
    loaded
        The numbers of the arrays that are worth storing.
    """

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self.reads: dict[int, Reads] = {}
        self.loaded: set[int] = set()
        self._last: Made | None = None

    def begin(self, x: Made) -> None:
        """Look at the array before: what it is made of is known by now."""
        if x.number is not None:
            self.end(())
            self._last = x

    def end(self, returned: Iterable[Made]) -> None:
        """Look at the last array."""
        if self._last is not None:
            self._look_at(self._last)

    def element(self, x: Made, indices: Indices) -> Expr:
        """Return an element of an array, as it is loaded if it is worth storing."""
        if x.number is not None and x.number not in self.reads:
            self._look_at(x)
        if x.number in self.loaded:
            return eq.load(f"#{x.number}", indices, x.dtype)
        return self.computed(x, indices)

    def _look_at(self, x: Made) -> None:
        assert x.number is not None
        if x.number in self.reads:
            return
        indices = indices_of(x.shape)
        self.reads[x.number] = Reads(frozenset(), inf)
        try:
            found = self.computed(x, indices)
        except TooManyEquations:
            raise
        except Exception:  # it only stands for a type: nobody asks for an element
            return
        loads = (n.value for n in eq.walk(found) if n.op == "load")
        numbers = frozenset(int(name[1:]) for name in loads if name.startswith("#"))
        own = frozenset().union(*(i.free for i in indices))
        is_stored = found.free <= own and 0 not in x.shape and x.dtype.packing == 1
        elements = prod(map(usual, x.shape)) if is_stored else inf
        self.reads[x.number] = Reads(numbers, elements)
        if weight(found) > FEW:
            self.loaded.add(x.number)


class Search(Cut):
    """Finds the cuts of a function.

    Parameters
    ----------
    reads
        What each array is made of, by its number.

    Attributes
    ----------
    stored
        The numbers of the arrays that are read behind a cut.
    """

    def __init__(self, trace: Trace, reads: Mapping[int, Reads]) -> None:
        super().__init__(trace)
        self.reads = reads
        self.made: list[Made] = []
        self.stored: set[int] = set()
        self.weights: dict[int, int] = {}

    def begin(self, x: Made) -> None:
        """Remember an array."""
        self.made.append(x)

    def element(self, x: Made, indices: Indices) -> Expr:
        """Return an element of an array, as it is computed or loaded."""
        if x.number in self.stored:
            return eq.load(f"#{x.number}", indices, x.dtype)
        return self.computed(x, indices)

    def end(self, returned: Iterable[Made]) -> None:
        """Go through the arrays that the results are made of, in the order of their making."""
        known = {x.number: x for x in self.made if x.number is not None}
        if known.keys() != self.reads.keys():  # no two captures are alike, which is told later
            return
        results = {x.number for x in returned if x.number is not None}
        order = self._needed(results)
        last = self._last_readers(order, results)
        cut, k = -1, 0
        self._forget()
        while k < len(order):
            x = known[order[k]]
            self.weights[order[k]] = heavy = weight(x.at(indices_of(x.shape)))
            if heavy > MOST_BETWEEN and k - 1 > cut:
                found = self._best(order[: k + 1], cut, last)
                if found is not None:
                    cut, stored = found
                    self.stored |= stored
                    self._forget()
                    k = cut
            k += 1

    def _forget(self) -> None:
        for x in self.made:
            x.forget()

    def _needed(self, results: Collection[int]) -> list[int]:
        """Return the numbers of the arrays that results are made of."""
        seen = set(results)
        left = [*results]
        while left:
            new = self.reads[left.pop()].arrays - seen
            seen |= new
            left += new
        return sorted(seen)

    def _last_readers(self, order: Sequence[int], results: Collection[int]) -> dict[int, float]:
        last: dict[int, float] = {}
        for number in order:
            last |= dict.fromkeys(self.reads[number].arrays, number)
        return last | dict.fromkeys(results, inf)

    def _best(
        self, order: Sequence[int], cut: int, last: Mapping[int, float]
    ) -> tuple[int, set[int]] | None:
        """Return where to cut between the last cut and the last array, and what is stored then.

        Of those with fewest elements the last one is taken, not too soon after the last cut.
        """
        best: tuple[bool, float] | None = None
        found: tuple[int, set[int]] | None = None
        heaviest = 0
        live = [n for n in order[: cut + 1] if n not in self.stored and self.weights[n] > FEW]
        for k in range(cut + 1, len(order) - 1):
            number = order[k]
            heaviest = max(heaviest, self.weights[number])
            live.append(number)
            live = [n for n in live if last.get(n, -1) > number]
            new = {n for n in live if self.weights[n] > FEW}
            elements = sum((self.reads[n].elements for n in new), 0.0)
            if not new or elements == inf:
                continue
            is_late = 4 * heaviest >= MOST_BETWEEN
            if best is None or (not is_late, elements) <= best:
                best, found = (not is_late, elements), (k, new)
        return found


class Materialised(Cut):
    """The arrays that are stored while a function is captured.

    Parameters
    ----------
    names
        Of the tensors, by the numbers of the arrays.
    """

    def __init__(self, trace: Trace, names: Mapping[int, str]) -> None:
        super().__init__(trace)
        self.names = names
        self.met: dict[int, Made] = {}

    def element(self, x: Made, indices: Indices) -> Expr:
        """Return an element of an array, as it is computed or loaded."""
        if x.number is None or x.number not in self.names:
            return self.computed(x, indices)
        self.met[x.number] = x
        return eq.load(self.names[x.number], indices, x.dtype)

    def definitions(self) -> list[Definition]:
        """Return the arrays that are loaded, each after those whose elements it loads."""
        made: dict[int, Definition] = {}
        while left := [number for number in self.met if number not in made]:
            for number in left:
                x = self.met[number]
                indices = indices_of(x.shape)
                found = self.computed(x, indices)
                are_floats = x.dtype.is_float and found.dtype.is_float
                element = cast(found, computed_in(x.dtype) if are_floats else x.dtype)
                made[number] = self.names[number], x, indices, element
        return [made[number] for number in sorted(made)]

    def again(self, trace: Trace) -> Materialised:
        """Return the same for another time that the function is captured."""
        return Materialised(trace, self.names)


def named(stored: Collection[int], taken: Collection[str]) -> dict[int, str]:
    """Return names for the tensors of arrays, by their numbers; no other tensors have them."""
    free = (name for k in itertools.count() if (name := f"s{k}") not in taken)
    return dict(zip(sorted(stored), free, strict=False))
