"""Bounds of integer expressions contain every value, in each analysis that gives them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_core.arith.bounds import Bounds
from tile_core.arith.constraints import ConstraintSet
from tile_core.arith.interval import Ends, Interval, combine, intersection
from tile_core.arith.interval_analysis import interval
from tile_core.dtypes import dtype_of
from tile_core.ir.build_expr import const
from tile_core.ir.expr import Binary, BinaryOp, Cast, Const, Expr, Select, Var

BOOL, INT32, INT64 = dtype_of("bool"), dtype_of("int32"), dtype_of("int64")
X, Y = Var("x", INT32), Var("y", INT32)
FUNCTIONS = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.FLOORDIV: lambda a, b: a // b,
    BinaryOp.FLOORMOD: lambda a, b: a % b,
    BinaryOp.TRUNCDIV: lambda a, b: (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1),
    BinaryOp.TRUNCMOD: lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1),
    BinaryOp.MIN: min,
    BinaryOp.MAX: max,
    BinaryOp.BITAND: lambda a, b: a & b,
    BinaryOp.BITOR: lambda a, b: a | b,
    BinaryOp.BITXOR: lambda a, b: a ^ b,
    BinaryOp.SHL: lambda a, b: a << b,
    BinaryOp.SHR: lambda a, b: a >> b,
}
DIVIDES = {BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD}
SHIFTS = {BinaryOp.SHL, BinaryOp.SHR}
FAR = 40
"""Values beyond the finite ends that stand for those of a range without an end."""


def is_defined(op: BinaryOp, b: int) -> bool:
    return not ((op in DIVIDES and b == 0) or (op in SHIFTS and not 0 <= b < 32))


def values(ends: Ends) -> range:
    low, high = ends
    return range(-FAR if low is None else low, (FAR if high is None else high) + 1)


@st.composite
def ranges(draw: st.DrawFn) -> Ends:
    low, high = sorted(draw(st.tuples(st.integers(-9, 9), st.integers(-9, 9))))
    return draw(st.sampled_from([(low, high), (low, high), (None, high), (low, None)]))


@given(st.sampled_from(sorted(FUNCTIONS, key=str)), ranges(), ranges())
def test_operations_stay_within_their_bounds(op: BinaryOp, a: Ends, b: Ends) -> None:
    low, high = combine(op, a, b)
    for x, y in itertools.product(values(a), values(b)):
        if is_defined(op, y):
            value = FUNCTIONS[op](x, y)
            assert low is None or low <= value, (x, y)
            assert high is None or value <= high, (x, y)


ATTAINED = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.MIN, BinaryOp.MAX)


@given(st.sampled_from(ATTAINED), ranges(), ranges())
def test_finite_bounds_are_attained(op: BinaryOp, a: Ends, b: Ends) -> None:
    found = [FUNCTIONS[op](x, y) for x, y in itertools.product(values(a), values(b))]
    if None not in (*a, *b):
        assert combine(op, a, b) == (min(found), max(found))


def evaluate(expr: Expr, x: int, y: int) -> int:
    match expr:
        case Const(value=value):
            return int(value)
        case Var():
            return x if expr is X else y
        case Select(cond=Binary(a=a, b=b), then=then, otherwise=otherwise):
            holds = evaluate(a, x, y) < evaluate(b, x, y)
            return evaluate(then if holds else otherwise, x, y)
        case Binary(op=op, a=a, b=b):
            return FUNCTIONS[op](evaluate(a, x, y), evaluate(b, x, y))
    raise AssertionError(expr)


def indices() -> st.SearchStrategy[Expr]:
    """Expressions of x and y as kernels index with: divisors and shifts are constants."""
    leaves = st.sampled_from([X, Y]) | st.integers(0, 9).map(const)
    free = sorted(FUNCTIONS.keys() - DIVIDES - SHIFTS, key=str)
    divisions, shifts = sorted(DIVIDES, key=str), sorted(SHIFTS, key=str)

    def grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        return (
            st.builds(lambda op, a, b: Binary(op, a, b, INT32), st.sampled_from(free), inner, inner)
            | st.builds(
                lambda op, a, n: Binary(op, a, const(n), INT32),
                *(st.sampled_from(divisions), inner, st.integers(1, 9)),
            )
            | st.builds(
                lambda op, a, n: Binary(op, a, const(n), INT32),
                *(st.sampled_from(shifts), inner, st.integers(0, 3)),
            )
            | st.builds(
                lambda a, b, c: Select(Binary(BinaryOp.LT, a, b, BOOL), b, c), inner, inner, inner
            )
        )

    return st.recursive(leaves, grown, max_leaves=7)


def all_bounds(expr: Expr, x: Ends, y: Ends) -> dict[str, Ends]:
    """Return bounds of an expression by every analysis, for finite ranges of x and y."""
    env, bounds = ConstraintSet(), Bounds()
    for var, (low, high) in ((X, x), (Y, y)):
        assert low is not None
        assert high is not None
        env = env.with_loop(var, low, high + 1)
        bounds.bind(var, low, high)
    return {
        "interval": interval(expr, {X: Interval(*x), Y: Interval(*y)}).ends,
        "ConstraintSet": env.bounds(expr).ends,
        "Bounds": bounds.of(expr),
    }


@given(indices(), st.integers(-4, 4), st.integers(-4, 4))
def test_every_analysis_contains_every_value(expr: Expr, x: int, y: int) -> None:
    for name, (low, high) in all_bounds(expr, (x, x + 3), (y, y + 5)).items():
        for at in itertools.product(range(x, x + 4), range(y, y + 6)):
            value = evaluate(expr, *at)
            assert low is None or low <= value, (name, at)
            assert high is None or value <= high, (name, at)


def is_within(inner: Ends, outer: Ends) -> bool:
    low, high = outer
    return (low is None or (inner[0] is not None and inner[0] >= low)) and (
        high is None or (inner[1] is not None and inner[1] <= high)
    )


@given(indices(), st.integers(-4, 4), st.integers(-4, 4))
def test_what_is_known_at_a_place_is_never_weaker_than_plain_intervals(
    expr: Expr, x: int, y: int
) -> None:
    found = all_bounds(expr, (x, x + 3), (y, y + 5))
    assert is_within(found["ConstraintSet"], found["interval"])
    assert is_within(intersection(found["ConstraintSet"], (-(2**31), 2**31 - 1)), found["Bounds"])


@pytest.mark.parametrize(
    ("expr", "truth"),
    [
        (X & 7, (0, 7)),
        (X ^ 5, (0, 63)),
        (X ^ Y, (0, 63)),
        (X | 3, (3, 63)),
        (X >> 2, (0, 15)),
        (X << 2, (0, 252)),
        (X % 8, (0, 7)),
        ((X % 8) - (X % 8), (0, 0)),
        ((X >> 2) - (X >> 2), (0, 0)),
        (Binary(BinaryOp.MIN, X, Y, INT32), (0, 63)),
        (X * Y, (0, 3969)),
        ((X * 8 + Y % 8) // 8, (0, 63)),
        (~X, (-64, -1)),
        (X // 4 + Y // 4, (0, 30)),
        (Cast(INT32, Cast(INT64, X)), (0, 63)),
        (Cast(INT32, X < 9), (0, 1)),
        (Cast(INT32, X < 64), (1, 1)),
    ],
)
def test_analyses_agree_on_what_kernels_index_with(expr: Expr, truth: Ends) -> None:
    found = all_bounds(expr, (0, 63), (0, 63))
    assert found == dict.fromkeys(found, truth)


@given(indices(), st.integers(-4, 4), st.integers(-4, 4))
def test_divisors_divide_every_value(expr: Expr, x: int, y: int) -> None:
    env = ConstraintSet().with_loop(X, x, x + 4).with_loop(Y, y, y + 6)
    divisor = env.multiple_of(expr)
    for at in itertools.product(range(x, x + 4), range(y, y + 6)):
        value = evaluate(expr, *at)
        assert value == 0 if divisor == 0 else value % divisor == 0, at


@pytest.mark.parametrize(
    ("expr", "divisor"),
    [(X * 8 + 4, 4), ((X * 8) * (Y * 3), 24), ((X * 12) % 8, 4), (X & -16, 16), (X * 4 | 8, 4)],
)
def test_divisors_of_what_kernels_index_with(expr: Expr, divisor: int) -> None:
    env = ConstraintSet().with_loop(X, 0, 64).with_loop(Y, 0, 64)
    assert env.multiple_of(expr) == divisor
