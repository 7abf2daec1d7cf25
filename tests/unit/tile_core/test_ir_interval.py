"""Bounds of expressions contain every value; differences are exact."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_core.arith.affine import same_extent, subtract
from tile_core.arith.interval import UNBOUNDED, Interval, combine
from tile_core.arith.interval_analysis import interval
from tile_core.dtypes import dtype_of
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Binary, BinaryOp, Const, Expr, Load, Unary, Var
from tile_core.ir.free_variables import structure

INT32 = dtype_of("int32")
X, Y, Z = (Var(name, INT32) for name in "xyz")
VALUES: dict[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.ADD: operator.add,
    BinaryOp.SUB: operator.sub,
    BinaryOp.MUL: operator.mul,
    BinaryOp.FLOORDIV: operator.floordiv,
    BinaryOp.FLOORMOD: operator.mod,
    BinaryOp.MIN: min,
    BinaryOp.MAX: max,
}
LINEAR = (BinaryOp.ADD, BinaryOp.SUB)


def evaluate(expr: Expr, env: Mapping[Var, int]) -> int:
    match expr:
        case Const(value=value):
            return int(value)
        case Var():
            return env[expr]
        case Unary(a=a):
            return -evaluate(a, env)
        case Binary(op=op, a=a, b=b):
            return VALUES[op](evaluate(a, env), evaluate(b, env))
    raise AssertionError(expr)


def expressions(ops: tuple[BinaryOp, ...]) -> st.SearchStrategy[Expr]:
    leaves = st.sampled_from([X, Y, Z]) | st.integers(-9, 9).map(lambda n: build_expr.const(n))

    def combine(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        plain = st.builds(
            lambda op, a, b: build_expr.binary(op, a, b), st.sampled_from(ops), inner, inner
        )
        scaled = st.builds(lambda a, n: a * n, inner, st.integers(-4, 4))
        divided = st.builds(lambda a, n: a // n + a % n, inner, st.integers(1, 5))
        return (
            plain | scaled | (divided if BinaryOp.MUL in ops else scaled) | inner.map(operator.neg)
        )

    return st.recursive(leaves, combine, max_leaves=8)


ends = st.none() | st.integers(-6, 6)


@st.composite
def ranged_values(draw: st.DrawFn) -> tuple[dict[Var, Interval], dict[Var, int]]:
    ranges, values = {}, {}
    for var in (X, Y, Z):
        value = draw(st.integers(-20, 20))
        low, high = draw(ends), draw(ends)
        low = None if low is None or low > value else low
        high = None if high is None or high < value else high
        ranges[var], values[var] = Interval(low, high), value
    return ranges, values


@given(expressions((*LINEAR, BinaryOp.MUL, BinaryOp.MIN, BinaryOp.MAX)), ranged_values())
def test_bounds_contain_every_value(expr, drawn):
    ranges, values = drawn
    bounds, value = interval(expr, ranges), evaluate(expr, values)
    assert bounds.low is None or bounds.low <= value
    assert bounds.high is None or value <= bounds.high


def test_bounds_are_as_tight_as_the_language_needs():
    ranges = {X: Interval(0, 7), Y: Interval(0, None)}
    assert interval(-X - 1, ranges) == Interval(-8, -1)
    assert interval(X * 8 + 3, ranges) == Interval(3, 59)
    assert interval(-(Y * 4) - 2, ranges) == Interval(None, -2)
    assert interval(Y % 8, ranges) == Interval(0, 7)
    assert interval(X // 2, ranges) == Interval(0, 3)
    assert interval(build_expr.minimum(Y, X), ranges) == Interval(0, 7)
    assert interval(X - 10, ranges) == Interval(-10, -3)
    assert interval(Z, ranges) == Interval(None, None)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (X, "int64", (0, 7)), (X, "int8", (0, 7)), (X + 120, "int8", (120, 127)),
        (X + 121, "int8", (-128, 127)), (X - 1, "uint8", (0, 255)), (Y, "int8", (-128, 127)),
        (Y, "int64", (None, None)), (X, "bool", (0, 1)),
    ],
)  # fmt: skip
def test_casts_keep_bounds_that_fit(value, dtype, expected):
    ranges = {X: Interval(0, 7), Y: Interval(0, None)}
    assert interval(build_expr.cast(value, dtype), ranges) == Interval(*expected)


@given(expressions(LINEAR), expressions(LINEAR), ranged_values())
def test_differences_are_exact(a, b, drawn):
    values = drawn[1]
    difference = subtract(a, b)
    known = difference if isinstance(difference, int) else evaluate(difference, values)
    assert known == evaluate(a, values) - evaluate(b, values)


@given(expressions(LINEAR), st.integers(-50, 50))
def test_what_moves_together_cancels(a, n):
    assert subtract(a + n, a) == n
    assert same_extent(a + n, n + a)
    assert n == 0 or not same_extent(a + n, a)


def test_loads_are_equal_only_at_one_moment():
    buffer = Buffer("A", (8,), INT32, Scope.GLOBAL)
    first, second = Load(buffer, (X,)), Load(buffer, (X,))
    assert subtract(first + 4, second, together=True) == 4
    assert not isinstance(subtract(first + 4, second), int)
    assert structure(first) != structure(second)
    assert structure(first, together=True) == structure(second, together=True)


@given(
    st.sampled_from(list(BinaryOp)),
    st.tuples(st.integers(-9, 9), st.integers(-9, 9)),
    st.tuples(st.integers(-9, 9), st.integers(-9, 9)),
)
def test_operands_without_values_give_no_bounds(op, a, b):
    """The counter of a loop that never runs is above its end and below its start."""
    found = combine(op, a, b)
    if a[0] > a[1] or b[0] > b[1]:
        assert found == UNBOUNDED
