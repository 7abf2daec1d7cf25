"""Sums as adjoints need them: factors come out, known sums are read, what cancels is left out.

Sums over an index variable are brought to one form, so that equal ones are one expression:
``Σ_v a b[v] = a Σ_v b[v]``. A sum that exists already is read, and so is one of which the
order of two sums makes a known one: ``Σ_j p_ij Σ_d y_id v_jd = Σ_d y_id o_id``, if ``o_id`` is
``Σ_j p_ij v_jd``: that takes the sum over rows of keys out of the backward pass of attention.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from tile_api.arrays.equations.expressions import (
    Expr,
    add,
    const,
    multiply,
    reciprocal,
    reduce,
    where,
)
from tile_api.arrays.equations.substitution import bound
from tile_api.arrays.reductions.algebra import Polynomial, is_zero, monomial, polynomial

_ROUNDING = 1e-9
"""Coefficients of which less is left have cancelled."""


def multiplied(x: Expr) -> list[Expr]:
    """Return what `x` is a product of; exponentials stay whole."""
    return [f for arg in x.args for f in multiplied(arg)] if x.op == "multiply" else [x]


def added(x: Expr) -> list[Expr]:
    """Return what `x` is a sum of."""
    return [t for arg in x.args for t in added(arg)] if x.op == "add" else [x]


def cancelled(factors: Iterable[Expr]) -> list[Expr]:
    """Return factors in their order, without those that stand beside their reciprocals."""
    left: list[Expr] = []
    for f in factors:
        other = reciprocal(f)
        if f.op != "const" and other in left:
            left.remove(other)
        else:
            left.append(f)
    return sorted(left, key=lambda f: f.serial)


def product_of(factors: Iterable[Expr], like: Expr) -> Expr:
    """Return a product, in the one form that equal products have; numbers stand in masks."""
    made = const(1, like.dtype)
    for f in cancelled(f for factor in factors for f in multiplied(factor)):
        made = multiply(made, f)
    if made.op == "multiply" and made.args[0].op == "const" and is_masked(made.args[1]):
        number, (condition, *parts) = made.args[0], made.args[1].args
        return where(condition, *(x if is_zero(x) else product_of([number, x], x) for x in parts))
    return made


def is_masked(x: Expr) -> bool:
    """Tell whether a condition leaves an expression, and 0 elsewhere."""
    return x.op == "where" and any(map(is_zero, x.args[1:]))


def _is_divisor(x: Expr) -> bool:
    """Tell whether a product may be divided by a factor of it, which then is not 0.

    What is read, as weights and masks are, may be 0, and an exponential may vanish.
    """
    return x.op == "reciprocal" or (x.op == "const" and x.value != 0)


def partial_sums(reductions: Iterable[Expr]) -> set[Expr]:
    """Return the reductions that are but a part of one over several dimensions."""
    inner = ((x, x.args[0]) for x in reductions if x.args[0].op == "reduce")
    return {y for x, y in inner if x.value[0] == y.value[0]}


class Sums:
    """Sums over index variables.

    Parameters
    ----------
    known
        Expressions whose reductions are read where they serve.
    read
        Returns an expression as adjoints see it: in terms of what is saved.
    """

    def __init__(self, known: Iterable[Expr], read: Callable[[Expr], Expr]) -> None:
        self._known: dict[tuple[str, tuple[Expr, ...]], Expr] = {}
        reductions = [x for x in known if x.op == "reduce"]
        self._given = {read(x) for x in reductions}
        partial = partial_sums(reductions)
        for x in reductions:
            kind, variable, extent = x.value
            if kind in ("sum", "mean") and x.dtype.is_float and x not in partial:
                inner, outer = _apart(read(x.args[0]), variable)
                count = [const(extent, x.dtype)] if kind == "mean" else []
                names = frozenset[str]().union(*(f.free for f in inner))
                if inner and all(_is_divisor(f) and f.free <= names for f in outer):
                    value = product_of([read(x), *count, *map(reciprocal, outer)], x)
                    self._known.setdefault((variable, inner), value)
        self._first = dict(self._known)

    def over(self, variable: str, extent: int, x: Expr) -> Expr:
        """Return the sum of `x` over an index variable."""
        if is_zero(x):
            return x
        if variable not in x.free:
            return product_of([const(extent, x.dtype), x], x)
        if self._vanishes(variable, extent, x):
            return const(0, x.dtype)
        if x.op == "add":
            return self._of_terms(variable, extent, added(x))
        if is_masked(x) and variable not in x.args[0].free:
            return where(x.args[0], *(self.over(variable, extent, arg) for arg in x.args[1:]))
        inner, outer = _apart(x, variable)
        return product_of([*outer, self._of(variable, extent, inner)], x)

    def _of_terms(self, variable: str, extent: int, terms: Sequence[Expr]) -> Expr:
        """Return the sum of terms: those that are no new sums by themselves, the rest as one."""
        made: list[Expr] = []
        rest: list[tuple[tuple[Expr, ...], list[Expr]]] = []
        for x in terms:
            inner, outer = _apart(x, variable)
            is_new = inner and self._existing(variable, inner) is None
            if is_new and not self._vanishes(variable, extent, x):
                rest.append((inner, outer))
            else:
                made.append(self.over(variable, extent, x))
        if len(rest) < 2:
            made += [product_of([*o, self._of(variable, extent, i)], i[0]) for i, o in rest]
            return self.collected(made)
        common = Counter(rest[0][1])
        for _, outer in rest:
            common &= Counter(outer)
        body: Expr | None = None
        for inner, outer in rest:
            left = Counter(outer) - common  # a factor may stand twice, and be common once
            term = product_of([*inner, *left.elements()], inner[0])
            body = term if body is None else add(body, term)
        assert body is not None
        whole = bound("sum", variable, extent, body)
        return self.collected([*made, product_of([*common.elements(), whole], whole)])

    def collected(self, terms: Sequence[Expr]) -> Expr:
        """Return the sum of terms, of which equal ones are counted and opposite ones cancel."""
        terms = [x for x in terms if not is_zero(x)] or [*terms[:1]]
        counts: dict[Expr, list[float]] = {}
        for x in terms:
            known, factor = _coefficient(x)
            counts.setdefault(known, []).append(factor)
        made: Expr | None = None
        for x, parts in counts.items():
            count = sum(parts)
            if abs(count) > _ROUNDING * max(map(abs, parts)):
                term = product_of([const(count, x.dtype), x], x)
                made = term if made is None else add(made, term)
        return const(0, terms[0].dtype) if made is None else made

    def _of(self, variable: str, extent: int, inner: tuple[Expr, ...]) -> Expr:
        """Return the sum of a product whose factors all have the variable."""
        key = (variable, inner)
        found = self._existing(variable, inner)
        if found is None:
            found = bound("sum", variable, extent, product_of(inner, inner[0]))
        self._known[key] = found
        return found

    def _existing(self, variable: str, inner: tuple[Expr, ...]) -> Expr | None:
        """Return a sum that is known, or comes to one that is given."""
        return self._known.get((variable, inner)) or self._exchanged(variable, inner)

    def _exchanged(self, variable: str, inner: tuple[Expr, ...]) -> Expr | None:
        """Return the sum by a given one over the same variable, if a factor is a new sum itself."""
        for f in inner:
            if f.op != "reduce" or f.value[0] != "sum" or f in self._given:
                continue
            _, other, extent = f.value
            rest = [*inner]
            rest.remove(f)
            if any(other in x.free for x in rest):
                continue
            with_it, without = _apart(f.args[0], variable)
            known = self._first.get((variable, tuple(cancelled([*rest, *with_it]))))
            if known is not None:
                return self.over(other, extent, product_of([*without, known], f))
        return None

    def _vanishes(self, variable: str, extent: int, x: Expr) -> bool:
        """Tell whether a sum is 0 once it is written out: deviations from a mean, for example."""
        made: Polynomial = {}
        sizes: dict[tuple[Expr, ...], float] = {}
        for atoms, c in polynomial(x).items():
            inner = tuple(cancelled(a for a in atoms if variable in a.free))
            outer = [a for a in atoms if variable not in a.free]
            known = const(extent, x.dtype) if not inner else self._existing(variable, inner)
            if known is None:
                known = reduce("sum", variable, extent, product_of(inner, x))
            whole = product_of([*outer, known], x)
            for more, d in polynomial(whole).items():
                key = monomial(cancelled(more))
                made[key] = made.get(key, 0.0) + c * d
                sizes[key] = max(sizes.get(key, 0.0), abs(c * d))
        return all(abs(c) <= _ROUNDING * sizes[key] for key, c in made.items())


def _apart(x: Expr, variable: str) -> tuple[tuple[Expr, ...], list[Expr]]:
    """Return the factors of `x` that have the variable, and the others."""
    factors = cancelled(multiplied(x))
    inner = tuple(f for f in factors if variable in f.free)
    return inner, [f for f in factors if variable not in f.free]


def _coefficient(x: Expr) -> tuple[Expr, float]:
    if x.op == "const":
        return const(1, x.dtype), float(x.value)
    if x.op == "multiply" and x.args[0].op == "const":
        return x.args[1], float(x.args[0].value)
    return x, 1.0
