"""What is known about integers at a point of a kernel: ranges, divisibility, stated facts.

Conservative: "not proven" means nothing. Arithmetic is taken not to overflow; nothing is learnt of
sums that may, such as those of numbers that the caller gives: `ConstraintSet.wraps` tells them. No
proof searches: each question costs about one step per term, times the facts that mention it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from fractions import Fraction

from tile_core.arith.affine import Atom, Bound, Linear, Number, opaque, whole_between
from tile_core.arith.bounds import Ranges
from tile_core.arith.congruence import DIVISORS
from tile_core.arith.interval import FLIPPED, NEGATED, Ends, Interval, intersection
from tile_core.arith.interval_analysis import AtomIntervals, is_widening, promised
from tile_core.ir.build_expr import const, integer_bounds
from tile_core.ir.expr import Binary, BinaryOp, Cast, Const, Expr, Extent, Unary, UnaryOp, Var
from tile_core.ir.stmt import For, Pipelined
from tile_core.records import dataclass, replace
from tile_launch.contract import ANY_EXTENT

_DEPTH = 24


@dataclass(frozen=True, slots=True)
class ConstraintSet:
    """Immutable knowledge; every `with_…` returns an environment that knows more."""

    # Ranges of loop indices and the like.
    bounds_of: Mapping[Var, Bound] = field(default_factory=dict)
    meaning: Mapping[Var, Linear] = field(default_factory=dict)  # names that stand for a value
    facts: tuple[Linear, ...] = ()  # each is at least 0
    # Atoms known to be a multiple of a number.
    multiples: Mapping[object, int] = field(default_factory=dict)
    _forms: dict[Expr, Linear] = field(init=False, compare=False, repr=False, default_factory=dict)
    """Normal forms worked out already: parts of indices are shared, and asked for again."""
    _ends: dict[Expr, Ends] = field(init=False, compare=False, repr=False, default_factory=dict)
    """Numeric bounds worked out already, of operands of what is not linear."""
    _divisors: dict[Expr, int] = field(init=False, compare=False, repr=False, default_factory=dict)
    """Divisors worked out already, of what is not linear."""
    _analysis: list[AtomIntervals] = field(
        init=False, compare=False, repr=False, default_factory=list
    )
    """The bounds of what is not linear, once they were asked for."""
    _typed: list[Ranges] = field(init=False, compare=False, repr=False, default_factory=list)

    def with_loop(self, var: Var, start: Extent, stop: Extent) -> ConstraintSet:
        """Learn ``start <= var < stop``."""
        return self.with_bounds(var, self.linear(start), self.linear(stop).plus(-1))

    def in_loop(self, loop: For | Pipelined) -> ConstraintSet:
        """Learn what the index of a loop is inside of it, whichever way it counts."""
        step, var = self.bounds(loop.step), loop.var
        if step.low is not None and step.low > 0:
            return self.with_loop(var, loop.start, loop.stop)
        if step.high is not None and step.high < 0:
            return self.with_loop(var, loop.stop + 1, loop.start + 1)
        return self

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

    def is_bounded(self, var: Var) -> bool:
        """Whether more is known of `var` than its type and comparisons say: it may be an index."""
        bound = self.bounds_of.get(var)
        if bound is None or bound.is_compared:
            return False
        ends = (bound.low, bound.high)
        if any(end is not None and end.is_number for end in ends):
            return True
        own, other = bound.low, None if bound.high is None else -bound.high
        return any(end is not None and self.lowest(end) is not None for end in (own, other))

    def with_symbol(self, var: Var) -> ConstraintSet:
        """Learn that `var`, an extent, is not negative, and what its contract says."""
        if var in self.bounds_of:  # what was learnt since then may build on it
            return self
        contract = var.contract or ANY_EXTENT
        high = None if contract.largest is None else Linear.of_number(contract.largest)
        return self.with_bounds(var, Linear.of_number(max(0, contract.smallest)), high)

    def with_let(self, var: Var, value: Expr) -> ConstraintSet:
        """Learn that `var` is another name for `value`.

        Of a value in which a sum may wrap it learns the range, and which powers of two divide it.
        """
        if not (var.dtype.is_int and var.dtype.lanes == 1):
            return self
        within, exact = self._within, self.linear(value)
        if not within.is_arbitrary(value):
            return replace(self, meaning={**self.meaning, var: exact})
        low, high = within.of(value)
        bound = Bound(
            Linear.of_number(low), Linear.of_number(high), len(self.bounds_of), is_compared=True
        )
        known = replace(self, bounds_of={**self.bounds_of, var: bound})
        if not within.wraps(value):
            return replace(known, meaning={**self.meaning, var: exact})
        divisor = math.gcd(self.multiple_of(value), 1 << var.dtype.bits)
        return replace(known, multiples={**self.multiples, var: divisor})

    def wraps(self, expr: Expr) -> bool:
        """Whether arithmetic in `expr` may wrap: then nothing is known of its exact value."""
        return self._within.wraps(expr)

    @property
    def _within(self) -> Ranges:
        """Bounds within the limits of types."""
        if not self._typed:
            self._typed.append(Ranges(self))
        return self._typed[0]

    def assuming(self, condition: Expr, *, holds: bool = True) -> ConstraintSet:
        """Learn that `condition` holds, or that it does not.

        What holds of sums that may wrap says nothing of exact numbers: nothing is learnt of them.
        """
        match condition:
            case Unary(op=UnaryOp.NOT, a=a):
                return self.assuming(a, holds=not holds)
            case Binary(op=BinaryOp.AND | BinaryOp.OR as op, a=a, b=b):
                if holds is not (op is BinaryOp.AND):
                    return self
                return self.assuming(a, holds=holds).assuming(b, holds=holds)
            case Binary(op=op, a=a, b=b) if op.is_comparison and a.dtype.is_int:
                if not self.wraps(condition):
                    return self._comparing(op if holds else NEGATED[op], a, b)
        return self

    def _comparing(self, op: BinaryOp, a: Expr, b: Expr) -> ConstraintSet:
        if op in FLIPPED:
            op, a, b = FLIPPED[op], b, a
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
        ((term, factor),) = fact.terms
        atom = term.expr
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
                return self.meaning.get(expr) or opaque(expr)
            case Cast(value=value, dtype=dtype) if dtype.is_int and value.dtype.is_int:
                if is_widening(dtype, value.dtype):
                    return self.linear(value)
            case Unary(op=UnaryOp.NEG, a=a):
                return -self.linear(a)
            case Unary(op=UnaryOp.BITNOT, a=a) if a.dtype.is_int and a.dtype.kind.value == "int":
                return (-self.linear(a)).plus(-1)
            case Binary(op=op, a=a, b=b) if expr.dtype.is_int:
                if expr not in self._forms:
                    self._forms[expr] = self._arithmetic(expr, op, a, b)
                return self._forms[expr]
        return opaque(expr)

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
            case BinaryOp.SHL if right.is_shift and expr.dtype.kind.value == "int":
                return left.times(2 ** int(right.constant))
            case BinaryOp.SHR if right.is_shift:
                by = const(2 ** int(right.constant), a.dtype)
                return self._arithmetic(expr, BinaryOp.FLOORDIV, a, by)
            case BinaryOp.FLOORDIV | BinaryOp.FLOORMOD if right.is_number and right.constant > 0:
                quotient = self._quotient(left, int(right.constant))
                if quotient is None:
                    whole = Binary(
                        BinaryOp.FLOORDIV, a, const(int(right.constant), b.dtype), a.dtype
                    )
                    quotient = opaque(whole)
                if op is BinaryOp.FLOORDIV:
                    return quotient
                return left - quotient.times(right.constant)
        return opaque(expr)

    def _quotient(self, value: Linear, n: int) -> Linear | None:
        """Return ``value // n`` if it is linear: the part not divisible stays in one step."""
        whole, rest = Linear(), Linear.of_number(value.constant)
        for atom, factor in value.terms:
            term = Linear(((atom, factor),))
            certain = factor * self.divisor(atom)
            if certain.denominator == 1 and int(certain) % n == 0:
                whole = whole + term
            else:
                rest = rest + term
        low, negative = self._substituted(rest), self._substituted(-rest)
        if low is None or negative is None or low // n != -negative // n:
            return None
        return whole.times(Fraction(1, n)).plus(low // n)

    def multiple_of(self, expr: Extent) -> int:
        """Return the largest number known to divide `expr`; 0 if `expr` is 0."""
        value = self.linear(expr)
        numbers = [value.constant]
        numbers += [factor * self.divisor(atom) for atom, factor in value.terms]
        if any(x.denominator != 1 for x in numbers):
            return 1
        return math.gcd(*(int(x) for x in numbers))

    def divisor(self, atom: Atom) -> int:
        """Return a number that divides an atom: it was stated, promised, or follows."""
        known, expr = self.multiples.get(atom.key, 1), atom.expr
        if isinstance(expr, Var):
            return known if expr.contract is None else math.lcm(known, expr.contract.multiple_of)
        if not isinstance(expr, Binary) or expr.op not in DIVISORS:
            return known
        if expr not in self._divisors:
            self._divisors[expr] = DIVISORS[expr.op](
                self.multiple_of(expr.a), self.multiple_of(expr.b)
            )
        return math.lcm(known, self._divisors[expr] or 1)

    def bounds(self, expr: Extent) -> Interval:
        """Return numeric bounds of `expr`."""
        value = self.linear(expr)
        low, high = whole_between(self.lowest(value), self._highest(value))
        if isinstance(expr, Var) and expr in self.meaning and expr in self.bounds_of:
            low, high = intersection((low, high), self._variable_ends(expr))
        elif isinstance(expr, Binary):
            low, high = intersection((low, high), self._atoms.derived(expr))
        return Interval(low, high)

    def _ends_of(self, part: Extent) -> Ends:
        if isinstance(part, int):
            return part, part
        if part not in self._ends:
            self._ends[part] = self.bounds(part).ends
        return self._ends[part]

    def proves(self, condition: Expr) -> bool:
        """Whether `condition` certainly holds."""
        match condition:
            case Const(value=value):
                return bool(value)
            case Binary(op=BinaryOp.AND, a=a, b=b):
                return self.proves(a) and self.proves(b)
            case Binary(op=op, a=a, b=b) if op.is_comparison and a.dtype.is_int:
                if op in FLIPPED:
                    op, a, b = FLIPPED[op], b, a
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
        own = dict(value.terms)
        for fact in self.facts:
            # Times whatever makes a term of the fact cancel one of the value.
            ratios = {Fraction(own[atom]) / f for atom, f in fact.terms if atom in own}
            for ratio in sorted(r for r in ratios | {Fraction(1)} if ratios and r > 0):
                low = self._substituted(value - fact.times(ratio))
                if low is not None and low > -1:
                    return True
        return False

    def _highest(self, value: Linear) -> Number | None:
        low = self.lowest(-value)
        return None if low is None else -low

    def lowest(self, value: Linear) -> Number | None:
        """Return a number that `value` is never below, or None."""
        low = self._substituted(value)
        if low is not None and all(isinstance(atom.expr, Var) for atom, _ in value.terms):
            return low
        apart = self._summed(value)
        return apart if low is None or (apart is not None and apart > low) else low

    def _summed(self, value: Linear) -> Number | None:
        """Return the sum of what each term is never below: quotients are whole numbers here."""
        total: Number = value.constant
        for atom, factor in value.terms:
            low, high = self._atoms.of(atom.expr)
            end = low if factor > 0 else high
            if end is None:
                return None
            total = total + factor * end
        return total

    def _substituted(self, value: Linear, depth: int = _DEPTH) -> Number | None:
        """Return a number that `value` is never below, or None.

        Atoms are replaced by their bounds one at a time, what was learnt last first.
        """
        if value.is_number:
            return value.constant  # type: ignore[no-any-return]
        if depth == 0:
            return None
        # Between atoms learnt together the composed goes first: its bounds name the simple.
        atom, factor = max(value.terms, key=lambda term: self._order(term[0].expr))
        rest = value.without(atom)
        best: Number | None = None
        for bound in self._lows(atom.expr) if factor > 0 else self._highs(atom.expr):
            low = self._substituted(rest + bound.times(factor), depth - 1)
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
        others = [term for term in value.terms if not keeps(term[0].expr)]
        if not others:
            return value
        if depth == 0:
            return None
        atom, factor = max(others, key=lambda term: self._order(term[0].expr))
        rest = value.without(atom)
        best: Linear | None = None
        for bound in self._lows(atom.expr) if factor > 0 else self._highs(atom.expr):
            low = self.lowest_by(rest + bound.times(factor), keeps, depth - 1)
            if low is None:
                continue
            gain = None if best is None else low - best
            if gain is None or (gain.is_number and gain.constant > 0):
                best = low
        return best

    def _order(self, atom: Expr) -> tuple[int, int]:
        """Return when what an atom is made of was learnt last, and how deeply it is nested."""
        if isinstance(atom, Var):
            bound = self.bounds_of.get(atom)
            return -1 if bound is None else bound.order, 0
        last = height = -1
        for child in atom.children():
            if isinstance(child, Expr):
                order, inner = self._order(child)
                last, height = max(last, order), max(height, inner)
        return last, height + 1

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
                if bound is not None:
                    return [] if bound.low is None else [bound.low]
            case Cast(value=value) if self._keeps_value(atom):
                return [self.linear(value)]
            case Binary(op=BinaryOp.FLOORDIV, a=a, b=Const(value=n)) if n > 0:
                return [self.linear(a).plus(1 - int(n)).times(Fraction(1, int(n)))]
            case Binary(op=BinaryOp.MAX, a=a, b=b):
                return [self.linear(a), self.linear(b)]
        low, _ = self._atoms.of(atom)
        return [] if low is None else [Linear.of_number(low)]

    def _highs(self, atom: Expr) -> list[Linear]:
        """Return forms that `atom` is never above."""
        match atom:
            case Var():
                bound = self._bound(atom)
                if bound is not None:
                    return [] if bound.high is None else [bound.high]
            case Cast(value=value) if self._keeps_value(atom):
                return [self.linear(value)]
            case Binary(op=BinaryOp.FLOORDIV, a=a, b=Const(value=n)) if n > 0:
                return [self.linear(a).times(Fraction(1, int(n)))]
            case Binary(op=BinaryOp.FLOORDIV, a=a, b=b) if self._natural(a) and self._natural(b, 1):
                return [self.linear(a)]
            case Binary(op=BinaryOp.FLOORMOD, a=a, b=b) if self._natural(b, 1):
                own = [self.linear(a)] if self._natural(a) else []
                return [self.linear(b).plus(-1), *own]
            case Binary(op=BinaryOp.MIN, a=a, b=b):
                return [self.linear(a), self.linear(b)]
            case Binary(op=BinaryOp.BITAND, a=a, b=b) if self._natural(a) or self._natural(b):
                return [self.linear(x) for x in (a, b) if self._natural(x)]
        _, high = self._atoms.of(atom)
        return [] if high is None else [Linear.of_number(high)]

    def _keeps_value(self, cast: Cast) -> bool:
        """Whether a conversion between integers certainly changes nothing."""
        if not (cast.dtype.is_int and cast.value.dtype.is_int):
            return False
        low, high = self._ends_of(cast.value)
        least, most = integer_bounds(cast.dtype)
        return low is not None and high is not None and least <= low and high <= most

    @property
    def _atoms(self) -> AtomIntervals:
        """Numeric bounds of what is not linear."""
        if not self._analysis:
            self._analysis.append(AtomIntervals(self._variable_ends, self._ends_of))
        return self._analysis[0]

    def _variable_ends(self, var: Var) -> Ends:
        bound = self._bound(var)
        if bound is None:
            return promised(var)
        low = None if bound.low is None else self.lowest(bound.low)
        high = None if bound.high is None else self._highest(bound.high)
        return whole_between(low, high)

    def _natural(self, expr: Expr, least: int = 0) -> bool:
        low, _ = self._ends_of(expr)
        return low is not None and low >= least
