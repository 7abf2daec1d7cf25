"""Rows folded in blocks, as states and their corrections say: in float64, without kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tile_api.arrays.capturing.capture import captured
from tile_api.arrays.equations.equations import Output, Parameter
from tile_api.arrays.equations.evaluate import BINARY, UNARY
from tile_api.arrays.equations.expressions import Expr, rebuild, walk
from tile_api.arrays.planning.inner_products import reductions_over
from tile_api.arrays.planning.tasks import streamed
from tile_api.arrays.reductions.derive import derived
from tile_api.arrays.reductions.state import COUNT, State
from tile_core.dtypes import dtype_of

FOLDS: dict[str, Callable[..., Any]] = {
    "sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min,
}  # fmt: skip
JOINS: dict[str, Callable[..., Any]] = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
}  # fmt: skip


def value(x: Expr, known: Mapping[Expr, Any]) -> Any:
    """Return what an expression is, where atoms are known."""
    found = dict(known)
    with np.errstate(all="ignore"):
        for n in walk(x):
            if n in found:
                continue
            args = [found[arg] for arg in n.args]
            if n.op == "const":
                found[n] = np.float64(n.value)
            elif n.op == "where":
                found[n] = np.where(*args)
            elif n.op == "cast":
                found[n] = args[0]
            else:
                found[n] = (UNARY.get(n.op) or BINARY[n.op])(*args)
    return found[x]


@dataclass(frozen=True)
class Part:
    """What is known of some elements of a row: how many, and the accumulators."""

    count: int
    accumulators: dict[Expr, Any]


@dataclass(frozen=True)
class Rows:
    """A function of rows, and the states by which it is computed in blocks."""

    function: Callable[..., Any]
    outputs: tuple[Output, ...]
    states: tuple[State, ...]

    @classmethod
    def of(cls, function: Callable[..., Any], length: int) -> Rows:
        """Capture a function of two rows."""
        kind = dtype_of("float64")
        equations = captured(function, [Parameter(n, (length,), kind) for n in "xw"], {})
        elements = [o.element for o in equations.outputs]
        stream = streamed(elements)
        assert stream is not None
        states = derived(reductions_over(elements, stream), stream)
        return cls(function, equations.outputs, tuple(states))

    def atoms(self, x: Any, w: Any, where: slice) -> dict[Expr, Any]:
        """Return the elements of some part of the rows."""
        made: dict[Expr, Any] = {}
        for n in walk(*(s.body for s in self.states)):
            if n.op == "load":
                made[n] = {"x": x, "w": w}[n.value][where]
            elif n.op == "index":
                made[n] = np.arange(len(x))[where]
        return made

    def part(self, x: Any, w: Any, where: slice, sweep: int, before: Part) -> Part:
        """Return what is known of the elements of one block, and of earlier sweeps."""
        count = len(x[where])
        known = {**before.accumulators}
        for s in self.states:
            if s.sweep == sweep:
                body = value(s.body, {**self.atoms(x, w, where), **known})
                known[s.mine] = FOLDS[s.kind](np.broadcast_to(body, (count,)))
                if s.left is not None:
                    known[s.left] = np.float64(0)
        return Part(count, known)

    def merged(self, one: Part, other: Part, sweep: int) -> Part:
        """Return what is known of the elements of two parts together."""
        if not one.count or not other.count:
            return one if one.count else other
        count = one.count + other.count
        known = {k: v for k, v in one.accumulators.items() if other.accumulators[k] is v}
        for s in (s for s in self.states if s.sweep == sweep):
            both = [self.moved(s, part, known) for part in (one, other)]
            if s.kind == "mean":
                known[s.mine] = (one.count * both[0] + other.count * both[1]) / count
            else:
                known[s.mine] = JOINS[s.kind](*both)
            if s.left is not None:
                known[s.left] = np.float64(0)
        return Part(count, known)

    def moved(self, s: State, part: Part, known: Mapping[Expr, Any]) -> Any:
        """Return the accumulator of a part where the states that it reads become others."""
        mine = part.accumulators[s.mine]
        if s.correct is None:
            return mine
        old = {d: _named(d) for d in part.accumulators}
        found = s.correct(old, {d: d for d in s.depends})
        values = {**known, COUNT: np.float64(part.count), s.mine: mine}
        values |= {old[d]: part.accumulators[d] for d in old}
        if found.scale is not None:
            return mine * value(found.scale, values)
        assert found.value is not None
        return value(found.value, values)

    def results(self, x: Any, w: Any, cuts: Sequence[int], merge: Any) -> list[Any]:
        """Return the function, folded in blocks between cuts; `merge` makes one part of several."""
        ends = [0, *cuts, len(x)]
        known = Part(0, {})
        for sweep in sorted({s.sweep for s in self.states}):
            blocks = [slice(a, b) for a, b in pairwise(ends) if a < b]
            parts = [self.part(x, w, block, sweep, known) for block in blocks]
            known = merge(parts, lambda one, other, sweep=sweep: self.merged(one, other, sweep))
        final = {s.node: s.value for s in self.states}
        return [value(rebuild(o.element, dict(final)), known.accumulators) for o in self.outputs]


def _named(state: Expr) -> Expr:
    from tile_api.arrays.equations.expressions import make

    return make("state", value=(f"{state.value[0]}_old", state.value[1]), dtype=state.dtype)
