"""Whether two accesses of explicit threads may meet: one element, two threads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

import numpy as np

from tile_core.analysis.memory_access import Side
from tile_core.analysis.thread_tables import Array, meet, table
from tile_core.arith.affine import Linear
from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.buffer import static_value
from tile_core.ir.expr import Expr, Extent, Var
from tile_core.ir.free_variables import free_variables
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import For, Launch, Pipelined
from tile_core.records import dataclass

Never: TypeAlias = Literal[False]

_MOST_ITERATIONS = 1024
_MOST_ELEMENTS = 1 << 20
"""Larger tables are not made: what they would say is taken for unknown."""


@dataclass(frozen=True, slots=True)
class ThreadAccess:
    """What one access touches: a box, and the conditions under which a thread gets there.

    `carried` has the index of each loop that it was carried around, its step, and how many
    iterations ago that was.
    """

    box: tuple[Side, ...]
    when: tuple[Expr, ...] = ()
    carried: tuple[tuple[Var, int, Extent], ...] = ()


@dataclass(frozen=True, slots=True)
class _Iterations:
    """The values a loop's index takes, and the bounds as the program says them."""

    start: Extent
    stop: Extent
    step: int
    values: range


class ThreadDependences:
    """Answers for one launch, by tables of all threads of a block.

    Indices are worked out for every thread, and for every iteration of loops with bounds that
    are known. What is the same for all threads, but not known, such as the number of the
    block, may differ by a constant; what differs between threads and is not known, such as
    an index out of memory, may be anything. `varies` are the variables that may differ between
    threads; `stands_for` gives the variable for a name of its value in another iteration. With
    `only_sure`, threads meet only where all about it is known: by default they may meet where
    something is not.
    """

    def __init__(
        self,
        launch: Launch,
        varies: set[Var],
        stands_for: Mapping[Var, Var],
        warp_size: int = 32,
        *,
        only_sure: bool = False,
    ) -> None:
        self.varies, self.stands_for, self.only_sure = varies, stands_for, only_sure
        count = math.prod(launch.threads)
        number = np.arange(count).reshape(1, -1)
        self.own, self.warp = number[0], number[0] // warp_size
        self.threads: dict[Var, Array] = {}
        for var, extent in zip(launch.thread_vars, launch.threads, strict=True):
            self.threads[var] = number % extent
            number = number // extent
        self.count = count
        self.iterations: dict[Var, _Iterations] = {}
        self.env = _environment(launch)
        self._learn_iterations(launch)

    def _learn_iterations(self, launch: Launch) -> None:
        for node in nodes_of(launch.body, For, Pipelined):
            step = static_value(node.step)
            start, stop = self.env.bounds(node.start), self.env.bounds(node.stop)
            if step is None or step == 0:
                continue
            ends = (start.low, stop.high) if step > 0 else (start.high, stop.low)
            if ends[0] is None or ends[1] is None:
                continue
            exact = start.low == start.high or step in (1, -1)
            values = range(ends[0], ends[1], step if exact else (1 if step > 0 else -1))
            self.iterations[node.var] = _Iterations(node.start, node.stop, step, values)

    def meet(
        self, a: ThreadAccess, b: ThreadAccess, *, same_buffer: bool = True, by_warp: bool = False
    ) -> bool:
        """Whether two threads, of different warps if `by_warp`, may touch one element."""
        sides = list(zip(a.box, b.box, strict=True)) if same_buffer else []
        known = [(x, y) for x, y in sides if x is not None and y is not None]
        exprs = [e for x, y in known for e in (*x, *y)] + [*a.when, *b.when]
        carried = (*a.carried, *b.carried)
        for _, _, ago in carried:
            if isinstance(ago, Var) and ago not in self.env.bounds_of:
                self.env = self.env.with_bounds(ago, Linear.of_number(2), None)
        values = self._values(exprs, carried)
        if self.only_sure and not self._is_known(a, b, same_buffer, values):
            return False
        here, there = self._active(a.when, values), self._active(b.when, values)
        elements: list[tuple[Array, Array]] = []
        for x, y in known:
            pair = self._positions(x, y, values)
            if pair is False:
                return False
            if pair is not None:
                elements.append(pair)
        iterations = np.broadcast_shapes(*(v.shape for v in values.values()))[0]
        if not iterations:
            return False  # the loops around them never run
        ours, theirs = self._joined(elements, iterations)
        shape = (ours.shape[0], self.count)
        groups = self.warp if by_warp else self.own
        return meet(
            ours, theirs, groups, np.broadcast_to(here, shape), np.broadcast_to(there, shape)
        )

    def _is_known(
        self, a: ThreadAccess, b: ThreadAccess, same_buffer: bool, values: Mapping[Var, Array]
    ) -> bool:
        """Whether tables tell all about two accesses in one iteration."""
        if not same_buffer or a.carried or b.carried:
            return False
        sides = [side for side in (*a.box, *b.box) if side is not None]
        exprs = [side[0] for side in sides] + [*a.when, *b.when]
        names = {v for e in exprs for v in free_variables(e)}
        return (
            len(sides) == len(a.box) + len(b.box)
            and all(static_value(side[1]) is not None for side in sides)
            and not names & self.stands_for.keys()
            and all(table(e, values) is not None for e in exprs)
        )

    # Iterations ----------------------------------------------------------------------------------

    def _values(
        self, exprs: Iterable[Extent], carried: tuple[tuple[Var, int, Extent], ...]
    ) -> dict[Var, Array]:
        """Return the threads, and every combination of iterations that can be."""
        wanted: dict[Var, range] = {}
        queue = [v for e in exprs for v in free_variables(e)]
        named = set(queue)
        queue += [v for var, _, ago in carried if var in named for v in free_variables(ago)]
        total = 1
        while queue:
            var = queue.pop(0)
            if var in wanted or var in self.threads:
                continue
            values = self._range(var, carried)
            if values is None or total * max(len(values), 1) > _MOST_ITERATIONS:
                continue
            wanted[var] = values
            total *= max(len(values), 1)
            if var in self.iterations:
                found = self.iterations[var]
                queue += [*free_variables(found.start), *free_variables(found.stop)]
        axes = np.meshgrid(*(np.asarray(r, np.int64) for r in wanted.values()), indexing="ij")
        iterations = {v: x.reshape(-1, 1) for v, x in zip(wanted, axes, strict=True)}
        return {**self.threads, **self._possible(iterations, carried)}

    def _range(self, var: Var, carried: tuple[tuple[Var, int, Extent], ...]) -> range | None:
        for index, _, ago in carried:
            if ago is var and index in self.iterations:
                return range(2, max(len(self.iterations[index].values), 2))
        found = self.iterations.get(self.stands_for.get(var, var))
        return None if found is None else found.values

    def _possible(
        self, iterations: dict[Var, Array], carried: tuple[tuple[Var, int, Extent], ...]
    ) -> dict[Var, Array]:
        """Leave out iterations that never come: of loops in loops, and before the first."""
        if not iterations:
            return iterations
        kept = np.full(next(iter(iterations.values())).shape, True)
        for var, found in self.iterations.items():
            start, stop = table(found.start, iterations), table(found.stop, iterations)
            if var not in iterations or start is None or stop is None:
                continue
            at = iterations[var]
            kept &= (start <= at) & (at < stop) if found.step > 0 else (stop < at) & (at <= start)
        for var, step, ago in carried:
            count = table(ago, iterations)
            if var in iterations and var in self.iterations and count is not None:
                first = self.iterations[var].values[0] if self.iterations[var].values else 0
                then = iterations[var] - step * count
                kept &= then >= first if step > 0 else then <= first
        return {v: x[kept[:, 0]] for v, x in iterations.items()}

    def _active(self, when: tuple[Expr, ...], values: Mapping[Var, Array]) -> Array:
        active: Array = np.asarray([[True]])
        for condition in when:
            holds = table(condition, values)
            if holds is not None:
                active = active & (holds != 0)
        return active

    # Elements --------------------------------------------------------------------------------

    def _positions(
        self, x: tuple[Extent, Extent], y: tuple[Extent, Extent], values: Mapping[Var, Array]
    ) -> tuple[Array, Array] | Never | None:
        """Return the positions along one dimension; False: never the same; None: unknown."""
        width, other = static_value(x[1]), static_value(y[1])
        if width is None or other is None:
            return None
        left, right = table(x[0], values), table(y[0], values)
        if left is None or right is None:
            first, rest = self._parts(x[0], values)
            second, more = self._parts(y[0], values)
            if first is None or second is None:
                return None
            gap = more - rest
            if not gap.is_number:
                return self._beyond(first, width, second, other, gap)
            if int(gap.constant) != gap.constant:
                return None
            left, right = first, second + int(gap.constant)
        return self._widened(left, width), self._widened(right, other)

    def _widened(self, start: Array, width: int) -> Array:
        return start[..., None] + np.arange(max(width, 0))

    def _parts(
        self, start: Extent, values: Mapping[Var, Array]
    ) -> tuple[Array, Linear] | tuple[None, Linear]:
        """Split into what tables know, and the rest, which is the same for all threads."""
        total: Array = np.asarray([[0]])
        rest = Linear()
        form = self.env.linear(start)
        for atom, factor in form.terms:
            known = table(atom.expr, values)
            if known is None:
                if self._differs(atom.expr):
                    return None, rest
                rest = rest + Linear(((atom, factor),))
            elif int(factor) != factor:
                return None, rest
            else:
                total = total + known * int(factor)
        return total, rest.plus(form.constant)

    def _differs(self, atom: Expr) -> bool:
        """Whether an atom may differ between threads."""
        return any(self.stands_for.get(v, v) in self.varies for v in free_variables(atom))

    def _beyond(self, a: Array, width: int, b: Array, other: int, gap: Linear) -> Never | None:
        """Return False if one box lies behind the other for whatever the gap between may be."""
        if not a.size or not b.size:
            return False
        after = gap.plus(int(b.min()) - int(a.max()) - width)
        before = (-gap).plus(int(a.min()) - int(b.max()) - other)
        return False if self.env.is_natural(after) or self.env.is_natural(before) else None

    def _joined(self, elements: list[tuple[Array, Array]], iterations: int) -> tuple[Array, Array]:
        """Return one number for each element of the boxes, along what is known of them."""
        shape = (iterations, self.count, 1)
        ours: Array = np.zeros(shape, np.int64)
        theirs: Array = np.zeros(shape, np.int64)
        for a, b in elements:
            grown = ours.shape[-1] * a.shape[-1], theirs.shape[-1] * b.shape[-1]
            if max(grown) * iterations * self.count > _MOST_ELEMENTS or not (a.size and b.size):
                continue
            low = min(a.min(), b.min())
            span = max(a.max(), b.max()) - low + 1
            full = (iterations, self.count)
            ours = (ours[..., None] * span + (a - low)[..., None, :]).reshape(*full, -1)
            theirs = (theirs[..., None] * span + (b - low)[..., None, :]).reshape(*full, -1)
        return ours, theirs


def _environment(launch: Launch) -> ConstraintSet:
    env = ConstraintSet()
    for var, extent in zip(launch.thread_vars, launch.threads, strict=True):
        env = env.with_loop(var, 0, extent)
    env = env.with_grid(launch.block_vars, launch.grid)
    for node in nodes_of(launch.body, For, Pipelined):
        env = env.in_loop(node)
    return env
