"""Finite bounds of integer expressions in a thread-level program, one step per node.

Index arithmetic does not overflow: blocks, threads, loops and extents count what fits in memory.
What the caller or memory gives may be any number of its type: sums, differences and products of
it wrap, and have the bounds of their type where the exact result might not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

from tile_core.arith.constraints import ConstraintSet
from tile_core.arith.interval import Interval, combine
from tile_core.arith.linear import subtract
from tile_core.dtypes import DType, dtype_of
from tile_core.ir.arith import integer_bounds
from tile_core.ir.buffer import static_value
from tile_core.ir.expr import (
    Binary,
    BinaryOp,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Unary,
    UnaryOp,
    Var,
)
from tile_core.ir.node import walk
from tile_core.ir.stmt import Launch

Range: TypeAlias = "tuple[int, int]"
"""The smallest and the largest value, both included."""

_TRUTH: Range = (0, 1)
MOST_INT32 = 2**31 - 1
"""The largest int32: no grid and no extent is larger."""


@cache
def limits(dtype: DType) -> Range:
    """Return the smallest and largest value of an integer type, truth value or address."""
    if dtype.is_bool:
        return _TRUTH
    return integer_bounds(dtype if dtype.is_int else dtype_of("uint64"))


def limits_of(var: Var) -> Range:
    """Return the smallest and largest value of a variable of which nothing else is known."""
    least, most = limits(var.dtype)
    if var.contract is None:
        return least, most
    largest = var.contract.largest
    return max(least, var.contract.smallest), most if largest is None else min(most, largest)


def fitted(low: int, high: int, dtype: DType) -> Range:
    """Return what is left of bounds of an index once the result is of type `dtype`.

    Arithmetic of 32 bits and more with sign does not overflow there; all other wraps.
    """
    least, most = limits(dtype)
    if least <= low and high <= most:
        return low, high
    wraps = dtype.bits < 32 or dtype.kind.value != "int"
    if wraps or low > most or high < least:
        return least, most
    return max(low, least), min(high, most)


def is_beyond_indices(value: int) -> bool:
    """Whether a constant is too large for a part of an index: a sum with it may wrap."""
    return abs(value) >= 2**30


@dataclass(slots=True)
class Bounds:
    """What values integer expressions can have, given those of their variables.

    Variables that were never bound have any value of their type.

    Parameters
    ----------
    given
        Variables that are no indices: the caller or memory gave them.
    """

    ranges: dict[Var, Range] = field(default_factory=dict)
    known: dict[Expr, Range] = field(default_factory=dict)
    given: set[Var] = field(default_factory=set)
    _arbitrary: dict[Expr, bool] = field(default_factory=dict)

    def bind(self, var: Var, low: int, high: int) -> None:
        """State ``low <= var <= high`` from here on."""
        found = (low, high) if low <= high else (low, low)
        if self.ranges.get(var) == found:
            return
        if var in self.ranges or var in self.known:
            self.known.clear()
        self.ranges[var] = found

    def of(self, expr: Expr) -> Range:
        """Return bounds of `expr`, an integer, truth value or address."""
        found = self.known.get(expr)
        if found is None:
            found = self.known[expr] = self._of(expr)
        return found

    def is_natural(self, expr: Expr) -> bool:
        """Whether `expr` is never negative."""
        return self.of(expr)[0] >= 0

    def name(self, var: Var, value: Expr) -> None:
        """Remember whether `var` stands for what is no index."""
        if var.dtype.is_int and self.is_arbitrary(value):
            self.given.add(var)
            self._arbitrary.clear()

    def is_given(self, var: Var) -> bool:
        """Whether the caller or memory gave a variable."""
        return var in self.given

    def is_arbitrary(self, expr: Expr) -> bool:
        """Whether `expr` depends on what the caller or memory gave, or on a number like that."""
        kind = type(expr)
        if kind is Var:
            return self.is_given(expr)  # type: ignore[arg-type]
        if kind is Const:
            value = expr.value  # type: ignore[attr-defined]
            return isinstance(value, int) and is_beyond_indices(value)
        if kind is Load:
            return True
        found = self._arbitrary.get(expr)
        if found is None:
            parts = (node for node in expr.children() if isinstance(node, Expr))
            found = self._arbitrary[expr] = any(map(self.is_arbitrary, parts))
        return found

    def wraps(self, expr: Expr) -> bool:
        """Whether arithmetic in `expr` may wrap: what is proved of exact numbers may not hold."""
        return self.is_arbitrary(expr) and any(
            self._may_wrap(node)
            for node in walk(expr)
            if isinstance(node, (Binary, Unary)) and node.dtype.is_int
        )

    def _may_wrap(self, expr: Binary | Unary) -> bool:
        if expr.op not in _WRAPPING or not self.is_arbitrary(expr):
            return False
        if isinstance(expr, Unary):
            low, high = self.of(expr.a)
            exact: tuple[int | None, int | None] = (-high, -low)
        else:
            exact = combine(expr.op, self.of(expr.a), self.of(expr.b))
        least, most = limits(expr.dtype)
        return exact[0] is None or exact[1] is None or exact[0] < least or exact[1] > most

    def fitted(self, low: int, high: int, expr: Expr) -> Range:
        """Return bounds of `expr`, whose exact result is between `low` and `high`."""
        least, most = limits(expr.dtype)
        if least <= low and high <= most:
            return low, high
        return (least, most) if self.is_arbitrary(expr) else fitted(low, high, expr.dtype)

    def _of(self, expr: Expr) -> Range:
        kind = type(expr)
        if kind is Const:
            value = int(expr.value)  # type: ignore[attr-defined]
            return value, value
        if kind is Var:
            return self.ranges.get(expr) or limits_of(expr)  # type: ignore[call-overload, arg-type]
        rule = _RULES.get(kind)
        return limits(expr.dtype) if rule is None else rule(self, expr)


def _binary(bounds: Bounds, expr: Binary) -> Range:
    if not (expr.a.dtype.is_int or expr.a.dtype.is_bool):
        return limits(expr.dtype)
    if expr.op is BinaryOp.SUB and isinstance(known := subtract(expr.a, expr.b), int):
        return fitted(known, known, expr.dtype)
    a, b = bounds.of(expr.a), bounds.of(expr.b)
    condition = _CONDITIONS.get(expr.op)
    if condition is not None:
        return condition(a, b)
    low, high = combine(expr.op, a, b)
    return limits(expr.dtype) if low is None or high is None else bounds.fitted(low, high, expr)


def _unary(bounds: Bounds, expr: Unary) -> Range:
    low, high = bounds.of(expr.a)
    match expr.op:
        case UnaryOp.NEG:
            return bounds.fitted(-high, -low, expr)
        case UnaryOp.BITNOT:
            return fitted(~high, ~low, expr.dtype)
    return 1 - high, 1 - low


def _select(bounds: Bounds, expr: Select) -> Range:
    a, b = bounds.of(expr.then), bounds.of(expr.otherwise)
    return min(a[0], b[0]), max(a[1], b[1])


def _cast(bounds: Bounds, expr: Cast) -> Range:
    if expr.value.dtype.is_float:
        return limits(expr.dtype)
    low, high = bounds.of(expr.value)
    least, most = limits(expr.dtype)
    return (low, high) if least <= low and high <= most else (least, most)


_RULES: dict[type, Callable[[Bounds, Any], Range]] = {
    Binary: _binary,
    Unary: _unary,
    Select: _select,
    Cast: _cast,
}


_WRAPPING = frozenset({BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.SHL, UnaryOp.NEG})


class Ranges(Bounds):
    """Bounds that ask elsewhere for variables met for the first time.

    Those of which nothing is known there were given by the caller.
    """

    __slots__ = ("source",)

    def __init__(self, source: ConstraintSet | Mapping[Var, Interval]) -> None:
        super().__init__()
        self.source = source

    def is_given(self, var: Var) -> bool:
        """Whether the caller or memory gave a variable."""
        self.learn(var)
        return var in self.given

    def learn(self, var: Var) -> Range:
        """Return the range of `var`, remembered."""
        found = self.ranges.get(var)
        if found is None:
            found = self.ranges[var] = self._learnt(var)
        return found

    def _learnt(self, var: Var) -> Range:
        if not var.dtype.is_int:
            return _TRUTH
        least, most = limits_of(var)
        meaning = None
        if isinstance(self.source, ConstraintSet):
            known, meaning = self.source.bounds(var), self.source.meaning.get(var)
            is_known = known != Interval(None, None) and not self.source.is_compared(var)
        else:
            known = self.source.get(var, Interval(None, None))
            is_known = known != Interval(None, None)
        if meaning is not None:
            is_given = any(self.is_arbitrary(atom) for _, _, atom in meaning.parts())
        else:
            is_given = not is_known and var.contract is None
        if is_given:
            self.given.add(var)
        low = least if known.low is None else max(least, known.low)
        high = most if known.high is None else min(most, known.high)
        return (low, high) if low <= high else (least, most)

    def copy(self) -> Ranges:
        """Return the same knowledge, to be extended apart."""
        made = Ranges(self.source)
        made.ranges.update(self.ranges)
        made.given.update(self.given)
        return made


def _decided(yes: bool, no: bool) -> Range:
    return (1, 1) if yes else (0, 0) if no else _TRUTH


_CONDITIONS: dict[BinaryOp, Callable[[Range, Range], Range]] = {
    BinaryOp.LT: lambda a, b: _decided(a[1] < b[0], a[0] >= b[1]),
    BinaryOp.LE: lambda a, b: _decided(a[1] <= b[0], a[0] > b[1]),
    BinaryOp.GT: lambda a, b: _decided(a[0] > b[1], a[1] <= b[0]),
    BinaryOp.GE: lambda a, b: _decided(a[0] >= b[1], a[1] < b[0]),
    BinaryOp.EQ: lambda a, b: _decided(a[0] == a[1] == b[0] == b[1], a[1] < b[0] or b[1] < a[0]),
    BinaryOp.NE: lambda a, b: _decided(a[1] < b[0] or b[1] < a[0], a[0] == a[1] == b[0] == b[1]),
    BinaryOp.AND: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    BinaryOp.OR: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}


def bind_indices(launch: Launch, bounds: Bounds) -> None:
    """State how far block and thread indices count."""
    for var, extent in zip(launch.block_vars, launch.grid, strict=True):
        blocks = static_value(extent)
        bounds.bind(var, 0, (MOST_INT32 if blocks is None else blocks) - 1)
    for var, threads in zip(launch.thread_vars, launch.threads, strict=True):
        bounds.bind(var, 0, threads - 1)


def learnt(env: ConstraintSet, condition: Expr, *, holds: bool = True) -> ConstraintSet:
    """Return what is known where `condition` holds, or where it does not."""
    return env.assuming(condition, holds=holds, wraps=lambda known, part: Ranges(known).wraps(part))
