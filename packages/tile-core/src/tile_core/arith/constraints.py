"""What is known about integers at a point of a kernel: ranges, divisibility, stated facts.

Conservative: "not proven" means nothing. Arithmetic is taken not to overflow. No proof
searches: each question costs about one step per term, times the facts that mention it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from fractions import Fraction

from tile_core.arith.affine import Linear, Number
from tile_core.arith.interval import Ends, Interval, combine
from tile_core.ir.arith import const, integer_bounds
from tile_core.ir.contract import ANY_EXTENT
from tile_core.ir.expr import (
    Binary,
    BinaryOp,
    Cast,
    Const,
    Expr,
    Extent,
    Select,
    Unary,
    UnaryOp,
    Var,
)
from tile_core.ir.structure import structure
from tile_core.records import dataclass

_DEPTH = 24
_FLIPPED = {BinaryOp.GT: BinaryOp.LT, BinaryOp.GE: BinaryOp.LE}
_NEGATED = {
    BinaryOp.LT: BinaryOp.GE,
    BinaryOp.LE: BinaryOp.GT,
    BinaryOp.GT: BinaryOp.LE,
    BinaryOp.GE: BinaryOp.LT,
    BinaryOp.EQ: BinaryOp.NE,
    BinaryOp.NE: BinaryOp.EQ,
}


def _never(env: ConstraintSet, condition: Expr) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Bound:
    """``low <= variable <= high`` and when it was learnt; None is unbounded.

    Parameters
    ----------
    is_compared
        Nothing is known of the variable but comparisons: it is no index, it may be any number.
    """

    low: Linear | None
    high: Linear | None
    order: int
    is_compared: bool = False


@dataclass(frozen=True, slots=True)
class ConstraintSet:
    """Immutable knowledge; every `with_…` returns an environment that knows more.

    Parameters
    ----------
    bounds_of
        Ranges of loop indices and the like.
    meaning
        Names that stand for a value.
    facts
        Each is at least 0.
    multiples
        Atoms known to be a multiple of a number.
    """

    bounds_of: Mapping[Var, Bound] = field(default_factory=dict)
    meaning: Mapping[Var, Linear] = field(default_factory=dict)
    facts: tuple[Linear, ...] = ()
    multiples: Mapping[object, int] = field(default_factory=dict)
    _forms: dict[Expr, Linear] = field(init=False, compare=False, repr=False, default_factory=dict)
    """Normal forms worked out already: parts of indices are shared, and asked for again."""
    _ends: dict[Expr, Ends] = field(init=False, compare=False, repr=False, default_factory=dict)
    """Numeric bounds worked out already, of operands of what is not linear."""

    def with_loop(self, var: Var, start: Extent, stop: Extent) -> ConstraintSet:
        """Learn ``start <= var < stop``."""
        return self.with_bounds(var, self.linear(start), self.linear(stop).plus(-1))

    def with_grid(self, block_vars: Iterable[Var], grid: Iterable[Extent]) -> ConstraintSet:
        """Learn that blocks lie in a grid: then it is not empty, which hosts make sure of."""
        env = self
        for var, extent in zip(block_vars, grid, strict=True):
            blocks = env.linear(extent)
            env = env.with_loop(var, 0, extent)
            env = env if blocks.is_number else env._learning(blocks.plus(-1))
        return env

    def with_bounds(self, var: Var, low: Linear | None, high: Linear | None) -> ConstraintSet:
        """Learn ``low <= var <= high``."""
        bound = Bound(low, high, len(self.bounds_of))
        return replace(self, bounds_of={**self.bounds_of, var: bound})

    def is_compared(self, var: Var) -> bool:
        """Whether all that is known of `var` comes from comparisons."""
        bound = self.bounds_of.get(var)
        return bound is not None and bound.is_compared

    def with_symbol(self, var: Var, low: int = 0) -> ConstraintSet:
        """Learn that `var`, an extent, is at least `low`, and what its contract says."""
        if var in self.bounds_of:  # what was learnt since then may build on it
            return self
        contract = var.contract or ANY_EXTENT
        high = None if contract.largest is None else Linear.of_number(contract.largest)
        return self.with_bounds(var, Linear.of_number(max(low, contract.smallest)), high)

    def with_let(self, var: Var, value: Expr) -> ConstraintSet:
        """Learn that `var` is another name for `value`."""
        if not (var.dtype.is_int and var.dtype.lanes == 1):
            return self
        return replace(self, meaning={**self.meaning, var: self.linear(value)})

    def assuming(
        self,
        condition: Expr,
        *,
        holds: bool = True,
        wraps: Callable[[ConstraintSet, Expr], bool] = _never,
    ) -> ConstraintSet:
        """Learn that `condition` holds, or that it does not.

        Parameters
        ----------
        wraps
            Whether sums in a comparison may wrap, given what is known so far: what holds of them
            says nothing of exact numbers, and nothing is learnt.
        """
        match condition:
            case Unary(op=UnaryOp.NOT, a=a):
                return self.assuming(a, holds=not holds, wraps=wraps)
            case Binary(op=BinaryOp.AND | BinaryOp.OR as op, a=a, b=b):
                if holds is not (op is BinaryOp.AND):
                    return self
                left = self.assuming(a, holds=holds, wraps=wraps)
                return left.assuming(b, holds=holds, wraps=wraps)
            case Binary(op=op, a=a, b=b) if op.is_comparison and a.dtype.is_int:
                if not wraps(self, condition):
                    return self._comparing(op if holds else _NEGATED[op], a, b)
        return self

    def _comparing(self, op: BinaryOp, a: Expr, b: Expr) -> ConstraintSet:
        if op in _FLIPPED:
            op, a, b = _FLIPPED[op], b, a
        difference = self.linear(b) - self.linear(a)
        if op is BinaryOp.LT:
            return self._learning(difference.plus(-1))
        if op is BinaryOp.LE:
            return self._learning(difference)
        if op is not BinaryOp.EQ:
            return self
        known = self._learning(difference)._learning(-difference)
        match a:
            case Binary(op=BinaryOp.FLOORMOD, a=Var() as var, b=Const(value=n)) if (
                isinstance(b, Const) and b.value == 0 and n > 0
            ):
                before = self.multiples.get(var, 1)
                return replace(known, multiples={**self.multiples, var: math.lcm(before, int(n))})
        return known

    def _learning(self, fact: Linear) -> ConstraintSet:
        """Learn that `fact` is at least 0: a bound, where it is one variable and a number."""
        env = replace(self, facts=(*self.facts, fact))
        if len(fact.terms) != 1:
            return env
        ((_, factor, atom),) = fact.parts()
        if not isinstance(atom, Var):
            return env
        old = self._bound(atom)
        low, high = (None, None) if old is None else (old.low, old.high)
        end = Fraction(-fact.constant) / factor
        if factor > 0 and (low is None or (low.is_number and low.constant < end)):
            low = Linear.of_number(math.ceil(end))
        elif factor < 0 and (high is None or (high.is_number and high.constant > end)):
            high = Linear.of_number(math.floor(end))
        else:
            return env
        order = len(self.bounds_of) if old is None else old.order
        bound = Bound(low, high, order, old is None or old.is_compared)
        return replace(env, bounds_of={**self.bounds_of, atom: bound})

    def linear(self, expr: Extent) -> Linear:
        """Return `expr` in normal form; what is not linear in it becomes an atom."""
        if isinstance(expr, int):
            return Linear.of_number(expr)
        match expr:
            case Const(value=value) if not expr.dtype.is_float:
                return Linear.of_number(int(value))
            case Var():
                return self.meaning.get(expr) or Linear.of_atom(expr, expr)
            case Cast(value=value, dtype=dtype) if dtype.is_int and value.dtype.is_int:
                if dtype.bits >= value.dtype.bits and dtype.kind is value.dtype.kind:
                    return self.linear(value)
            case Unary(op=UnaryOp.NEG, a=a):
                return -self.linear(a)
            case Binary(op=op, a=a, b=b) if expr.dtype.is_int:
                if expr not in self._forms:
                    self._forms[expr] = self._arithmetic(expr, op, a, b)
                return self._forms[expr]
        return Linear.of_atom(structure(expr), expr)

    def _arithmetic(self, expr: Expr, op: BinaryOp, a: Expr, b: Expr) -> Linear:
        left, right = self.linear(a), self.linear(b)
        match op:
            case BinaryOp.ADD:
                return left + right
            case BinaryOp.SUB:
                return left - right
            case BinaryOp.MUL if right.is_number:
                return left.times(right.constant)
            case BinaryOp.MUL if left.is_number:
                return right.times(left.constant)
            case BinaryOp.SHL if _is_shift(right) and expr.dtype.kind.value == "int":
                return left.times(2 ** int(right.constant))
            case BinaryOp.SHR if _is_shift(right):
                by = const(2 ** int(right.constant), a.dtype)
                return self._arithmetic(expr, BinaryOp.FLOORDIV, a, by)
            case BinaryOp.FLOORDIV | BinaryOp.FLOORMOD if right.is_number and right.constant > 0:
                quotient = self._quotient(left, int(right.constant))
                if quotient is None:
                    whole = Binary(
                        BinaryOp.FLOORDIV, a, const(int(right.constant), b.dtype), a.dtype
                    )
                    quotient = Linear.of_atom(structure(whole), whole)
                if op is BinaryOp.FLOORDIV:
                    return quotient
                return left - quotient.times(right.constant)
        return Linear.of_atom(structure(expr), expr)

    def _quotient(self, value: Linear, n: int) -> Linear | None:
        """Return ``value // n`` if it is linear: the part not divisible stays in one step."""
        whole, rest = Linear(), Linear.of_number(value.constant)
        for key, factor, atom in value.parts():
            term = Linear(0, {key: factor}, {key: atom})
            certain = factor * self.divisor(key, atom)
            if certain.denominator == 1 and int(certain) % n == 0:
                whole = whole + term
            else:
                rest = rest + term
        low, high = self.lowest(rest), self._highest(rest)
        if low is None or high is None or low // n != high // n:
            return None
        return whole.times(Fraction(1, n)).plus(low // n)

    def multiple_of(self, expr: Extent) -> int:
        """Return the largest number known to divide `expr`; 0 if `expr` is 0."""
        value = self.linear(expr)
        numbers = [value.constant]
        numbers += [f * self.divisor(key, atom) for key, f, atom in value.parts()]
        if any(x.denominator != 1 for x in numbers):
            return 1
        return math.gcd(*(int(x) for x in numbers))

    def divisor(self, key: object, atom: Expr) -> int:
        """Return a number that divides an atom: it was stated, or its contract promises it."""
        known = self.multiples.get(key, 1)
        if isinstance(atom, Var) and atom.contract is not None:
            return math.lcm(known, atom.contract.multiple_of)
        return known

    def bounds(self, expr: Extent) -> Interval:
        """Return numeric bounds of `expr`."""
        value = self.linear(expr)
        low, high = self.lowest(value), self._highest(value)
        return Interval(
            None if low is None else math.ceil(low), None if high is None else math.floor(high)
        )

    def _ends_of(self, operand: Expr) -> Ends:
        if operand not in self._ends:
            self._ends[operand] = self.bounds(operand).ends
        return self._ends[operand]

    def proves(self, condition: Expr) -> bool:
        """Whether `condition` certainly holds."""
        match condition:
            case Const(value=value):
                return bool(value)
            case Binary(op=BinaryOp.AND, a=a, b=b):
                return self.proves(a) and self.proves(b)
            case Binary(op=op, a=a, b=b) if op.is_comparison and a.dtype.is_int:
                if op in _FLIPPED:
                    op, a, b = _FLIPPED[op], b, a
                difference = self.linear(b) - self.linear(a)
                if op is BinaryOp.LT:
                    return self.is_natural(difference.plus(-1))
                if op is BinaryOp.LE:
                    return self.is_natural(difference)
                return op is BinaryOp.EQ and difference.is_number and not difference.constant
        return False

    def is_natural(self, value: Linear) -> bool:
        """Whether an integer-valued form is at least 0."""
        low = self.lowest(value)
        if low is not None and low > -1:
            return True
        for fact in self.facts:
            common = fact.terms.keys() & value.terms.keys()
            # Times whatever makes a term of the fact cancel one of the value.
            ratios = {Fraction(value.terms[key]) / fact.terms[key] for key in common}
            for ratio in sorted(r for r in ratios | {Fraction(1)} if common and r > 0):
                low = self.lowest(value - fact.times(ratio))
                if low is not None and low > -1:
                    return True
        return False

    def _highest(self, value: Linear) -> Number | None:
        low = self.lowest(-value)
        return None if low is None else -low

    def lowest(self, value: Linear, depth: int = _DEPTH) -> Number | None:
        """Return a number that `value` is never below, or None.

        Atoms are replaced by their bounds one at a time, what was learnt last first.
        """
        if value.is_number:
            return value.constant
        if depth == 0:
            return None
        # Between atoms learnt together the composed goes first: its bounds name the simple.
        key, factor, atom = max(
            value.parts(), key=lambda part: (self._order(part[2]), not isinstance(part[2], Var))
        )
        best: Number | None = None
        for bound in self._lows(atom) if factor > 0 else self._highs(atom):
            low = self.lowest(value.replaced(key, bound), depth - 1)
            if low is not None and (best is None or low > best):
                best = low
        return best

    def lowest_by(
        self, value: Linear, keeps: Callable[[Expr], bool], depth: int = _DEPTH
    ) -> Linear | None:
        """Return a form of atoms that `keeps` accepts, which `value` is never below, or None.

        Before   n - k*512 - tid, keeping n and k, where tid < 128
        After    n - k*512 - 127
        """
        rest = [part for part in value.parts() if not keeps(part[2])]
        if not rest:
            return value
        if depth == 0:
            return None
        key, factor, atom = max(
            rest, key=lambda part: (self._order(part[2]), not isinstance(part[2], Var))
        )
        best: Linear | None = None
        for bound in self._lows(atom) if factor > 0 else self._highs(atom):
            low = self.lowest_by(value.replaced(key, bound), keeps, depth - 1)
            if low is None:
                continue
            gain = None if best is None else low - best
            if gain is None or (gain.is_number and gain.constant > 0):
                best = low
        return best

    def _order(self, atom: Expr) -> int:
        if isinstance(atom, Var):
            bound = self.bounds_of.get(atom)
            return -1 if bound is None else bound.order
        inner = [self._order(child) for child in atom.children() if isinstance(child, Expr)]
        return max(inner, default=-1)

    def _bound(self, var: Var) -> Bound | None:
        """Return what was learnt of a variable, else what its contract promises."""
        bound = self.bounds_of.get(var)
        if bound is not None or var.contract is None:
            return bound
        low, high = var.contract.smallest, var.contract.largest
        return Bound(Linear.of_number(low), None if high is None else Linear.of_number(high), -1)

    def _lows(self, atom: Expr) -> list[Linear]:
        """Return forms that `atom` is never below."""
        match atom:
            case Var():
                bound = self._bound(atom)
                return [] if bound is None or bound.low is None else [bound.low]
            case Binary(op=BinaryOp.FLOORDIV, a=a, b=Const(value=n)) if n > 0:
                return [self.linear(a).plus(1 - int(n)).times(Fraction(1, int(n)))]
            case Binary(op=BinaryOp.FLOORDIV, a=a, b=b) if self._natural(a) and self._positive(b):
                return [Linear()]
            case Binary(op=BinaryOp.FLOORMOD, b=b) if self._positive(b):
                return [Linear()]
            case Binary(op=BinaryOp.MAX, a=a, b=b):
                return [self.linear(a), self.linear(b)]
            case Binary(op=BinaryOp.MIN, a=a, b=b):
                return self._worst(a, b, low=True)
            case Select(then=a, otherwise=b):
                return self._worst(a, b, low=True)
            case Binary(op=op, a=a, b=b) if atom.dtype.is_int:
                low, _ = combine(op, self._ends_of(a), self._ends_of(b))
                return self._type_limit(atom, low=True) if low is None else [Linear.of_number(low)]
        return self._type_limit(atom, low=True)

    def _highs(self, atom: Expr) -> list[Linear]:
        """Return forms that `atom` is never above."""
        match atom:
            case Var():
                bound = self._bound(atom)
                return [] if bound is None or bound.high is None else [bound.high]
            case Binary(op=BinaryOp.FLOORDIV, a=a, b=Const(value=n)) if n > 0:
                return [self.linear(a).times(Fraction(1, int(n)))]
            case Binary(op=BinaryOp.FLOORDIV, a=a, b=b) if self._natural(a) and self._positive(b):
                return [self.linear(a)]
            case Binary(op=BinaryOp.FLOORMOD, a=a, b=b) if self._positive(b):
                own = [self.linear(a)] if self._natural(a) else []
                return [self.linear(b).plus(-1), *own]
            case Binary(op=BinaryOp.MIN, a=a, b=b):
                return [self.linear(a), self.linear(b)]
            case Binary(op=BinaryOp.MAX, a=a, b=b):
                return self._worst(a, b, low=False)
            case Select(then=a, otherwise=b):
                return self._worst(a, b, low=False)
            case Binary(op=BinaryOp.BITAND, a=a, b=b) if self._natural(a) or self._natural(b):
                return [self.linear(x) for x in (a, b) if self._natural(x)]
            case Binary(op=op, a=a, b=b) if atom.dtype.is_int:
                _, high = combine(op, self._ends_of(a), self._ends_of(b))
                return (
                    self._type_limit(atom, low=False) if high is None else [Linear.of_number(high)]
                )
        return self._type_limit(atom, low=False)

    def _type_limit(self, atom: Expr, *, low: bool) -> list[Linear]:
        if isinstance(atom, Var) or not atom.dtype.is_int or atom.dtype.bits > 16:
            return [Linear()] if low and atom.dtype.kind.value == "uint" else []
        return [Linear.of_number(integer_bounds(atom.dtype)[0 if low else 1])]

    def _worst(self, a: Expr, b: Expr, *, low: bool) -> list[Linear]:
        values = [self.lowest(self.linear(x), 8) if low else self._highest(self.linear(x))
                  for x in (a, b)]  # fmt: skip
        known = [v for v in values if v is not None]
        if len(known) < 2:
            return []
        return [Linear.of_number(min(known) if low else max(known))]

    def _natural(self, expr: Expr) -> bool:
        low = self.lowest(self.linear(expr), 8)
        return low is not None and low > -1

    def _positive(self, expr: Expr) -> bool:
        low = self.lowest(self.linear(expr), 8)
        return low is not None and low > 0


def _is_shift(by: Linear) -> bool:
    return by.is_number and 0 <= by.constant < 63


def prove_in_range(index: Expr, extent: Extent, env: ConstraintSet) -> bool:
    """Whether ``0 <= index < extent`` certainly holds where `env` describes the program."""
    at = env.linear(index)
    return env.is_natural(at) and env.is_natural(env.linear(extent) - at.plus(1))
