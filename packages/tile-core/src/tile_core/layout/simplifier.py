"""Shorter formulas with the same values over a box. Every rule is an equation of integers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tile_core.layout.bounds import Reaches
from tile_core.layout.index import (
    AnyIndex,
    Binary,
    Const,
    IndexExpr,
    IndexOp,
    Input,
    as_index,
    build,
    same_expr,
    to_text,
)
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True)
class Linear:
    """``sum(coef * term) + const``, largest coefficient first; no term is itself a sum."""

    terms: tuple[tuple[AnyIndex, int], ...] = ()
    const: int = 0

    @property
    def single(self) -> AnyIndex | None:
        """The term, if there is nothing else and its coefficient is 1."""
        if len(self.terms) == 1 and self.const == 0 and self.terms[0][1] == 1:
            return self.terms[0][0]
        return None

    @property
    def is_const(self) -> bool:
        """Whether no coordinate occurs."""
        return not self.terms

    def plus(self, other: Linear) -> Linear:
        """Return the sum."""
        return linear([*self.terms, *other.terms], self.const + other.const)

    def times(self, factor: int) -> Linear:
        """Return the multiple."""
        return linear([(t, c * factor) for t, c in self.terms], self.const * factor)

    def expr(self) -> AnyIndex:
        """Return the formula."""
        total: AnyIndex = Const(0)
        for term, coef in sorted(self.terms, key=lambda item: item[1] < 0):
            op = IndexOp.ADD if coef > 0 else IndexOp.SUB
            total = build(op, total, build(IndexOp.MUL, term, abs(coef)))
        if self.const < 0 and self.terms:
            return build(IndexOp.SUB, total, -self.const)
        return build(IndexOp.ADD, total, self.const)


def linear(terms: list[tuple[AnyIndex, int]], const: int = 0) -> Linear:
    """Return the sum of `terms`, equal ones added up, in the order of printing."""
    merged: list[tuple[AnyIndex, int]] = []
    for term, coef in terms:
        for k, (other, present) in enumerate(merged):
            if same_expr(term, other):
                merged[k] = (term, present + coef)
                break
        else:
            merged.append((term, coef))
    kept = [(t, c) for t, c in merged if c != 0]
    if len({c for _, c in kept}) == len(kept):
        return Linear(tuple(sorted(kept, key=lambda item: -item[1])), const)
    return Linear(tuple(sorted(kept, key=lambda item: (-item[1], to_text(item[0])))), const)


def simplify(expr: IndexExpr, extents: Sequence[int]) -> AnyIndex:
    """Return a simpler formula, equal to `expr` wherever ``0 <= x_k < extents[k]``."""
    return linear_form(expr, extents).expr()


def linear_form(expr: IndexExpr, extents: Sequence[int]) -> Linear:
    """Return the simplified `expr` as a sum of terms."""
    box = tuple(extents)
    return _Simplifier(box, {}, Reaches(box)).visit(as_index(expr))


@dataclass(frozen=True, slots=True)
class _Simplifier:
    """The rules, for one box; `done` and `reaches` keep what was already worked out."""

    extents: tuple[int, ...]
    done: dict[int, tuple[AnyIndex, Linear]]
    reaches: Reaches

    def visit(self, node: AnyIndex) -> Linear:
        known = self.done.get(id(node))
        if known is None:
            known = self.done[id(node)] = (
                node,
                self._visit(node),
            )  # holds the node: ids stay unique
        return known[1]

    def _visit(self, node: AnyIndex) -> Linear:
        match node:
            case Const(value=value):
                return Linear((), value)
            case Input(axis=axis):
                return Linear() if self.extents[axis] == 1 else Linear(((node, 1),))
            case Binary(op=op):
                a, b = self.visit(node.a), self.visit(node.b)
                match op:
                    case IndexOp.ADD:
                        return self.recombine(a.plus(b))
                    case IndexOp.SUB:
                        return self.recombine(a.plus(b.times(-1)))
                    case IndexOp.MUL:
                        return self.product(a, b)
                    case IndexOp.FLOORDIV:
                        return self.quotient(a, b.const)
                    case IndexOp.FLOORMOD:
                        return self.remainder(a, b.const)
                    case IndexOp.XOR:
                        return self.xor(a, b)
                    case IndexOp.MIN | IndexOp.MAX:
                        return self.extreme(op, a, b)

    def bounds(self, value: Linear) -> tuple[int, int]:
        """Return sound bounds of a sum, from those of its terms."""
        lo = hi = value.const
        for term, coef in value.terms:
            r = self.reaches.of(term)
            lo += coef * (r.lo if coef > 0 else r.hi)
            hi += coef * (r.hi if coef > 0 else r.lo)
        return lo, hi

    def product(self, a: Linear, b: Linear) -> Linear:
        """Scale a sum; a product of two unknowns stays as it is."""
        if a.is_const or b.is_const:
            return b.times(a.const) if a.is_const else a.times(b.const)
        return Linear(((Binary(IndexOp.MUL, a.expr(), b.expr()), 1),))

    def split(self, value: Linear, unit: int) -> tuple[Linear, Linear]:
        """Return ``(whole, rest)`` with ``value == unit * whole + rest``."""
        q, r = divmod(value.const, unit)
        whole = Linear(tuple((t, c // unit) for t, c in value.terms if c % unit == 0), q)
        return whole, Linear(tuple((t, c) for t, c in value.terms if c % unit), r)

    def units(self, value: Linear, c: int) -> list[int]:
        """Return common factors of `c` and a coefficient, largest first, without 1."""
        return sorted({math.gcd(k, c) for _, k in value.terms} - {1}, reverse=True)

    def quotient(self, value: Linear, c: int) -> Linear:
        """Return ``value // c``, `c` positive."""
        if c == 1:
            return value
        whole, rest = self.split(value, c)
        lo, hi = self.bounds(rest)
        if lo // c == hi // c:
            return whole.plus(Linear((), lo // c))
        for unit in self.units(rest, c):
            big, small = self.split(rest, unit)
            lo, hi = self.bounds(small)
            if lo >= 0 and hi < unit:  # (unit*big + small) // (unit*k) == big // k
                return self.recombine(whole.plus(self.quotient(big, c // unit)))
        return self.recombine(whole.plus(self.quotient_of_rest(rest, c)))

    def quotient_of_rest(self, rest: Linear, c: int) -> Linear:
        """Return ``rest // c`` where nothing can be taken out of the division."""
        match rest.single:
            case Binary(op=IndexOp.FLOORDIV, a=x, b=Const(value=d)):
                return self.quotient(self.visit(x), c * d)
            case Binary(op=IndexOp.FLOORMOD, a=x, b=Const(value=m)) if m % c == 0:
                return self.remainder(self.quotient(self.visit(x), c), m // c)
            case Binary(op=IndexOp.XOR, a=x, b=y) if _is_power_of_two(c):
                return self.xor(self.quotient(self.visit(x), c), self.quotient(self.visit(y), c))
        return Linear(((Binary(IndexOp.FLOORDIV, rest.expr(), Const(c)), 1),))

    def remainder(self, value: Linear, c: int) -> Linear:
        """Return ``value % c``, `c` positive."""
        if c == 1:
            return Linear()
        _, rest = self.split(value, c)
        lo, hi = self.bounds(rest)
        if lo // c == hi // c:
            return rest.plus(Linear((), -(lo // c) * c))
        for k, (term, coef) in enumerate(rest.terms):
            match term:
                case Binary(op=IndexOp.FLOORMOD, a=x, b=Const(value=m)) if coef * m % c == 0:
                    others = Linear(rest.terms[:k] + rest.terms[k + 1 :], rest.const)
                    return self.remainder(others.plus(self.visit(x).times(coef)), c)
        for unit in self.units(rest, c):
            big, small = self.split(rest, unit)
            lo, hi = self.bounds(small)
            if lo >= 0 and hi < unit:  # (unit*big + small) % (unit*k) == unit*(big % k) + small
                return self.recombine(self.remainder(big, c // unit).times(unit).plus(small))
        match rest.single:
            case Binary(op=IndexOp.XOR, a=x, b=y) if _is_power_of_two(c):
                return self.xor(self.remainder(self.visit(x), c), self.remainder(self.visit(y), c))
        return Linear(((Binary(IndexOp.FLOORMOD, rest.expr(), Const(c)), 1),))

    def recombine(self, value: Linear) -> Linear:
        """Put quotients and remainders of one number together again: ``x//b*b + x%b == x``."""
        for low, k in value.terms:
            match low:
                case Binary(op=IndexOp.FLOORMOD, a=x, b=Const(value=b)):
                    whole = self.visit(x)
                    high = self.quotient(whole, b).single
                    if high is None:
                        continue
                    for other, coef in value.terms:
                        if coef != k * b:
                            continue
                        joined = None
                        if same_expr(other, high):
                            joined = whole
                        elif _is_remainder_of(other, high):
                            joined = self.remainder(whole, b * other.b.value)  # type: ignore[union-attr]
                        if joined is not None:
                            rest = [
                                (t, c) for t, c in value.terms if t is not low and t is not other
                            ]
                            return self.recombine(linear(rest, value.const).plus(joined.times(k)))
        return value

    def xor(self, a: Linear, b: Linear) -> Linear:
        """Return ``a ^ b``; equal operands cancel, disjoint bits are added."""
        operands = _cancel(_xor_operands(a) + _xor_operands(b))
        known = 0
        unknown: list[Linear] = []
        for operand in operands:
            if operand.is_const:
                known ^= operand.const
            else:
                unknown.append(operand)
        if not unknown:
            return Linear((), known)
        result = unknown[0]
        for operand in unknown[1:]:
            result = self.xor_pair(result, operand)
        return result if known == 0 else self.xor_pair(result, Linear((), known))

    def xor_pair(self, a: Linear, b: Linear) -> Linear:
        """Return ``a ^ b`` with the bits above the smaller operand left outside."""
        for x, y in ((a, b), (b, a)):
            lo, hi = self.bounds(y)
            unit = 1 << hi.bit_length()  # y has no bits from here on, and x keeps its own
            big, small = self.split(x, unit)
            if lo < 0 or (big.is_const and big.const == 0):
                continue
            inside = y if small.is_const and small.const == 0 else self.xor(small, y)
            return inside.plus(big.times(unit))
        return Linear(((Binary(IndexOp.XOR, a.expr(), b.expr()), 1),))

    def extreme(self, op: IndexOp, a: Linear, b: Linear) -> Linear:
        """Return the smaller or larger of two sums."""
        lo, hi = self.bounds(a.plus(b.times(-1)))
        if lo >= 0:
            return b if op is IndexOp.MIN else a
        if hi <= 0:
            return a if op is IndexOp.MIN else b
        return Linear(((Binary(op, a.expr(), b.expr()), 1),))


def _is_power_of_two(value: int) -> bool:
    return value & (value - 1) == 0


def _is_remainder_of(term: AnyIndex, of: AnyIndex) -> bool:
    return (
        isinstance(term, Binary)
        and term.op is IndexOp.FLOORMOD
        and isinstance(term.b, Const)
        and same_expr(term.a, of)
    )


def _xor_operands(value: Linear) -> list[Linear]:
    """Return what a chain of exclusive ors combines."""
    match value.single:
        case Binary(op=IndexOp.XOR, a=a, b=b):
            return [*_xor_operands(_as_linear(a)), *_xor_operands(_as_linear(b))]
    return [value]


def _as_linear(expr: AnyIndex) -> Linear:
    """Read back a sum that `Linear.expr` wrote."""
    match expr:
        case Const(value=value):
            return Linear((), value)
        case Binary(op=IndexOp.ADD, a=a, b=b):
            return _as_linear(a).plus(_as_linear(b))
        case Binary(op=IndexOp.SUB, a=a, b=b):
            return _as_linear(a).plus(_as_linear(b).times(-1))
        case Binary(op=IndexOp.MUL, a=a, b=Const(value=factor)):
            return _as_linear(a).times(factor)
    return Linear(((expr, 1),))


def _cancel(operands: list[Linear]) -> list[Linear]:
    """Remove operands of an exclusive or that occur twice."""
    kept: list[Linear] = []
    for operand in operands:
        for k, other in enumerate(kept):
            if same_expr(operand.expr(), other.expr()):
                del kept[k]
                break
        else:
            kept.append(operand)
    return kept
