"""Shorter forms of equal value. Every rule is an equation of integers within known bounds."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from tile_core.arith.bounds import Range, fitted
from tile_core.arith.index_forms import (
    INT32,
    INT64,
    Atom,
    Form,
    Operands,
    fits,
    form,
    is_narrow,
    within,
    write,
)
from tile_core.dtypes import DType
from tile_core.ir.expr import Binary, BinaryOp, Expr

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
    ) -> Form:
        """Return `expr`, a multiple of `multiple`, as an atom: the same one for the same `key`."""
        if bounds[0] == bounds[1]:
            return Form((), bounds[0])
        atom = self.atoms.get(key)
        if atom is None:
            number = len(self.atoms)
            atom = Atom(number, expr, *bounds, operands, multiple=multiple)
            self.atoms[key] = atom
        return Form(((atom, 1),))

    def acting(self, expr: Expr, bounds: Range) -> Form:
        """Return `expr`, whose evaluation does something, as an atom unlike all others.

        Rules are never asked about forms that hold one.
        """
        atom = Atom(len(self.atoms), expr, *bounds, None, True)
        self.atoms[atom] = atom
        return Form(((atom, 1),))

    def combined(self, dtype: DType, op: BinaryOp, a: Form, b: Form | int, bounds: Range) -> Form:
        """Return ``a op b`` as an atom, computed in 32 bits where that certainly suffices."""
        right = b if isinstance(b, Form) else Form((), b)
        if dtype == INT64 and is_narrow(a) and is_narrow(right) and within(bounds, INT32):
            dtype = INT32
        key = (op, a, b, dtype)
        atom = self.atoms.get(key)
        if atom is not None:
            return Form(((atom, 1),))
        expr = Binary(op, write(a, dtype), write(right, dtype), dtype)
        return self.leaf(key, expr, fitted(*bounds, dtype), (op, a, b))

    def product(self, a: Form, b: Form, dtype: DType) -> Form:
        """Return ``a * b``; a product of two unknowns stays one."""
        for value, other in ((a, b), (b, a)):
            if not value.terms:
                return self.joined(other.times(value.const), dtype)
        ends = [x * y for x in a.bounds for y in b.bounds]
        return self.combined(dtype, BinaryOp.MUL, a, b, (min(ends), max(ends)))

    def quotient(self, value: Form, c: int, dtype: DType) -> Form:
        """Return ``value // c``, `c` positive, rounded down."""
        if c == 1:
            return value
        whole, rest = self._aligned(*value.split(c), c, dtype)
        low, high = rest.bounds
        if low // c == high // c:
            return whole.plus(Form((), low // c))
        for unit, big, _ in _digits(rest, c):
            # by the equation (unit*big + small) // (unit*k) == big // k
            return self.joined(whole.plus(self.quotient(big, c // unit, dtype)), dtype)
        return self.joined(whole.plus(self._quotient_of_rest(rest, c, dtype)), dtype)

    def _aligned(self, whole: Form, rest: Form, c: int, dtype: DType) -> tuple[Form, Form]:
        """Move what is known to be a multiple of `c` from `rest` to `whole`."""
        for atom, factor in rest.terms:
            if factor * atom.multiple % c == 0:
                common = math.gcd(factor, c)
                only = Form(((atom, 1),))
                part = c // common
                ends = (atom.low // part, atom.high // part)
                digit = self.combined(dtype, _DIV, only, part, ends)
                whole = whole.plus(digit.times(factor // common))
                rest = Form(tuple(t for t in rest.terms if t[0] is not atom), rest.const)
        return whole, rest

    def _quotient_of_rest(self, rest: Form, c: int, dtype: DType) -> Form:
        operands = rest.single.operands if rest.single is not None else None
        match operands:
            case (BinaryOp.FLOORDIV, Form() as x, int() as d):  # x // d // c
                return self.quotient(x, c * d, dtype)
            case (BinaryOp.FLOORMOD, Form() as x, int() as m) if m % c == 0:
                return self.remainder(self.quotient(x, c, dtype), m // c, dtype)
            case (BinaryOp.BITXOR, Form() as x, Form() as y) if c & (c - 1) == 0:
                return self.xor(self.quotient(x, c, dtype), self.quotient(y, c, dtype), dtype)
        low, high = rest.bounds
        return self.combined(dtype, _DIV, rest, c, (low // c, high // c))

    def remainder(self, value: Form, c: int, dtype: DType) -> Form:
        """Return ``value % c``, `c` positive, the result never negative."""
        if c == 1:
            return Form()
        rest = value.split(c)[1]
        rest = Form(tuple(t for t in rest.terms if t[1] * t[0].multiple % c), rest.const)
        low, high = rest.bounds
        if low // c == high // c:
            return rest.plus(Form((), -(low // c) * c))
        for atom, factor in rest.terms:
            match atom.operands:
                case (BinaryOp.FLOORMOD, Form() as x, int() as m) if factor * m % c == 0:
                    others = form(t for t in rest.terms if t[0] is not atom)
                    open_ = Form(others.terms, rest.const).plus(x.times(factor))
                    if fits(open_, dtype):  # else the sum might not fit
                        return self.remainder(open_, c, dtype)
        for unit, big, small in _digits(rest, c):
            # by the equation (unit*big + small) % (unit*k) == unit*(big % k) + small
            inner = self.remainder(big, c // unit, dtype).times(unit)
            return self.joined(inner.plus(small), dtype)
        operands = rest.single.operands if rest.single is not None else None
        match operands:
            case (BinaryOp.BITXOR, Form() as x, Form() as y) if c & (c - 1) == 0:
                return self.xor(self.remainder(x, c, dtype), self.remainder(y, c, dtype), dtype)
        return self.combined(dtype, _MOD, rest, c, (0, c - 1 if low < 0 else min(high, c - 1)))

    def joined(self, value: Form, dtype: DType) -> Form:
        """Put quotients and remainders of one number together: ``x//b*b + x%b == x``."""
        for low, k in value.terms:
            match low.operands:
                case (BinaryOp.FLOORDIV, Form() as x, int() as b) if k % b == 0:
                    if x.multiple % b == 0:  # nothing was lost: x//b*b == x
                        rest = Form(tuple(t for t in value.terms if t[0] is not low), value.const)
                        return self.joined(rest.plus(x.times(k // b)), dtype)
                case (BinaryOp.FLOORMOD, Form() as x, int() as b):
                    if not any(c == k * b for _, c in value.terms):
                        continue
                    joined = self._joined_with(value, low, k, x, b, dtype)
                    if joined is not None:
                        return self.joined(joined, dtype)
        return value

    def _joined_with(
        self, value: Form, low: Atom, k: int, x: Form, b: int, dtype: DType
    ) -> Form | None:
        """Return `value` with the remainder `low` joined to a quotient of the same number."""
        high = self.quotient(x, b, dtype)
        for other, factor in value.terms:
            if factor != k * b:
                continue
            whole: Form | None = None
            if other is high.single:
                whole = x
            else:
                match other.operands:
                    case (BinaryOp.FLOORMOD, Form() as y, int() as n) if y.contains(high):
                        # by the equation (x//b + m) % n * b + x % b == (x + m*b) % (n*b)
                        shifted = x.plus(y.plus(high.times(-1)).times(b))
                        if fits(shifted, dtype):
                            whole = self.remainder(shifted, b * n, dtype)
            if whole is not None:
                rest = tuple(t for t in value.terms if t[0] is not low and t[0] is not other)
                return Form(rest, value.const).plus(whole.times(k))
        return None

    def xor(self, a: Form, b: Form, dtype: DType) -> Form:
        """Return ``a ^ b``: equal operands cancel, disjoint bits are added."""
        if a == b:
            return Form()
        if not a.terms and not b.terms:
            return Form((), a.const ^ b.const)
        for x, y in ((a, b), (b, a)):
            operands = x.single.operands if x.single is not None else None
            match operands:  # (p ^ q) ^ q == p
                case (BinaryOp.BITXOR, Form() as p, Form() as q):
                    if p == y or q == y:
                        return q if p == y else p
        for x, y in ((a, b), (b, a)):  # the bits of x below all of y's stay
            unit = _power_of_two_in(y)
            big, small = x.split(unit or 1)
            if unit > 1 and small.bounds[0] >= 0 and small.bounds[1] < unit:
                high = self.xor(big, y.split(unit)[0], dtype).times(unit)
                return self.joined(high.plus(small), dtype)
        for x, y in ((a, b), (b, a)):
            if y.bounds[0] < 0:
                continue
            top = 1 << y.bounds[1].bit_length()  # y has no bits from here on, x keeps its own
            big, small = x.split(top)
            if big.terms or big.const > 0:
                inside = self.xor(small, y, dtype) if small.terms or small.const else y
                return inside.plus(big.times(top))
        return self._xor_atom(a, b, dtype)

    def _xor_atom(self, a: Form, b: Form, dtype: DType) -> Form:
        if not b.terms and b.const == 0:
            return a
        if not a.terms and a.const == 0:
            return b
        ends = (*a.bounds, *b.bounds)
        most = max(x.bit_length() for x in ends)
        low = -(1 << most) if min(ends) < 0 else 0
        return self.combined(dtype, _XOR, a, b, (low, (1 << most) - 1))

    def union(self, a: Form, b: Form, dtype: DType) -> Form:
        """Return ``a | b``; disjoint bits are added."""
        for x, y in ((a, b), (b, a)):
            if y.bounds[0] >= 0:
                _, small = x.split(1 << y.bounds[1].bit_length())
                if not small.terms and not small.const:
                    return x.plus(y)
        ends = (*a.bounds, *b.bounds)
        most = max(x.bit_length() for x in ends)
        low = -(1 << most) if min(ends) < 0 else 0
        return self.combined(dtype, BinaryOp.BITOR, a, b, (low, (1 << most) - 1))

    def extreme(self, op: BinaryOp, a: Form, b: Form, dtype: DType) -> Form:
        """Return the smaller or larger of two sums."""
        low, high = a.plus(b.times(-1)).bounds
        if low >= 0:
            return b if op is BinaryOp.MIN else a
        if high <= 0:
            return a if op is BinaryOp.MIN else b
        pick = min if op is BinaryOp.MIN else max
        bounds = (pick(a.bounds[0], b.bounds[0]), pick(a.bounds[1], b.bounds[1]))
        return self.combined(dtype, op, a, b, bounds)


def _digits(value: Form, c: int) -> Iterator[tuple[int, Form, Form]]:
    """Yield ``(unit, big, small)`` with ``value == unit*big + small`` and `small` below `unit`.

    Units are common factors of `c` and a factor in the sum, largest first, without 1. A multiple
    of the unit that `small` is known to hold goes to `big`.
    """
    for unit in sorted({math.gcd(k, c) for _, k in value.terms} - {1}, reverse=True):
        big, small = value.split(unit)
        low, high = small.bounds
        held = low // unit
        if high // unit == held:
            yield unit, big.plus(Form((), held)), small.plus(Form((), -held * unit))


def _power_of_two_in(value: Form) -> int:
    """Return the largest power of two that divides a sum term by term; 0 for 0."""
    common = math.gcd(value.const, *(c for _, c in value.terms))
    return common & -common
