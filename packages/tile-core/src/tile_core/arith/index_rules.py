"""Shorter forms of equal value. Every rule is an equation of integers within known bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import field

from tile_core.arith.affine import Atom, Linear, Operands, as_atom
from tile_core.arith.bounds import Range, fitted
from tile_core.arith.expander import INT32, INT64, fits, is_narrow, within, write
from tile_core.dtypes import DType
from tile_core.ir.expr import Binary, BinaryOp, Expr
from tile_core.records import dataclass

_DIV, _MOD, _XOR = BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.BITXOR


@dataclass(slots=True)
class IndexRules:
    """The rules, and the atoms made so far at places where the same is known."""

    atoms: dict[Hashable, Atom] = field(default_factory=dict)

    def leaf(
        self,
        key: Hashable,
        expr: Expr,
        bounds: Range,
        operands: Operands = None,
        *,
        multiple: int = 1,
    ) -> Linear:
        """Return `expr`, a multiple of `multiple`, as an atom: the same one for the same `key`."""
        if bounds[0] == bounds[1]:
            return Linear.of_number(bounds[0])
        atom = self.atoms.get(key)
        if atom is None:
            number = len(self.atoms)
            atom = Atom(key, expr, number, *bounds, operands, multiple=multiple)
            self.atoms[key] = atom
        return as_atom(atom)

    def acting(self, expr: Expr, bounds: Range) -> Linear:
        """Return `expr`, whose evaluation does something, as an atom unlike all others.

        Rules are never asked about forms that hold one.
        """
        atom = Atom(object(), expr, len(self.atoms), *bounds, acts=True)
        self.atoms[atom.key] = atom
        return as_atom(atom)

    def combined(
        self, dtype: DType, op: BinaryOp, a: Linear, b: Linear | int, bounds: Range
    ) -> Linear:
        """Return ``a op b`` as an atom, computed in 32 bits where that certainly suffices."""
        right = b if isinstance(b, Linear) else Linear.of_number(b)
        if dtype == INT64 and is_narrow(a) and is_narrow(right) and within(bounds, INT32):
            dtype = INT32
        key = (op, a, b, dtype)
        atom = self.atoms.get(key)
        if atom is not None:
            return as_atom(atom)
        expr = Binary(op, write(a, dtype), write(right, dtype), dtype)
        return self.leaf(key, expr, fitted(*bounds, dtype), (op, a, b))

    def product(self, a: Linear, b: Linear, dtype: DType) -> Linear:
        """Return ``a * b``; a product of two unknowns stays one."""
        for value, other in ((a, b), (b, a)):
            if not value.terms:
                return self.joined(other.times(value.constant), dtype)
        ends = [x * y for x in a.bounds for y in b.bounds]
        return self.combined(dtype, BinaryOp.MUL, a, b, (min(ends), max(ends)))

    def quotient(self, value: Linear, c: int, dtype: DType) -> Linear:
        """Return ``value // c``, `c` positive, rounded down."""
        if c == 1:
            return value
        whole, rest = self._aligned(*value.split(c), c, dtype)
        low, high = rest.bounds
        if low // c == high // c:
            return whole.plus(low // c)
        of = _operation(rest)
        for rule in QUOTIENTS:
            if rule.of is None or rule.of is of:
                found = rule.apply(self, rest, c, dtype)
                if found is not None:
                    return self.joined(whole + found, dtype)
        inside = self.combined(dtype, _DIV, rest, c, (low // c, high // c))
        return self.joined(whole + inside, dtype)

    def _aligned(self, whole: Linear, rest: Linear, c: int, dtype: DType) -> tuple[Linear, Linear]:
        """Move what is known to be a multiple of `c` from `rest` to `whole`."""
        for atom, factor in rest.terms:
            if factor * atom.multiple % c == 0:
                common = math.gcd(factor, c)
                only = as_atom(atom)
                part = c // common
                ends = (atom.low // part, atom.high // part)
                digit = self.combined(dtype, _DIV, only, part, ends)
                whole = whole + digit.times(factor // common)
                rest = rest.without(atom)
        return whole, rest

    def remainder(self, value: Linear, c: int, dtype: DType) -> Linear:
        """Return ``value % c``, `c` positive, the result never negative."""
        if c == 1:
            return Linear()
        rest = value.split(c)[1]
        rest = Linear(tuple(t for t in rest.terms if t[1] * t[0].multiple % c), rest.constant)
        low, high = rest.bounds
        if low // c == high // c:
            return rest.plus(-(low // c) * c)
        of = _operation(rest)
        for rule in REMAINDERS:
            if rule.of is None or rule.of is of:
                found = rule.apply(self, rest, c, dtype)
                if found is not None:
                    return found
        return self.combined(dtype, _MOD, rest, c, (0, c - 1 if low < 0 else min(high, c - 1)))

    def joined(self, value: Linear, dtype: DType) -> Linear:
        """Put quotients and remainders of one number together: ``x//b*b + x%b == x``."""
        for term in value.terms:
            operands = term[0].operands
            for rule in () if operands is None else SUMS.get(operands[0], ()):
                found = rule.apply(self, value, term, dtype)
                if found is not None:
                    return self.joined(found, dtype)
        return value

    def xor(self, a: Linear, b: Linear, dtype: DType) -> Linear:
        """Return ``a ^ b``: equal operands cancel, disjoint bits are added."""
        if not a.terms and not b.terms:
            return Linear.of_number(a.constant ^ b.constant)
        return self._bitwise(XORS, _XOR, a, b, dtype)

    def union(self, a: Linear, b: Linear, dtype: DType) -> Linear:
        """Return ``a | b``; disjoint bits are added."""
        return self._bitwise(UNIONS, BinaryOp.BITOR, a, b, dtype)

    def _bitwise(
        self, table: tuple[Rule, ...], op: BinaryOp, a: Linear, b: Linear, dtype: DType
    ) -> Linear:
        for rule in table:
            for x, y in ((a, b), (b, a)):
                found = rule.apply(self, x, y, dtype)
                if found is not None:
                    return found
        ends = (*a.bounds, *b.bounds)
        most = max(x.bit_length() for x in ends)
        low = -(1 << most) if min(ends) < 0 else 0
        return self.combined(dtype, op, a, b, (low, (1 << most) - 1))

    def extreme(self, op: BinaryOp, a: Linear, b: Linear, dtype: DType) -> Linear:
        """Return the smaller or larger of two sums."""
        for x, y in ((a, b), (b, a)):
            found = EXTREMES[op].apply(self, x, y, dtype)
            if found is not None:
                return found
        pick = min if op is BinaryOp.MIN else max
        bounds = (pick(a.bounds[0], b.bounds[0]), pick(a.bounds[1], b.bounds[1]))
        return self.combined(dtype, op, a, b, bounds)


@dataclass(frozen=True, slots=True)
class Rule:
    """An equation of integers that makes forms shorter."""

    # before, after, when: the equation and what must hold for it, as Python over any integers `x`,
    # `y` and positive `b`, `c`, `d`, `k`, `m`, `u`; tests/unit/tile_core/test_index_rules.py checks
    # each row for all small numbers, and what `apply` makes over whole boxes.
    before: str
    after: str
    when: str
    # Returns what a form becomes; None where the rule says nothing about it.
    apply: Callable[..., Linear | None]
    of: BinaryOp | None = None  # the operation that the form must be, alone; None: any sum


def _operation(value: Linear) -> BinaryOp | None:
    """Return the operation that a form is, alone."""
    single = value.single
    return None if single is None or single.operands is None else single.operands[0]


def _operands(value: Linear) -> Operands:
    single = value.single
    return None if single is None else single.operands


def _quotient_of_digits(r: IndexRules, rest: Linear, c: int, dtype: DType) -> Linear | None:
    for unit, big, _ in _digits(rest, c):
        return r.quotient(big, c // unit, dtype)
    return None


def _quotient_of_quotient(r: IndexRules, rest: Linear, c: int, dtype: DType) -> Linear | None:
    match _operands(rest):
        case (BinaryOp.FLOORDIV, Linear() as x, int() as d):
            return r.quotient(x, c * d, dtype)
    return None


def _quotient_of_remainder(r: IndexRules, rest: Linear, c: int, dtype: DType) -> Linear | None:
    match _operands(rest):
        case (BinaryOp.FLOORMOD, Linear() as x, int() as m) if m % c == 0:
            return r.remainder(r.quotient(x, c, dtype), m // c, dtype)
    return None


def _quotient_of_xor(r: IndexRules, rest: Linear, c: int, dtype: DType) -> Linear | None:
    match _operands(rest):
        case (BinaryOp.BITXOR, Linear() as x, Linear() as y) if c & (c - 1) == 0:
            return r.xor(r.quotient(x, c, dtype), r.quotient(y, c, dtype), dtype)
    return None


QUOTIENTS = (
    Rule("(u*x + y) // (u*k)", "x // k", "0 <= y < u", _quotient_of_digits),
    Rule("x // d // c", "x // (d*c)", "True", _quotient_of_quotient, _DIV),
    Rule("x % m // c", "x // c % (m // c)", "m % c == 0", _quotient_of_remainder, _MOD),
    Rule("(x ^ y) // c", "x // c ^ y // c", "c & (c - 1) == 0", _quotient_of_xor, _XOR),
)


def _remainder_of_remainder(r: IndexRules, rest: Linear, c: int, dtype: DType) -> Linear | None:
    for atom, factor in rest.terms:
        match atom.operands:
            case (BinaryOp.FLOORMOD, Linear() as x, int() as m) if factor * m % c == 0:
                open_ = rest.without(atom) + x.times(factor)
                if fits(open_, dtype):  # else the sum might not fit
                    return r.remainder(open_, c, dtype)
    return None


def _remainder_of_digits(r: IndexRules, rest: Linear, c: int, dtype: DType) -> Linear | None:
    for unit, big, small in _digits(rest, c):
        inner = r.remainder(big, c // unit, dtype).times(unit)
        return r.joined(inner + small, dtype)
    return None


def _remainder_of_xor(r: IndexRules, rest: Linear, c: int, dtype: DType) -> Linear | None:
    match _operands(rest):
        case (BinaryOp.BITXOR, Linear() as x, Linear() as y) if c & (c - 1) == 0:
            return r.xor(r.remainder(x, c, dtype), r.remainder(y, c, dtype), dtype)
    return None


REMAINDERS = (
    Rule("(x % m * k + y) % c", "(x*k + y) % c", "k * m % c == 0", _remainder_of_remainder),
    Rule("(u*x + y) % (u*k)", "u * (x % k) + y", "0 <= y < u", _remainder_of_digits),
    Rule("(x ^ y) % c", "x % c ^ y % c", "c & (c - 1) == 0", _remainder_of_xor, _XOR),
)


def _sum_of_quotient(
    r: IndexRules, value: Linear, term: tuple[Atom, int], dtype: DType
) -> Linear | None:
    atom, k = term
    match atom.operands:
        case (_, Linear() as x, int() as b) if k % b == 0 and x.multiple % b == 0:
            return value.without(atom) + x.times(k // b)
    return None


def _sum_of_both(
    r: IndexRules, value: Linear, term: tuple[Atom, int], dtype: DType
) -> Linear | None:
    atom, k = term
    match atom.operands:
        case (_, Linear() as x, int() as b) if any(c == k * b for _, c in value.terms):
            high = r.quotient(x, b, dtype).single
            for other, factor in value.terms:
                if factor == k * b and other is high:
                    return value.without(atom, other) + x.times(k)
    return None


def _sum_of_remainders(
    r: IndexRules, value: Linear, term: tuple[Atom, int], dtype: DType
) -> Linear | None:
    low, k = term
    match low.operands:
        case (_, Linear() as x, int() as b) if any(c == k * b for _, c in value.terms):
            high = r.quotient(x, b, dtype)
            for other, factor in value.terms:
                match other.operands:
                    case (BinaryOp.FLOORMOD, Linear() as y, int() as n) if (
                        factor == k * b and y.contains(high)
                    ):
                        shifted = x + (y - high).times(b)
                        if fits(shifted, dtype):
                            whole = r.remainder(shifted, b * n, dtype)
                            return value.without(low, other) + whole.times(k)
    return None


SUMS: dict[BinaryOp, tuple[Rule, ...]] = {
    _DIV: (Rule("x // b * b", "x", "x % b == 0", _sum_of_quotient),),
    _MOD: (
        Rule("x // b * b + x % b", "x", "True", _sum_of_both),
        Rule("(x//b + y) % m * b + x % b", "(x + y*b) % (m*b)", "True", _sum_of_remainders),
    ),
}


def _xor_again(r: IndexRules, x: Linear, y: Linear, dtype: DType) -> Linear | None:
    match _operands(x):
        case (BinaryOp.BITXOR, Linear() as p, Linear() as q) if y in (p, q):
            return q if p == y else p
    return None


def _xor_above(r: IndexRules, x: Linear, y: Linear, dtype: DType) -> Linear | None:
    unit = _power_of_two_in(y)
    big, small = x.split(unit or 1)
    if unit > 1 and small.bounds[0] >= 0 and small.bounds[1] < unit:
        high = r.xor(big, y.split(unit)[0], dtype).times(unit)
        return r.joined(high + small, dtype)
    return None


def _xor_below(r: IndexRules, x: Linear, y: Linear, dtype: DType) -> Linear | None:
    if y.bounds[0] < 0:
        return None
    top = 1 << y.bounds[1].bit_length()  # y has no bits from here on, x keeps its own
    big, small = x.split(top)
    if not (big.terms or big.constant > 0):
        return None
    inside = r.xor(small, y, dtype) if small.terms or small.constant else y
    return inside + big.times(top)


XORS = (
    Rule("x ^ x", "0", "True", lambda r, x, y, dtype: Linear() if x == y else None),
    Rule("(x ^ y) ^ y", "x", "True", _xor_again),
    Rule("(u*x + k) ^ (u*y)", "u * (x ^ y) + k", "k < u and u & (u - 1) == 0", _xor_above),
    Rule("(u*x + y) ^ k", "u * x + (y ^ k)", "k < u and u & (u - 1) == 0 <= y < u", _xor_below),
    Rule("x ^ 0", "x", "True", lambda r, x, y, dtype: x if y == Linear() else None),
)


def _union_of_disjoint(r: IndexRules, x: Linear, y: Linear, dtype: DType) -> Linear | None:
    if y.bounds[0] < 0:
        return None
    _, small = x.split(1 << y.bounds[1].bit_length())
    return x + y if not small.terms and not small.constant else None


UNIONS = (Rule("u*x | y", "u*x + y", "0 <= y < u and u & (u - 1) == 0", _union_of_disjoint),)


EXTREMES = {
    BinaryOp.MIN: Rule(
        "min(x, y)", "x", "x <= y", lambda r, x, y, dtype: x if (x - y).bounds[1] <= 0 else None
    ),
    BinaryOp.MAX: Rule(
        "max(x, y)", "x", "x >= y", lambda r, x, y, dtype: x if (x - y).bounds[0] >= 0 else None
    ),
}


def _digits(value: Linear, c: int) -> Iterator[tuple[int, Linear, Linear]]:
    """Yield ``(unit, big, small)`` with ``value == unit*big + small`` and `small` below `unit`.

    Units are common factors of `c` and a factor in the sum, largest first, without 1. A multiple
    of the unit that `small` is known to hold goes to `big`.
    """
    for unit in sorted({math.gcd(k, c) for _, k in value.terms} - {1}, reverse=True):
        big, small = value.split(unit)
        low, high = small.bounds
        held = low // unit
        if high // unit == held:
            yield unit, big.plus(held), small.plus(-held * unit)


def _power_of_two_in(value: Linear) -> int:
    """Return the largest power of two that divides a sum term by term; 0 for 0."""
    common = math.gcd(value.constant, *(c for _, c in value.terms))
    return common & -common
