"""Maps of indices turned round: at which values of its variables a load reads a given element.

``x[2 i + 1]`` reads element `u` at ``i = (u - 1) // 2``, if that has no remainder and is an index;
``x[l // m, l % m]`` reads ``u, w`` at ``l = m u + w``. What several values of a variable read is
left to a sum over it: ``x[i // 3]`` reads `u` at ``i = 3 u + t``, ``x[i + r]`` at ``i = u - r``.
Where windows overlap, ``x[2 i + r]`` reads ``2 u`` at ``i = u - t, r = 2 t``, and ``2 u + 1`` at
``i = u - t, r = 2 t + 1``: elements of each remainder have windows of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.dims import variable_of
from tile_api.arrays.equations.expressions import Expr, const, extents_of, integer_part, make
from tile_api.arrays.equations.substitution import substituted, unused
from tile_api.arrays.reductions.algebra import expression, polynomial


@dataclass
class Inverse:
    """Where a load reads an element.

    Parameters
    ----------
    values
        Of the variables of the load, in terms of the indices of the element and of `summed`.
    conditions
        What holds where the element is read at all.
    equal
        What holds beside, of indices that are elements of arrays.
    summed
        Variables with their extents: all values of these read the element.
    """

    values: dict[str, Expr] = field(default_factory=dict)
    conditions: list[Expr] = field(default_factory=list)
    equal: list[Expr] = field(default_factory=list)
    summed: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Affine:
    """A whole number: a sum of multiples of variables, and a constant."""

    by_name: dict[str, int]
    constant: int


def inverse(indices: Sequence[Expr], element: Sequence[Expr]) -> Inverse:
    """Return where a load with `indices` reads the element at the indices `element`."""
    return _Solver(indices, element).solved()


class _Solver:
    def __init__(self, indices: Sequence[Expr], element: Sequence[Expr]) -> None:
        self.found = Inverse()
        self.extents = extents_of(indices)
        self.taken = frozenset().union(*(u.free for u in element))
        free = (n for i in indices for n in sorted(i.free))
        self.free = {n: None for n in free if n in self.extents}  # and not what a step carries
        self.indices = indices
        self.element = element

    def solved(self) -> Inverse:
        lines, others = self._lines()
        while lines:
            lines.sort(key=lambda line: len(self._unknown(line[0])))
            self._solve(*lines.pop(0))
        for name in self.free:
            if name not in self.found.values:
                self.found.values[name] = self._summed(name, self.extents[name])
        for index, u in others:
            self.found.equal.append(make("eq", substituted(index, self.found.values), u))
        return self.found

    def _summed(self, name: str, extent: int) -> Expr:
        """Return a variable that is summed over."""
        fresh = unused(name, self.taken | set(self.found.summed))
        self.found.summed[fresh] = extent
        return eq.index(fresh, extent)

    def _holds(self, condition: Expr) -> None:
        if condition not in self.found.conditions:
            self.found.conditions.append(condition)

    # -- equations ---------------------------------------------------------------------------

    def _lines(self) -> tuple[list[tuple[_Affine, Expr]], list[tuple[Expr, Expr]]]:
        """Return affine forms with their values, and indices that are none with theirs."""
        lines: list[tuple[_Affine, Expr]] = []
        others: list[tuple[Expr, Expr]] = []
        groups: dict[Expr, list[tuple[int, int | None, Expr, Expr]]] = {}
        for index, u in zip(self.indices, self.element, strict=True):
            line, step, size = _digit(index)
            if (step, size) == (1, None):
                form = _affine(index)
                if form is None:
                    others.append((index, u))
                else:
                    lines.append((form, u))
            else:
                groups.setdefault(line, []).append((step, size, index, u))
        for line, digits in groups.items():
            form = _affine(line)
            value = None if form is None else self._joined(line, digits)
            if form is None or value is None:
                others += [(index, u) for _, _, index, u in digits]
            else:
                lines.append((form, value))
        return lines, others

    def _joined(
        self, line: Expr, digits: list[tuple[int, int | None, Expr, Expr]]
    ) -> Expr | None:  # fmt: skip
        """Return the number of which `digits` are known; what they leave open is summed over."""
        low, high = range_of(line)
        digits = sorted(digits, key=lambda digit: -digit[0])
        for (step, _, *_), (lower, size, *_) in pairwise(digits):
            if size is None or step != lower * size:
                return None
        if low < 0:
            return None
        for _, size, _, u in digits:
            if size is not None and range_of(u)[1] >= size:
                self._holds(make("lt", u, const(size)))
        (first, size, *_), last = digits[0], digits[-1][0]
        value: Expr = const(0)
        if size is not None and high >= first * size:
            if len(digits) == 1 and first == 1 and high - low < size:
                return _rotated(digits[0][3], low, size)
            more = self._summed(
                variable_of(high // (first * size) + 1, frozenset()), high // (first * size) + 1
            )
            value = eq.multiply(const(first * size), more)
        for step, _, _, u in digits:
            value = eq.add(value, eq.multiply(const(step), u))
        if last > 1:
            value = eq.add(value, self._summed(variable_of(last, frozenset()), last))
        return value

    # -- solutions ---------------------------------------------------------------------------

    def _unknown(self, line: _Affine) -> list[str]:
        return [name for name in line.by_name if name not in self.found.values]

    def _solve(self, line: _Affine, value: Expr) -> None:
        """Solve for the variables of an affine form, or for one of them."""
        unknown = self._unknown(line)
        rest = eq.subtract(value, const(line.constant))
        for name, factor in line.by_name.items():
            if name not in unknown:
                known = self.found.values[name]
                rest = eq.subtract(rest, eq.multiply(const(factor), known))
        digits = sorted(unknown, key=lambda name: -abs(line.by_name[name]))
        if not _is_injective(line, digits, self.extents):
            keep = _longest(unknown, self.extents)
            for name in unknown:
                if name != keep:
                    other = self.found.values[name] = self._tap(name, line, keep, rest)
                    rest = eq.subtract(rest, eq.multiply(const(line.by_name[name]), other))
            digits = [keep]
        for name in digits:  # those with a negative factor are counted from their end
            if line.by_name[name] < 0:
                rest = eq.add(rest, const(-line.by_name[name] * (self.extents[name] - 1)))
        for name in digits:
            rest = self._digit(name, line.by_name[name], rest)
        if rest.op != "const" or rest.value:
            self._holds(make("eq", rest, const(0)))

    def _tap(self, name: str, line: _Affine, keep: str, rest: Expr) -> Expr:
        """Return a variable that is summed over: of its values those that leave whole steps."""
        factor, step, size = line.by_name[name], abs(line.by_name[keep]), self.extents[name]
        parts = _divided(rest, step) if abs(factor) == 1 < step else None
        if parts is None:
            return self._summed(name, size)
        first = parts[1] * factor % step
        count = len(range(first, size, step))
        if not count:
            self._holds(const(False, "bool"))
            return const(0)
        other = self._summed(variable_of(count, frozenset()), count) if count > 1 else const(0)
        return eq.add(eq.multiply(const(step), other), const(first))

    def _digit(self, name: str, factor: int, rest: Expr) -> Expr:
        """Find a variable, the digit with the largest factor; return the rest."""
        size, step = self.extents[name], const(abs(factor))
        parts = _divided(rest, abs(factor)) if abs(factor) > 1 else None
        if parts is not None:
            found, rest = parts[0], const(parts[1])
        else:
            found, rest = integer_part("floordiv", rest, step), integer_part("mod", rest, step)
        low, high = range_of(found)
        if low < 0:
            self._holds(make("le", const(0), found))
        if high >= size:
            self._holds(make("lt", found, const(size)))
        self.found.values[name] = found if factor > 0 else eq.subtract(const(size - 1), found)
        return rest


def _divided(x: Expr, step: int) -> tuple[Expr, int] | None:
    """Return quotient and remainder of a whole number; None if the remainder is not known."""
    parts, rest, whole = polynomial(x), 0, dict[tuple[Expr, ...], float]()
    for atoms, c in parts.items():
        quotient, more = divmod(int(c), step)
        if atoms and more:
            return None
        rest += more
        whole[atoms] = float(quotient)
    return expression({a: c for a, c in whole.items() if c}, "int64"), rest


def step_of(indices: Iterable[Expr]) -> int:
    """Return the step between windows that elements of a dimension are read in, else 1.

    Of windows that overlap or have one element: a quotient tells the only one of others.
    """
    steps = set()
    for x in indices:
        form, extents = _affine(x), extents_of([x])
        if form is None or not form.by_name:
            return 1
        names = sorted(form.by_name, key=lambda name: -abs(form.by_name[name]))
        is_digits = len(names) > 1 and _is_injective(form, names, extents)
        steps.add(1 if is_digits else abs(form.by_name[_longest(names, extents)]))
    return steps.pop() if len(steps) == 1 else 1


def _longest(names: Iterable[str], extents: Mapping[str, int]) -> str:
    return max(names, key=lambda name: (extents[name], name))


def _is_injective(line: _Affine, digits: Sequence[str], extents: Mapping[str, int]) -> bool:
    """Tell whether variables are digits of a number, the largest factor first."""
    below = 0
    for name in reversed(digits):
        factor = abs(line.by_name[name])
        if factor <= below:
            return False
        below += factor * (extents[name] - 1)
    return True


def _rotated(u: Expr, low: int, size: int) -> Expr:
    """Return the number from `low` on, of which `u` is the remainder by `size`."""
    moved = eq.add(u, const(-low % size))
    return eq.add(const(low), integer_part("mod", moved, const(size)))


def _digit(x: Expr) -> tuple[Expr, int, int | None]:
    """Return of which number an index is a digit, at which place, and how many values it has."""
    size = None
    if x.op == "mod" and x.args[1].op == "const":
        size, x = int(x.args[1].value), x.args[0]
    if x.op == "floordiv" and x.args[1].op == "const":
        return x.args[0], int(x.args[1].value), size
    return x, 1, size


def _affine(x: Expr) -> _Affine | None:
    by_name: dict[str, int] = {}
    constant = 0
    for atoms, c in polynomial(x).items():
        if not atoms:
            constant = int(c)
        elif len(atoms) == 1 and atoms[0].op == "index":
            by_name[atoms[0].value[0]] = int(c)
        else:
            return None
    return _Affine(by_name, constant)


def range_of(x: Expr) -> tuple[int, int]:
    """Return the least and the largest value of a whole number of indices."""
    if x.op == "const":
        return int(x.value), int(x.value)
    if x.op == "index":
        return 0, x.value[1] - 1
    if x.op == "add":
        (a, b), (c, d) = map(range_of, x.args)
        return a + c, b + d
    if x.op in ("multiply", "floordiv", "mod"):
        (a, b), (c, d) = map(range_of, x.args)
        if x.op == "multiply":
            ends = [a * c, a * d, b * c, b * d]
            return min(ends), max(ends)
        if c == d > 0:
            if x.op == "floordiv":
                return a // c, b // c
            return (a, b) if a >= 0 and b < c else (0, c - 1)
    return -(1 << 62), 1 << 62


def pulled(x: Expr, conditions: Iterable[Expr]) -> Expr:
    """Return `x` where all conditions hold, else 0."""
    for condition in conditions:
        x = eq.where(condition, x, const(0, x.dtype))
    return x
