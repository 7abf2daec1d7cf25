"""Mixed-radix digits of coordinates: how a formula takes a box apart, and the way back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from tile_core.arith.affine import Linear
from tile_core.errors import LayoutError
from tile_core.ir.build_expr import binary
from tile_core.ir.expr import Binary, BinaryOp, Const, Expr, Var
from tile_core.layout.formula_bounds import reach
from tile_core.layout.formulas import (
    as_index,
    coordinate,
    evaluate,
    linear_form,
    same_expr,
    simplify,
    to_text,
)
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Digit:
    """``(source // unit) % extent``: a range of places of a coordinate, or of a sum of some."""

    source: Expr
    unit: int
    extent: int

    @property
    def end(self) -> int:
        """The unit of the next higher digit."""
        return self.unit * self.extent


def digit_of(term: Expr, extents: Sequence[int]) -> Digit | None:
    """Return `term`, a simplified one, as a digit; None if it is none."""
    outer: int | None = None
    unit = 1
    source = term
    match source:
        case Binary(op=BinaryOp.FLOORMOD, a=inner, b=Const(value=int() as m)):
            source, outer = inner, m
    match source:
        case Binary(op=BinaryOp.FLOORDIV, a=inner, b=Const(value=int() as d)):
            source, unit = inner, d
    if not isinstance(source, Var) and not _is_numeral(source, extents):
        return None
    r = reach(source, extents)
    extent = -(-(r.hi + 1) // unit) if outer is None else outer
    return Digit(source, unit, extent)


def _is_numeral(expr: Expr, extents: Sequence[int]) -> bool:
    """Whether `expr` is a sum that coordinates write together, such as ``4*i + j``."""
    if not (isinstance(expr, Binary) and expr.op is BinaryOp.ADD):
        return False
    return places(linear_form(expr, extents), extents) is not None


def places(value: Linear, extents: Sequence[int]) -> list[tuple[Expr, int, int]] | None:
    """Return ``(term, unit, extent)`` of each place, lowest first, if the sum is a numeral.

    In a numeral each term can be read off by itself: it runs over ``0 <= t < extent``, the
    lowest unit is 1, and each next one is the product of the extents below.
    """
    if value.constant != 0:
        return None
    found: list[tuple[Expr, int, int]] = []
    unit = 1
    for atom, coef in sorted(value.terms, key=lambda item: item[1]):
        if coef != unit or atom.low != 0:
            return None
        found.append((atom.expr, unit, atom.high + 1))
        unit *= atom.high + 1
    return found


@dataclass(slots=True)
class _Solver:
    """Solves ``term == value`` for digits until every coordinate is known."""

    extents: tuple[int, ...]
    known: list[tuple[Digit, Expr]] = field(default_factory=list)
    pending: list[tuple[Expr, Expr, int]] = field(default_factory=list)
    opened: list[Expr] = field(default_factory=list)

    def demand(self, value: Linear, equals: Expr) -> bool:
        """Add the equation ``value == equals``; False if `value` is no numeral."""
        split = places(value, self.extents)
        if split is None:
            return False
        for term, unit, extent in split:
            self.pending.append((term, equals // unit % extent, extent))
        return True

    def solve(self) -> None:
        """Work through the equations as long as one of them tells something new."""
        progress = True
        while progress:
            progress = False
            waiting = []
            for equation in self.pending:
                if self.use(*equation):
                    progress = True
                else:
                    waiting.append(equation)
            self.pending = waiting
            progress = self.open_sources() or progress

    def use(self, term: Expr, value: Expr, extent: int) -> bool:
        """Learn a digit from ``term == value``, if the equation has just one unknown."""
        digit = digit_of(term, self.extents)
        if digit is not None:
            self.known.append((digit, value))
            return True
        match term:
            case Binary(op=BinaryOp.BITXOR, a=a, b=b):
                for mine, other in ((a, b), (b, a)):
                    digit, rest = digit_of(mine, self.extents), self.value_of(other)
                    if digit is not None and rest is not None:
                        self.known.append((digit, value ^ rest))
                        return True
            case Binary(op=BinaryOp.FLOORMOD, a=a, b=Const(value=int() as m)) if m == extent:
                return self.use_rotation(linear_form(a, self.extents), value, m)
        return False

    def use_rotation(self, total: Linear, value: Expr, modulus: int) -> bool:
        """Learn digit `d` from ``(d + rest) % modulus == value``.

        Of all terms only the remainders matter, so that is all that need be known of the rest.
        """
        for atom, coef in total.terms:
            digit = digit_of(simplify(atom.expr % modulus, self.extents), self.extents)
            shift = self.value_modulo(total.without(atom), modulus)
            if digit is not None and shift is not None and abs(coef) == 1:
                self.known.append((digit, (value - shift) * coef % modulus))
                return True
        return False

    def value_modulo(self, total: Linear, modulus: int) -> Expr | None:
        """Return a number congruent to `total`, which takes only the remainder of each term."""
        result: Expr = as_index(total.constant)
        for atom, coef in total.terms:
            needed = atom.expr % (modulus // math.gcd(coef, modulus))
            part = self.value_of(simplify(needed, self.extents))
            if part is None:
                return None
            result = result + part * coef
        return result

    def open_sources(self) -> bool:
        """Take a known sum of coordinates apart into its places."""
        for digit, _ in self.known:
            source = digit.source
            if isinstance(source, Var) or any(same_expr(source, s) for s in self.opened):
                continue
            value = self.read(source, 1, reach(source, self.extents).hi + 1)
            if value is not None:
                self.opened.append(source)
                return self.demand(linear_form(source, self.extents), value)
        return False

    def read(self, source: Expr, start: int, end: int) -> Expr | None:
        """Return ``source // start % (end // start)`` from the digits known so far."""
        total: Expr = as_index(0)
        at, top = start, reach(source, self.extents).hi + 1
        while at < end:
            for digit, value in self.known:
                covers = digit.unit <= at < digit.end and at % digit.unit == 0
                if not (covers and same_expr(digit.source, source)):
                    continue
                piece, stop = value // (at // digit.unit), end
                if end < top or digit.end < top:  # there is more above what is wanted
                    stop = min(end, digit.end)
                    if stop % at or (digit.end % stop and digit.end < top):
                        continue
                    piece = piece % (stop // at)
                total, at = total + piece * (at // start), stop
                break
            else:
                return None
        return total

    def value_of(self, expr: Expr) -> Expr | None:
        """Return `expr` in terms of what the digits are equal to; None if some are missing."""
        digit = digit_of(expr, self.extents)
        if digit is not None:
            found = self.read(digit.source, digit.unit, digit.end)
            if found is not None:
                return found
        match expr:
            case Const():
                return expr
            case Binary(op=BinaryOp.FLOORMOD, a=a, b=Const(value=int() as m)):
                total = linear_form(a, self.extents)
                shift = (
                    self.value_of(a) if total.single is not None else self.value_modulo(total, m)
                )
                return None if shift is None else shift % m
            case Binary(op=op, a=a, b=b):
                left, right = self.value_of(a), self.value_of(b)
                return None if left is None or right is None else binary(op, left, right)
        return None


def invert(outputs: Sequence[Expr], extents: Sequence[int], box: Sequence[int]) -> tuple[Expr, ...]:
    """Return the coordinates as formulas over ``outputs``, which are given to be a bijection.

    There is one for each dimension of `box`, over coordinates of extents `extents`; the products
    of both are equal.

    Raises `LayoutError` if the formulas are not digits of the coordinates, shifted or exchanged by
    exclusive or and rotation: then there is no formula here, only a table.
    """
    solver = _Solver(tuple(extents))
    for axis, output in enumerate(outputs):
        if not solver.demand(linear_form(output, extents), coordinate(axis)):
            raise LayoutError(
                f"coordinate {axis}, {to_text(output)}, is not a numeral made of digits "
                "of the inputs",
                hint="inverse_table gives the inverse as numbers",
            )
    solver.solve()
    result = []
    for axis, extent in enumerate(extents):
        value = solver.read(coordinate(axis), 1, extent)
        if value is None:
            raise LayoutError(
                f"no formula gives input {coordinate(axis).name} back from "
                f"({', '.join(map(to_text, outputs))})",
                hint="inverse_table gives the inverse as numbers",
            )
        result.append(simplify(value, box))
    return tuple(result)


def digits_in(expr: Expr, extents: Sequence[int]) -> list[Digit]:
    """Return the digits `expr` is made of, each once.

    Raises `LayoutError` if a coordinate occurs otherwise than in a digit.
    """
    found: list[Digit] = []

    def visit(node: Expr) -> None:
        is_sum = isinstance(node, Binary) and node.op in (BinaryOp.ADD, BinaryOp.SUB)
        digit = None if is_sum else digit_of(node, extents)
        if digit is not None:
            found.append(digit)
        elif isinstance(node, Binary):
            visit(node.a)
            visit(node.b)

    visit(simplify(expr, extents))
    return found


def leftover(used: Sequence[Digit], source: Expr, extent: int) -> list[Digit]:
    """Return the digits of `source` that `used` does not contain, lowest first.

    The highest one may have a larger extent than the values of `source` fill.

    Raises `LayoutError` if the digits overlap.
    """
    mine = sorted((d for d in used if same_expr(d.source, source)), key=lambda d: (d.unit, d.end))
    result: list[Digit] = []
    at = 1
    for digit in mine:
        if digit.end <= at:
            continue
        if digit.unit < at or digit.unit % at:
            raise LayoutError(
                f"the digits used of {to_text(source)} overlap: {to_text(_written(digit))}"
            )
        if digit.unit > at:
            result.append(Digit(source, at, digit.unit // at))
        at = digit.end
    if at < extent:
        result.append(Digit(source, at, -(-extent // at)))
    return result


def _written(digit: Digit) -> Expr:
    whole = digit.source // digit.unit
    return Binary(BinaryOp.FLOORMOD, whole, as_index(digit.extent), whole.dtype)


def digit_expr(digit: Digit) -> Expr:
    """Return the formula of a digit."""
    return digit.source // digit.unit % digit.extent


def row_major_position(coords: Sequence[Any], shape: Sequence[Any]) -> Any:
    """Return the row-major position of `coords` in a box of `shape`.

    Coordinates are integers, arrays of them, or expressions of any kind; so is the position.
    """
    position: Any = 0
    for coord, extent in zip(coords, shape, strict=True):
        position = position * extent + coord
    return position


def flatten_row_major(coords: Sequence[Expr], shape: Sequence[int]) -> Expr:
    """Return the formula of the row-major position of `coords` in a box of `shape`."""
    return as_index(row_major_position(coords, shape))


def unflatten_row_major(flat: Expr, shape: Sequence[int]) -> tuple[Expr, ...]:
    """Return the coordinates in a box of `shape` of the row-major position `flat`."""
    result: list[Expr] = []
    for extent in reversed(shape):
        result.append(flat % extent)
        flat = flat // extent
    return tuple(reversed(result))


def substitute(expr: Expr, coords: Sequence[Expr], extents: Sequence[int]) -> Expr:
    """Return `expr` at `coords`, simplified over a box of `extents`."""
    result = evaluate(expr, coords)
    return simplify(result if isinstance(result, Expr) else as_index(result), extents)
