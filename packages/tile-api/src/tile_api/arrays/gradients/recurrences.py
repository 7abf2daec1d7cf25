"""The adjoint of a recurrence, which is one that takes the steps in the other order.

From ``h[t] = f(h[t - 1], x[t])``, of which each ``h[t]`` is read with a weight ``g[t]``, follows
``l[t] = g[t] + l[t + 1] df(h[t], x[t + 1]) / dh``: what the results change by when ``h[t]`` does.
Steps that are ``a h + b`` have adjoints of that form, too: what is taken in chunks forwards is
taken in chunks backwards.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tile_api.arrays.equations.equations import Equations
from tile_api.arrays.equations.expressions import (
    Expr,
    Indices,
    add,
    compared,
    const,
    make,
    multiply,
    negate,
    rebuild,
    walk,
    where,
)
from tile_api.arrays.equations.numerics import is_strict
from tile_api.arrays.equations.recurrence import Recurrence, Steps, replaced, steps_of
from tile_api.arrays.equations.substitution import substituted
from tile_api.arrays.gradients.decays import decayed, logarithm, running_sum
from tile_api.arrays.gradients.sums import product_of
from tile_api.arrays.reductions.algebra import is_zero

Reads = Sequence[tuple[Expr, Expr]]
"""What is read, and by what the results change when it does."""


@dataclass(frozen=True)
class Rules:
    """How adjoints are made, of which those of recurrences are a part.

    Parameters
    ----------
    at
        Returns, of what is read at indices with a weight, the weight of a given element.
    total
        Returns the sum of terms.
    of_carried
        Returns the reads of carried values in steps, given the weights of the steps' results.
    over
        Returns a sum over an index variable.
    read
        Returns what steps read, as it is saved.
    value
        Returns an element of a carried value after a step, as it is saved; or before it.
    is_active
        Tells whether something has a gradient.
    """

    at: Callable[[Indices, Expr, Indices], Expr]
    total: Callable[[Sequence[Expr]], Expr]
    of_carried: Callable[[Steps, Mapping[int, Expr]], Reads]
    over: Callable[[str, int, Expr], Expr]
    read: Callable[[Expr], Expr]
    value: Callable[..., Expr]
    is_active: Callable[[Expr], bool]


@dataclass(frozen=True)
class Reversed:
    """By what results change when steps give other values.

    Parameters
    ----------
    steps, starts
        By the number of the carried value, at the variables of the recurrence.
    others
        Of what steps are made of, where that is all that they give.
    """

    steps: dict[int, Expr]
    starts: dict[int, Expr]
    others: list[tuple[Expr, Expr]] = field(default_factory=list)


def reverse(steps: Steps, reads: Reads, rules: Rules) -> Reversed:
    """Return the adjoint of a recurrence of which `reads` read values."""
    return _Reversing(steps, rules).of(reads)


class _Reversing:
    def __init__(self, steps: Steps, rules: Rules) -> None:
        self.steps, self.rules, self.of_ = steps, rules, steps.of
        self.onwards = const(-1 if self.of_.is_backward else 1)
        self.floats = [k for k, x in enumerate(steps.steps) if x.dtype.is_float]

    def of(self, reads: Reads) -> Reversed:
        of, step = self.of_, self.of_.step
        after = [r for r in reads if not r[0].value.is_before and not self._is_last(r[0])]
        before = [r for r in reads if r[0].value.is_before]
        last = [r for r in reads if self._is_last(r[0])]
        given, first = self._next(step), const(of.first)
        weights: dict[int, Expr] = {}
        starts: dict[int, Expr] = {}
        finals: dict[int, Expr] = {}
        for k in self.floats:
            none = const(0, self.steps.steps[k].dtype)
            weights[k] = self._total(
                [none, *self._placed(k, after, step), *self._placed(k, before, given)]
            )
            starts[k] = self._total([none, *self._placed(k, before, first)])
            finals[k] = self._total([none, *self._placed(k, last, const(of.last))])
        live = [k for k in self.floats if not (is_zero(weights[k]) and is_zero(finals[k]))]
        while True:
            mine = self._adjoint_of(live)
            carried = {k: make("carry", *of.indices(k), value=(mine.token, n),
                               dtype=self.steps.steps[k].dtype)
                       for n, k in enumerate(live)}  # fmt: skip
            found = self._carried(carried)
            more = [k for k in self.floats if k in live or not is_zero(found[k])]
            if more == live:
                break
            live = more
        if not live:
            return Reversed({}, {k: x for k, x in starts.items() if not is_zero(x)})
        later = {k: self._shifted(found[k], carried[k], finals[k]) for k in live}
        made = Steps(
            mine,
            tuple(finals[k] for k in live),
            tuple(self._total([weights[k], later[k]]) for k in live),
        )

        def onwards(n: Expr) -> Expr | None:
            """Return what was carried into a step."""
            if n.op != "carry" or n.value[0] != mine.token:
                return None
            return made.value(n.value[1], step, n.args, is_before=True)

        later = {k: replaced(x, frozenset({mine.token}), onwards) for k, x in later.items()}
        results = {k: made.value(n, step, of.indices(k)) for n, k in enumerate(live)}
        for k in self.floats:
            starts[k] = self._total([starts[k], self._before(found[k], made, const(of.first))])
        others: list[tuple[Expr, Expr]] = []
        for k in live:
            back = functools.partial(self._before, found[k], made)
            parts = self._by_decay(k, results[k], weights[k], later[k], finals[k], back)
            if parts is not None:
                del results[k]
                others += parts
        return Reversed(results, {k: x for k, x in starts.items() if not is_zero(x)}, others)

    def _by_decay(
        self, k: int, mine: Expr, weight: Expr, later: Expr, final: Expr,
        before: Callable[[Expr], Expr],
    ) -> list[tuple[Expr, Expr]] | None:  # fmt: skip
        """Return the weights of what a step is made of, if elements share a decay."""
        of, rules = self.of_, self.rules
        own, x = of.indices(k), self.steps.steps[k]

        def is_mine(n: Expr) -> bool:
            return n.op == "carry" and n.value == (of.token, k) and n.args == own

        step = None if is_strict() else decayed(x, is_mine, of.token)
        if step is None or not any(map(rules.is_active, step.decay)):
            return None
        found = logarithm(step.decay, rules.is_active)
        shared = [
            (name, n) for name, n in of.carried[k]
            if name and not any(name in f.free for f in step.decay)
        ]  # fmt: skip
        if found is None or not shared:
            return None

        def summed(x: Expr) -> Expr:
            for name, n in reversed(shared):
                x = rules.over(name, n, x)
            return x

        def both(one: Expr, other: Expr) -> Expr:
            return product_of([one, other], one)

        decay = rules.read(functools.reduce(multiply, step.decay))
        earlier = both(decay, rules.value(self.steps, k, of.step, own, is_before=True))
        added = (summed(both(later, negate(rules.read(b)))) for b in step.added)
        given = self._total([summed(both(weight, earlier)), *added])
        end = summed(both(final, rules.value(self.steps, k, const(of.last), own)))

        def between(step: Expr, following: Expr) -> Expr:
            """Return the product of a decay and its gradient at the following step."""
            return summed(both(before(following), rules.value(self.steps, k, step, own)))

        kept = tuple((name, n) for name, n in of.carried[k] if (name, n) not in shared)
        total = running_sum(of, kept, given, end, between)
        none = const(0, x.dtype)
        total = where(make("eq", decay, none), none, total)  # and not what rounding left
        by = ((y, both(total, rules.read(factor))) for y, factor in found)
        return [*((b, mine) for b in step.added), *by]

    def _adjoint_of(self, live: Sequence[int]) -> Recurrence:
        of = self.of_
        return replace(
            of, token=f"{of.token}'", carried=tuple(of.carried[k] for k in live),
            is_backward=not of.is_backward,
        )  # fmt: skip

    def _total(self, terms: Sequence[Expr]) -> Expr:
        return self.rules.total(terms)

    def _is_last(self, x: Expr) -> bool:
        at = x.args[0]
        return at.op == "const" and at.value == self.of_.last and not x.value.is_before

    def _next(self, step: Expr) -> Expr:
        return add(self.onwards, step)

    def _placed(self, k: int, reads: Reads, step: Expr) -> list[Expr]:
        """Return the weights with which an element of a value is read at a step."""
        outer, of = self.steps.outer, self.of_
        return [
            self.rules.at((*outer, *x.args[: x.value.rank]), weight,
                          (*outer, step, *of.indices(k)))
            for x, weight in reads
            if x.value.carry == k
        ]  # fmt: skip

    def _carried(self, carried: Mapping[int, Expr]) -> dict[int, Expr]:
        """Return the weights of values before a step, given those of the values after it."""
        reads = self.rules.of_carried(self.steps, carried)
        outer = (*self.steps.outer, self.of_.step)
        found: dict[int, list[Expr]] = {k: [] for k in self.floats}
        for x, weight in reads:
            k = x.value[1]
            found[k].append(
                self.rules.at((*outer, *x.args), weight, (*outer, *self.of_.indices(k)))
            )
        return {
            k: self._total([const(0, self.steps.steps[k].dtype), *terms])
            for k, terms in found.items()
        }

    def _shifted(self, x: Expr, carried: Expr, final: Expr) -> Expr:
        """Return what a value gets from the step after its own; after the last one, `final`."""
        of = self.of_
        if of.variable not in x.free and is_zero(final):
            return x
        moved = substituted(x, {of.variable: self._next(of.step)})
        if of.is_backward:
            has_next = compared("le", const(1), of.step)
        else:
            has_next = compared("lt", self._next(of.step), const(of.extent))
        return where(has_next, moved, carried)

    def _before(self, x: Expr, made: Steps, step: Expr) -> Expr:
        """Return the weights of values before a step, given those of any step, `x`."""

        def after(n: Expr) -> Expr | None:
            if n.op != "carry" or n.value[0] != made.of.token:
                return None
            return made.value(n.value[1], step, n.args)

        x = substituted(x, {self.of_.variable: step})
        return replaced(x, frozenset({made.of.token}), after)


def before(steps: Steps, carry: int, value: Callable[[Expr], Expr], indices: Indices) -> Expr:
    """Return an element of a value before a step: `value` after the one before, or its start."""
    of = steps.of
    names = [name for name, _ in of.carried[carry]]
    start = substituted(steps.starts[carry], dict(zip(names, indices, strict=True)))
    if of.is_backward:
        return where(compared("lt", of.step, const(of.first)), value(add(const(1), of.step)), start)
    return where(compared("le", of.step, const(0)), start, value(add(const(-1), of.step)))


def with_own_tokens(equations: Equations) -> Equations:
    """Return equations in which no two recurrences name what they carry alike."""
    known: dict[Expr, Expr] = {}
    renamed: dict[Steps, Steps] = {}
    for n in walk(*(o.element for o in equations.outputs)):
        if n.op != "scan":
            continue
        made = rebuild(n, known)
        steps = steps_of(made)
        if steps not in renamed:
            renamed[steps] = _with_token(steps, f"carry.{len(renamed)}")
        read = made.value
        known[n] = renamed[steps].value(
            read.carry, made.args[0], made.args[1 : read.rank], is_before=read.is_before
        )
    outputs = tuple(replace(o, element=rebuild(o.element, known)) for o in equations.outputs)
    return replace(equations, outputs=outputs)


def _with_token(steps: Steps, token: str) -> Steps:
    old = frozenset({steps.of.token})

    def of(n: Expr) -> Expr | None:
        if n.op != "carry" or n.value[0] != steps.of.token:
            return None
        args = tuple(replaced(arg, old, of) for arg in n.args)
        return make("carry", *args, value=(token, n.value[1]), dtype=n.dtype)

    made = tuple(replaced(x, old, of) for x in steps.steps)
    return Steps(replace(steps.of, token=token), steps.starts, made)
