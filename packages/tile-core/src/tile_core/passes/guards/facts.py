"""Which fact about the sizes of a kernel would prove what a guard has to ask."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from tile_core.arith.affine import Atom, Bound, Linear
from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.build_expr import binary, integer_bounds
from tile_core.ir.expr import Binary, BinaryOp, Const, Expr, Var
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Check, CheckKind
from tile_core.passes.guards.registry import RegisteredGuard
from tile_core.records import dataclass, replace
from tile_launch.contract import ANY_EXTENT, Contract


@dataclass(frozen=True, slots=True)
class ProvingFact:
    """What a user may promise of one dimension, or of a scalar parameter.

    The `contract` is with what is promised of the variable already, `news` is the part that is new.
    `is_symbol` tells variables that `T.dynamic` made; scalars are promised by `T.assume`.
    """

    var: Var
    contract: Contract
    news: Contract
    is_symbol: bool

    @property
    def told(self) -> str:
        """The news as conditions: ``m % 128 == 0``."""
        return self.news.told(self.var.name)

    @property
    def spelling(self) -> str:
        """What to write: ``T.dynamic("m", multiple_of=128)``."""
        if not self.is_symbol:
            return "; ".join(f"T.assume({part})" for part in self.told.split(", "))
        dtype = "" if str(self.var.dtype) == "int32" else f', "{self.var.dtype}"'
        words = [f'"{self.var.name}"{dtype}']
        words += [f"min={self.contract.low}"] if self.contract.low else []
        words += [] if self.contract.high is None else [f"max={self.contract.high}"]
        multiple = self.contract.multiple_of
        words += [f"multiple_of={multiple}"] if multiple > 1 else []
        return f"T.dynamic({', '.join(words)})"


def assumption(fact: ProvingFact) -> tuple[Check, ...]:
    """Return a fact as statements: what `T.assume` makes of it."""
    var, news = fact.var, fact.news
    found = [binary(BinaryOp.GE, var, news.low)] if news.low else []
    found += [] if news.high is None else [binary(BinaryOp.LE, var, news.high)]
    if news.multiple_of > 1:
        found.append(binary(BinaryOp.EQ, var % news.multiple_of, 0))
    return tuple(Check(cond, "", CheckKind.ASSUME) for cond in found)


def open_margin(guard: RegisteredGuard, env: ConstraintSet) -> Linear:
    """Return what is at least 0 exactly where the access is inside."""
    index = env.linear(guard.index)
    return index if guard.from_below else env.linear(guard.extent) - index.plus(1)


def missing_fact(guard: RegisteredGuard, known: Mapping[Var, bool]) -> ProvingFact | None:
    """Return the weakest fact about one number that proves what `guard` asks, if there is one.

    Numbers that divide are tried in ascending order, taken from the steps of the index: they
    are the sizes of the tiles. Where tiles end at a fixed place it takes a bound, or both.

    Before   bx*128 + 127 < m, bx < (m + 127) // 128
    After    m % 128 == 0

    The variables in `known` may be promised something of; the value tells which are symbols.
    """
    variables, steps = sizes_of(guard, known), sorted(_steps(guard))
    for var in variables:
        for step in steps:
            contract = _dividing(var, step)
            if contract is not None and _proves(guard, var, contract):
                return _fact(var, contract, known)
    for var in variables:
        found = [
            contract
            for step in (1, *steps)
            if (
                contract := _bounded(guard, var, _dividing(var, step) or var.contract or ANY_EXTENT)
            )
            and _proves(guard, var, contract)
        ]
        if found:
            return _fact(var, min(found, key=_strictness), known)
    return None


def _strictness(contract: Contract) -> tuple[int, float, int]:
    """Return what is smaller for the contract that leaves more room."""
    high = math.inf if contract.high is None else contract.high
    return contract.low, -high, contract.multiple_of


def _fact(var: Var, contract: Contract, known: Mapping[Var, bool]) -> ProvingFact:
    before = var.contract or ANY_EXTENT
    news = Contract(
        contract.low if contract.low != before.low else 0,
        contract.high if contract.high != before.high else None,
        contract.multiple_of if contract.multiple_of != before.multiple_of else 1,
    )
    return ProvingFact(var, contract, news, known[var])


def joined(one: Contract, other: Contract) -> Contract:
    """Return what both promise."""
    highs = [c.high for c in (one, other) if c.high is not None]
    return Contract(
        max(one.low, other.low),
        min(highs, default=None),
        math.lcm(one.multiple_of, other.multiple_of),
    )


def _dividing(var: Var, step: int) -> Contract | None:
    """Return the contract of `var` with `step` as one more divisor, if that is news."""
    before = var.contract or ANY_EXTENT
    contract = replace(before, multiple_of=math.lcm(before.multiple_of, step))
    return contract if contract != before and contract.is_satisfiable else None


def _bounded(guard: RegisteredGuard, var: Var, contract: Contract) -> Contract | None:
    """Return `contract` with the bound that the access needs on top of it."""
    env = supposing(guard.env, {var: contract})
    lowest = env.lowest_by(open_margin(guard, env), lambda atom: atom is var)
    if lowest is None or len(lowest.terms) != 1:
        return None
    ((_, factor),) = lowest.terms
    end = Fraction(-lowest.constant) / factor
    if factor > 0:
        bounded = replace(contract, low=max(contract.low, math.ceil(end)))
    else:
        high = math.floor(end)
        bounded = replace(
            contract, high=high if contract.high is None else min(contract.high, high)
        )
    largest = integer_bounds(var.dtype)[1]
    is_useful = bounded.is_satisfiable and bounded.smallest <= largest and bounded.high != 0
    return bounded if is_useful and bounded != contract else None


def _proves(guard: RegisteredGuard, var: Var, contract: Contract) -> bool:
    env = supposing(guard.env, {var: contract})
    return env.is_natural(open_margin(guard, env))


def supposing(env: ConstraintSet, contracts: Mapping[Var, Contract]) -> ConstraintSet:
    """Return what would be known if variables kept to `contracts`.

    Everything that was learnt is worked out again: a count of tiles that was rounded up is
    exact now.
    """
    multiples = dict(env.multiples)
    bounds = dict(env.bounds_of)
    for var, contract in contracts.items():
        multiples[var] = math.lcm(env.divisor(Atom(var, var)), contract.multiple_of)
        old = bounds.get(var)
        high = None if contract.largest is None else Linear.of_number(contract.largest)
        bounds[var] = Bound(
            Linear.of_number(contract.smallest), high, -1 if old is None else old.order
        )
    first = ConstraintSet(bounds, {}, (), multiples)

    def again(form: Linear | None) -> Linear | None:
        if form is None:
            return None
        total = Linear.of_number(form.constant)
        for atom, factor in form.terms:
            total = total + first.linear(atom.expr).times(factor)
        return total

    learnt = {
        var: bound
        if var in contracts
        else replace(bound, low=again(bound.low), high=again(bound.high))
        for var, bound in bounds.items()
    }
    meaning = {var: again(form) or form for var, form in env.meaning.items()}
    facts = tuple(again(fact) or fact for fact in env.facts)
    return ConstraintSet(learnt, meaning, facts, multiples)


def sizes_of(guard: RegisteredGuard, known: Mapping[Var, bool]) -> tuple[Var, ...]:
    """Return which of the variables `known` matter, those of the extent first."""
    roots = [guard.extent] if isinstance(guard.extent, Expr) else []
    margin = open_margin(guard, guard.env)
    roots += [atom.expr for atom, _ in margin.terms]
    found = {n: None for root in roots for n in nodes_of(root, Var)}
    for var in list(found):
        bound = guard.env.bounds_of.get(var)
        for form in () if bound is None else (bound.low, bound.high):
            for atom, _ in () if form is None else form.terms:
                found |= {n: None for n in nodes_of(atom.expr, Var)}
    return tuple(var for var in found if var in known)


def _steps(guard: RegisteredGuard) -> set[int]:
    """Return the distances at which tiles begin: factors of the index, divisors in its bounds."""
    margin = open_margin(guard, guard.env)
    found = {abs(int(f)) for _, f in margin.terms if f.denominator == 1}
    for atom, _ in margin.terms:
        for var in {*nodes_of(atom.expr, Var)}:
            bound = guard.env.bounds_of.get(var)
            for form in () if bound is None else (bound.low, bound.high):
                for inner, factor in () if form is None else form.terms:
                    found.add(factor.denominator)
                    found |= _divisors(inner.expr)
        found |= _divisors(atom.expr)
    return {step for step in found if step > 1}


def _divisors(expr: Expr) -> set[int]:
    return {
        int(n.b.value)
        for n in nodes_of(expr, Binary)
        if n.op in (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD) and isinstance(n.b, Const)
    }
