"""How often a statement runs: sums over the boxes of loops, blocks and threads around it.

Nothing is executed. A space is the product of the ranges of the variables around a statement,
cut by the conditions around it. A sum over it falls apart into factors that share no variable,
and each is evaluated on a grid of its own few variables. Sums are exact as long as no grid has
more than `MOST_POINTS` points; a larger one is sampled evenly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from tile_core.arith.evaluate_arrays import ELECT, UNIFORM, Number, Unknown, value_of
from tile_core.ir.expr import Binary, BinaryOp, Call, Expr, Extent, Var
from tile_core.ir.node import walk

MOST_POINTS = 1 << 16
FEWEST_POINTS = 16
"""Points of an axis that is sampled, at least: fewer where a grid has so many axes that even these
are more than `MOST_AT_ALL`."""

MOST_AT_ALL = 1 << 20

ASSUMED_TRIPS = 16
"""Iterations of a loop whose length only the data tells."""


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """The variable takes the values ``start + step * t`` for t below `count`.

    It numbers threads of a block, x last, blocks of the grid, or elements that a loop without
    order touches; the iterations of an unrolled one are written out one after the other.
    """

    var: Var
    start: Extent
    count: Extent
    step: int = 1
    is_thread: bool = False
    is_block: bool = False
    is_element: bool = False
    is_unrolled: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """A number at each point of a space: `of` applied to the values of `inputs`."""

    inputs: tuple[Extent, ...]
    of: Callable[..., Any]


def _itself(value: Any) -> Any:
    return value


def as_factor(expr: Extent) -> Factor:
    """Return the factor that is the value of `expr`."""
    return Factor((expr,), _itself)


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """The points at which a statement runs.

    `axes` are the variables around the statement, outermost first, `names` what further
    variables are bound to, `sizes` the values of symbols. Unknown `conditions` hold at half of
    the points.
    """

    sizes: Mapping[Var, int]
    axes: tuple[Axis, ...] = ()
    conditions: tuple[Factor, ...] = ()
    names: Mapping[Var, Expr] = field(default_factory=dict)
    share: float = 1.0
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    def along(self, *axes: Axis) -> Space:
        """Return the space with further variables inside."""
        return replace(self, axes=(*self.axes, *axes), cache={})

    def given(self, cond: Expr, *, holds: bool = True) -> Space:
        """Return the part of the space where `cond` holds, or does not."""
        if holds and isinstance(cond, Binary) and cond.op is BinaryOp.AND:
            return self.given(cond.a).given(cond.b)
        test = Factor((cond,), (lambda v: np.not_equal(v, 0)) if holds else np.logical_not)
        try:
            self._reach(test)
        except Unknown:
            return self.in_part(0.5)
        return replace(self, conditions=(*self.conditions, test), cache={})

    def in_part(self, share: float) -> Space:
        """Return a space of which only a share of the points, nobody knows which, are run."""
        return replace(self, share=self.share * share, cache={})

    def named(self, var: Var, value: Expr) -> Space:
        """Return the space in which `var` stands for `value`."""
        return replace(self, names={**self.names, var: value}, cache={})

    def knows(self, *exprs: Extent) -> bool:
        """Whether every point of the space has a value of each expression."""
        try:
            self._reach(Factor(exprs, _itself))
        except Unknown:
            return False
        return True

    def constant(self, expr: Extent) -> int | None:
        """Return the value of `expr` if it is the same at all points."""
        try:
            found = value_of(expr, self.sizes, self.names)
        except Unknown:
            return None
        return int(found)

    def total(self, *factors: Factor, warp: int = 0) -> float:
        """Return the sum of the product of `factors` over all points: their number for none.

        `warp` counts groups of so many threads, of which at least one is there, instead of
        threads.

        Raises
        ------
        Unknown
            If a factor depends on more than the variables of the space.
        """
        if not factors and warp in self.cache:
            return float(self.cache[warp])
        found = _whole(self._sum(factors, warp)) * self.share
        if not factors:
            self.cache[warp] = found
        return found

    def reach(self, *exprs: Extent) -> frozenset[Var]:
        """Return the variables of axes that decide the values of expressions.

        Raises
        ------
        Unknown
            If something else decides, too.
        """
        return self._closed(self._reach(Factor(exprs, _itself)))

    def most(self, expr: Extent) -> Number:
        """Return the largest value of `expr` in the space, 0 in an empty one.

        Raises
        ------
        Unknown
            If it depends on more than the variables of the space.
        """
        factor = as_factor(expr)
        reach = self._reach(factor)
        axes = [a for a in self.axes if a.var in self._closed(reach)]
        grid = _Grid(self, axes, 0)
        values = np.asarray(grid.value(factor))
        return values.max() if values.size else 0

    # Sums ------------------------------------------------------------------------------------

    def _sum(self, factors: Sequence[Factor], warp: int) -> float:
        every = [*self.conditions, *factors]
        for axis in self.axes:
            if self.constant(axis.count) is None:
                every.append(_within(axis))
        reaches = [(f, self._closed(self._reach(f))) for f in every]
        threads = frozenset(a.var for a in self.axes if a.is_thread)
        if warp:
            reaches = [(f, r | threads if r & threads else r) for f, r in reaches]
        result = 1.0
        for parts, reach in _apart(reaches):
            axes = [a for a in self.axes if a.var in reach]
            result *= _Grid(self, axes, warp).sum(parts)
        met = frozenset().union(*(reach for _, reach in reaches))
        alone = [a for a in self.axes if a.var not in met]
        lanes = math.prod(max(0, self.constant(a.count) or 0) for a in alone if a.is_thread)
        if warp and threads - met:
            lanes = -(-lanes // warp)
        return (
            result
            * lanes
            * math.prod(
                float(max(0, self.constant(a.count) or 0)) for a in alone if not a.is_thread
            )
        )

    def _reach(self, factor: Factor) -> frozenset[Var]:
        """Return the variables of axes that the factor depends on."""
        reach: set[Var] = set()
        for expr in factor.inputs:
            reach |= self._variables(expr)
        return frozenset(reach)

    def _variables(self, expr: Extent) -> set[Var]:
        if isinstance(expr, int):
            return set()
        own = {axis.var: axis for axis in self.axes}
        found: set[Var] = set()
        todo: list[Expr] = [expr]
        seen: set[Var] = set()
        while todo:
            for node in walk(todo.pop()):
                if isinstance(node, Var) and node not in seen:
                    seen.add(node)
                    if node in own:
                        found.add(node)
                        todo += [e for e in (own[node].start,) if isinstance(e, Expr)]
                    elif node in self.names:
                        todo.append(self.names[node])
                    elif node not in self.sizes:
                        raise Unknown(node.name)
                elif _is_opaque(node):
                    raise Unknown(type(node).__name__)
        return found

    def _closed(self, reach: frozenset[Var]) -> frozenset[Var]:
        """Return the variables with those that the ranges of theirs depend on."""
        own = {axis.var: axis for axis in self.axes}
        closed, todo = set(reach), list(reach)
        while todo:
            axis = own[todo.pop()]
            for extent in (axis.start, axis.count):
                more = self._variables(extent) - closed
                closed |= more
                todo += more
        return frozenset(closed)


_KNOWN_CALLS = frozenset((*UNIFORM, ELECT))


def _is_opaque(node: Any) -> bool:
    if isinstance(node, Call):
        return node.function not in _KNOWN_CALLS
    return isinstance(node, Expr) and type(node).__name__ in _OPAQUE


_OPAQUE = frozenset({"Load", "AddressOf", "Bitcast", "Ramp", "Broadcast", "Shuffle"})


def _within(axis: Axis) -> Factor:
    """Return whether a variable has not passed the end of a range that varies."""

    def inside(value: Any, start: Any, count: Any) -> Any:
        return (value - start) < count * axis.step if axis.step > 0 else (
            (value - start) > count * axis.step
        )  # fmt: skip

    return Factor((axis.var, axis.start, axis.count), inside)


def _apart(
    reaches: Iterable[tuple[Factor, frozenset[Var]]],
) -> Iterator[tuple[list[Factor], frozenset[Var]]]:
    """Yield groups of factors that share no variable with another group."""
    groups: list[tuple[list[Factor], frozenset[Var]]] = []
    for factor, reach in reaches:
        joined, rest = ([factor], reach), []
        for group in groups:
            if group[1] & joined[1]:
                joined = ([*group[0], *joined[0]], group[1] | joined[1])
            else:
                rest.append(group)
        groups = [*rest, joined]
    yield from groups


def _whole(number: float) -> float:
    """Return the integer that a sum of weighted integers means."""
    nearest = float(round(number))
    return nearest if math.isclose(number, nearest, rel_tol=1e-9, abs_tol=1e-9) else number


class _Grid:
    """The points of a few axes, one dimension of arrays for each, or a sample of them."""

    def __init__(self, space: Space, axes: Sequence[Axis], warp: int) -> None:
        self.space, self.warp = space, warp
        self.threads = sum(a.is_thread for a in axes)
        last = [a for a in axes if not a.is_thread] + [a for a in axes if a.is_thread]
        dimensions = {axis.var: at for at, axis in enumerate(last)}
        self.values: dict[Var, Any] = dict(space.sizes)
        longest = [self._longest(axis) for axis in axes]
        counts = _kept(axes, longest)
        self.weights: list[Any] = []
        shape = [1] * len(axes)
        for axis, n, kept in zip(axes, longest, counts, strict=True):  # outer ones first
            at = dimensions[axis.var]
            shape[at] = kept
            along = (1,) * at + (-1,) + (1,) * (len(axes) - at - 1)
            t, weights = _sample(n, kept)
            start = value_of(axis.start, self.values, space.names)
            self.values[axis.var] = start + t.reshape(along) * axis.step
            if kept < n:
                self.weights.append(weights.reshape(along))
        self.shape = tuple(shape)

    def _longest(self, axis: Axis) -> int:
        constant = self.space.constant(axis.count)
        if constant is not None:
            return max(0, constant)
        return max(0, int(self.space.most(axis.count)))

    def value(self, factor: Factor) -> Any:
        """Return the factor at all points."""
        names = self.space.names
        return factor.of(*(value_of(e, self.values, names) for e in factor.inputs))

    def sum(self, factors: Sequence[Factor]) -> float:
        """Return the sum of the product of `factors`."""
        if not self.shape:
            return float(math.prod(np.float64(self.value(f)) for f in factors))
        parts = [*(np.asarray(self.value(f), float) for f in factors), *self.weights]
        full = np.broadcast_to(reduce(lambda a, b: a * b, parts), self.shape)
        if self.warp and self.threads:
            full = self._of_warps(full)
        return float(full.sum())

    def _of_warps(self, full: Any) -> Any:
        """Return the largest value of each group of threads."""
        flat = full.reshape(*self.shape[: len(self.shape) - self.threads], -1)
        short = -flat.shape[-1] % self.warp
        if short:
            flat = np.concatenate([flat, np.zeros((*flat.shape[:-1], short))], axis=-1)
        return flat.reshape(*flat.shape[:-1], -1, self.warp).max(axis=-1)


def _sample(count: int, kept: int) -> tuple[Any, Any]:
    """Return `kept` of the numbers below `count`, and how many each of them stands for.

    The first and the last stand for themselves: the last is where tensors end.
    """
    if kept >= count:
        return np.arange(count), np.ones(count)
    inner, each = kept - 2, (count - 2) / max(1, kept - 2)
    middle = 1 + ((np.arange(inner) + 0.5) * each).astype(np.int64)
    points = np.concatenate([[0], middle, [count - 1]])
    return points, np.concatenate([[1.0], np.full(inner, each), [1.0]])


_ENDS_AND_MIDDLE = 3


def _kept(axes: Sequence[Axis], counts: Sequence[int]) -> list[int]:
    """Return how many points of each axis are looked at: all, if there are not too many.

    Threads and elements of a tile go first, which differ from each other; blocks last, most of
    which are alike.
    """

    def rank(k: int) -> tuple[int, int]:
        axis = axes[k]
        return (0 if axis.is_thread else 1 if axis.is_element else 3 if axis.is_block else 2,
                counts[k])  # fmt: skip

    threads = math.prod(n for axis, n in zip(axes, counts, strict=True) if axis.is_thread)
    others = sum(not axis.is_thread for axis in axes)
    fewest = FEWEST_POINTS
    while fewest > _ENDS_AND_MIDDLE and threads * fewest**others > MOST_AT_ALL:
        fewest -= 1
    kept, room = [*counts], MOST_POINTS
    order = sorted(range(len(kept)), key=rank)
    for left, k in zip(range(len(order) - 1, -1, -1), order, strict=True):
        share = max(fewest, room // fewest**left)
        kept[k] = kept[k] if axes[k].is_thread else min(kept[k], share)
        room = max(1, room // max(1, kept[k]))
    return kept
