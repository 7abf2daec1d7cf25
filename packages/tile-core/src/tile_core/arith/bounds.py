"""Finite bounds of integer expressions in a thread-level program, one step per node.

Index arithmetic does not overflow: blocks, threads, loops and extents count what fits in memory.
What the caller or memory gives may be any number of its type: sums, differences and products of
it wrap, and have the bounds of their type where the exact result might not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Protocol, TypeAlias

from tile_core.arith.affine import Linear
from tile_core.arith.interval import ANYTHING, Ends, Interval, combine, negated
from tile_core.arith.interval_analysis import IntervalAnalysis
from tile_core.dtypes import DType, dtype_of
from tile_core.ir.buffer import static_value
from tile_core.ir.build_expr import integer_bounds
from tile_core.ir.expr import (
    Binary,
    BinaryOp,
    Bitcast,
    Call,
    Cast,
    Const,
    Expr,
    Extent,
    Load,
    Unary,
    UnaryOp,
    Var,
)
from tile_core.ir.node import nodes_of
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


class Knowledge(Protocol):
    """What is known at a place of a program, such as a `ConstraintSet`."""

    @property
    def meaning(self) -> Mapping[Var, Linear]:
        """Names that stand for a value."""

    def bounds(self, expr: Extent) -> Interval:
        """Return bounds of an expression."""

    def is_bounded(self, var: Var) -> bool:
        """Whether more is known of a variable than its type and comparisons say."""


class Bounds(IntervalAnalysis):
    """What values integer expressions can have, given those of their variables.

    Variables that were never bound have any value of their type. Those `given` are no indices:
    the caller or memory gave them.
    """

    __slots__ = ("_arbitrary", "given", "ranges")

    def __init__(self) -> None:
        super().__init__()
        self.ranges: dict[Var, Range] = {}
        self.given: set[Var] = set()
        self._arbitrary: dict[Expr, bool] = {}

    def bind(self, var: Var, low: int, high: int) -> None:
        """State ``low <= var <= high`` from here on."""
        found = (low, high) if low <= high else (low, low)
        if self.ranges.get(var) == found:
            return
        if var in self.ranges or var in self.known:
            self.known.clear()
        self.ranges[var] = found

    def of(self, expr: Extent) -> Range:
        """Return bounds of `expr`, an integer, truth value or address."""
        found = self.known.get(expr) if isinstance(expr, Expr) else (expr, expr)
        if found is None:
            found = self.known[expr] = self.derived(expr)  # type: ignore[index, arg-type]
        return found  # type: ignore[return-value]

    def variable(self, var: Var) -> Range:
        """Return what was bound, or the limits of the type."""
        return self.ranges.get(var) or limits_of(var)

    def leaf(self, expr: Expr) -> Range:
        """Return the limits of the type."""
        return limits(expr.dtype)

    def fitted(self, exact: Ends, expr: Expr) -> Range:
        """Return bounds of `expr`: the limits of its type where it may wrap."""
        low, high = exact
        least, most = limits(expr.dtype)
        if low is None or high is None:
            return least, most
        if least <= low and high <= most:
            return low, high
        return (least, most) if self.is_arbitrary(expr) else fitted(low, high, expr.dtype)

    def is_natural(self, expr: Expr) -> bool:
        """Whether `expr` is never negative."""
        return self.of(expr)[0] >= 0

    def name(self, var: Var, value: Expr) -> None:
        """Remember whether `var`, an integer, stands for what is no index."""
        if self.is_arbitrary(value):
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
            found = self._arbitrary[expr] = _is_foreign(expr) or any(map(self.is_arbitrary, parts))
        return found

    def wraps(self, expr: Expr) -> bool:
        """Whether arithmetic in `expr` may wrap: what is proved of exact numbers may not hold."""
        return self.is_arbitrary(expr) and any(
            self.may_wrap(node) for node in nodes_of(expr, Binary, Unary) if node.dtype.is_int
        )

    def may_wrap(self, expr: Binary | Unary) -> bool:
        """Whether the exact result of ``a op b``, or ``-a``, may be no value of its type."""
        if expr.op not in WRAPPING or not self.is_arbitrary(expr):
            return False
        low, high = self.exact(expr)
        least, most = limits(expr.dtype)
        return low is None or high is None or low < least or high > most

    def exact(self, expr: Binary | Unary) -> Ends:
        """Return bounds of what ``a op b``, or ``-a``, is without a type's limits."""
        if isinstance(expr, Unary):
            return negated(self.of(expr.a))
        return combine(expr.op, self.of(expr.a), self.of(expr.b))


def _is_foreign(expr: Expr) -> bool:
    """Whether an integer comes from elsewhere than from integers of the program."""
    if isinstance(expr, Call):
        return expr.function.startswith("extern:")
    return isinstance(expr, Bitcast) or (isinstance(expr, Cast) and expr.value.dtype.is_float)


WRAPPING = frozenset({BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.SHL, UnaryOp.NEG})
"""Operations whose result may be no value of their type."""


class Ranges(Bounds):
    """Bounds that ask elsewhere for variables met for the first time.

    Those of which nothing is known there were given by the caller.
    """

    __slots__ = ("_indices", "source")

    def __init__(self, source: Knowledge | Mapping[Var, Interval]) -> None:
        super().__init__()
        self.source = source
        self._indices: set[Var] = set()

    def variable(self, var: Var) -> Range:
        """Return the range of `var`, remembered."""
        return self.learn(var)

    def is_given(self, var: Var) -> bool:
        """Whether the caller or memory gave a variable."""
        if var in self.given:
            return True
        if var in self.ranges or var in self._indices:
            return False
        found = var.dtype.is_int and self._comes_from_outside(var)
        (self.given if found else self._indices).add(var)
        return found

    def _comes_from_outside(self, var: Var) -> bool:
        source = self.source
        if isinstance(source, Mapping):
            return var.contract is None and source.get(var, ANYTHING) == ANYTHING
        meaning = source.meaning.get(var)
        if meaning is not None:
            return any(self.is_arbitrary(atom.expr) for atom, _ in meaning.terms)
        return var.contract is None and not source.is_bounded(var)

    def learn(self, var: Var) -> Range:
        """Return the range of `var`, remembered."""
        found = self.ranges.get(var)
        if found is None:
            found = self.ranges[var] = self._learnt(var)
        return found

    def _learnt(self, var: Var) -> Range:
        if not var.dtype.is_int:
            return limits_of(var)
        self.is_given(var)
        least, most = limits_of(var)
        source = self.source
        known = source.get(var, ANYTHING) if isinstance(source, Mapping) else source.bounds(var)
        low = least if known.low is None else max(least, known.low)
        high = most if known.high is None else min(most, known.high)
        return (low, high) if low <= high else (least, most)

    def copy(self) -> Ranges:
        """Return the same knowledge, to be extended apart."""
        made = Ranges(self.source)
        made.ranges.update(self.ranges)
        made.given.update(self.given)
        return made


def bind_indices(launch: Launch, bounds: Bounds) -> None:
    """State how far block and thread indices count."""
    for var, extent in zip(launch.block_vars, launch.grid, strict=True):
        blocks = static_value(extent)
        bounds.bind(var, 0, (MOST_INT32 if blocks is None else blocks) - 1)
    for var, threads in zip(launch.thread_vars, launch.threads, strict=True):
        bounds.bind(var, 0, threads - 1)
