"""What expressions are made of: how each operation is written, computed and bounded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fuzz.elements import ELEMENTS
from fuzz.program import Expr

Bounds = tuple[int, int]


@dataclass(frozen=True)
class Operation:
    """How an operation is written (``{0}`` is its first operand), computed and bounded."""

    text: str
    compute: Callable[..., np.ndarray]
    bounds: Callable[..., Bounds]
    floats: bool = True
    """Whether floats have it."""


def _corners(f: Callable[[int, int], int]) -> Callable[[Bounds, Bounds], Bounds]:
    def bounds(a: Bounds, b: Bounds) -> Bounds:
        values = [f(x, y) for x in a for y in b]
        return min(values), max(values)

    return bounds


def _magnitude(a: Bounds) -> Bounds:
    low = 0 if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1]))
    return low, max(abs(a[0]), abs(a[1]))


def _bits(a: Bounds, b: Bounds) -> Bounds:
    """Return the numbers with as many bits as the wider operand."""
    width = max(v.bit_length() if v >= 0 else (~v).bit_length() for v in (*a, *b))
    return (-(1 << width) if min(*a, *b) < 0 else 0), (1 << width) - 1


def _quotient(a: Bounds, b: Bounds) -> Bounds:
    ends = [x // y for x in a for y in (*b, 1, -1) if y and b[0] <= y <= b[1]]
    return min(ends), max(ends)


def _remainder(a: Bounds, b: Bounds) -> Bounds:
    return min(b[0] + 1, 0), max(b[1] - 1, 0)


def _either(c: Bounds, a: Bounds, b: Bounds) -> Bounds:
    return min(a[0], b[0]), max(a[1], b[1])


OPERATIONS = {
    "add": Operation("({0} + {1})", np.add, _corners(lambda a, b: a + b)),
    "sub": Operation("({0} - {1})", np.subtract, _corners(lambda a, b: a - b)),
    "mul": Operation("({0} * {1})", np.multiply, _corners(lambda a, b: a * b)),
    "min": Operation("T.min({0}, {1})", np.minimum, _corners(min)),
    "max": Operation("T.max({0}, {1})", np.maximum, _corners(max)),
    "neg": Operation("(-{0})", np.negative, lambda a: (-a[1], -a[0])),
    "abs": Operation("T.abs({0})", np.abs, _magnitude),
    "half": Operation(
        "T.floor({0} * 0.5)", lambda a: np.floor(a * 0.5), lambda a: (a[0] // 2, a[1] // 2)
    ),
    "div": Operation("({0} // {1})", np.floor_divide, _quotient, floats=False),
    "mod": Operation("({0} % {1})", np.mod, _remainder, floats=False),
    "and": Operation("({0} & {1})", np.bitwise_and, _bits, floats=False),
    "or": Operation("({0} | {1})", np.bitwise_or, _bits, floats=False),
    "xor": Operation("({0} ^ {1})", np.bitwise_xor, _bits, floats=False),
    "shl": Operation("({0} << {1})", np.left_shift, _corners(lambda a, b: a << b), floats=False),
    "shr": Operation("({0} >> {1})", np.right_shift, _corners(lambda a, b: a >> b), floats=False),
    "cast": Operation("T.cast({0}, {dtype!r})", lambda a: a, lambda a: a),
    "astype": Operation("{0}.astype({dtype!r})", lambda a: a, lambda a: a),
    "if_then_else": Operation("T.if_then_else({0}, {1}, {2})", np.where, _either),
    "ternary": Operation("({1} if {0} else {2})", np.where, _either),
    "select": Operation("T.Select({0}, {1}, {2})", np.where, _either),
}
"""Of numbers to numbers of one type, but for casts and the first operand of a choice."""

LAZY = ("if_then_else", "ternary")
"""They evaluate one of their values only: what the other one would read may not be there."""

COMPARISONS = {
    "lt": Operation("({0} < {1})", np.less, lambda a, b: (0, 1)),
    "le": Operation("({0} <= {1})", np.less_equal, lambda a, b: (0, 1)),
    "ge": Operation("({0} >= {1})", np.greater_equal, lambda a, b: (0, 1)),
    "eq": Operation("({0} == {1})", np.equal, lambda a, b: (0, 1)),
    "ne": Operation("({0} != {1})", np.not_equal, lambda a, b: (0, 1)),
}

LOGIC = {
    "both": Operation("T.And({0}, {1})", np.minimum, lambda a, b: (0, 1)),
    "any": Operation("T.Or({0}, {1})", np.maximum, lambda a, b: (0, 1)),
    "not": Operation("T.Not({0})", lambda a: 1 - a, lambda a: (0, 1)),
}

ALL = OPERATIONS | COMPARISONS | LOGIC


def const(value: int, dtype: str = "int32") -> Expr:
    return Expr("const", dtype, value, value, data=value)


def name(text: str, low: int, high: int, dtype: str = "int32") -> Expr:
    return Expr("name", dtype, low, high, data=text)


def load(buffer: str, dtype: str, bounds: Bounds, *index: Expr) -> Expr:
    return Expr("load", dtype, *bounds, args=index, data=buffer)


def apply(kind: str, *args: Expr, dtype: str | None = None) -> Expr:
    """Return an operation; its bounds follow, all that the type has if it may wrap."""
    operation = ALL[kind]
    chosen = dtype or ("bool" if kind in COMPARISONS or kind in LOGIC else args[-1].dtype)
    low, high = operation.bounds(*((a.low, a.high) for a in args))
    made = Expr(kind, chosen, low, high, args)
    if made.fits or not ELEMENTS[chosen].wraps:
        return made
    element = ELEMENTS[chosen]
    return Expr(kind, chosen, element.low, element.high, args)


def clamp(value: Expr, low: int, high: int) -> Expr:
    """Return `value`, limited where it may be beyond."""
    if value.high > high:
        value = apply("min", value, const(high, value.dtype))
    if value.low < low:
        value = apply("max", value, const(low, value.dtype))
    return value


def cast(value: Expr, dtype: str, kind: str = "cast") -> Expr:
    """Return `value` in another type, limited to what is exact there."""
    if value.dtype == dtype:
        return value
    element = ELEMENTS[dtype]
    return apply(kind, clamp(value, element.low, element.high), dtype=dtype)
