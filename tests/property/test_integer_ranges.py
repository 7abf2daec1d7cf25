"""Bounds of integer expressions contain every value, in each analysis that gives them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_core.arith.bounds import Bounds
from tile_core.arith.constraints import ConstraintSet
from tile_core.arith.interval import Ends, Interval, combine, compare, intersection
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
TRUTHS = {BinaryOp.AND, BinaryOp.OR}
RELATIONS = {
    BinaryOp.LT: lambda a, b: a < b,
    BinaryOp.LE: lambda a, b: a <= b,
    BinaryOp.GT: lambda a, b: a > b,
    BinaryOp.GE: lambda a, b: a >= b,
    BinaryOp.EQ: lambda a, b: a == b,
    BinaryOp.NE: lambda a, b: a != b,
    BinaryOp.AND: lambda a, b: a and b,
    BinaryOp.OR: lambda a, b: a or b,
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


def is_within(inner: Ends, outer: Ends) -> bool:
    low, high = outer
    return (low is None or (inner[0] is not None and inner[0] >= low)) and (
        high is None or (inner[1] is not None and inner[1] <= high)
    )


ENDS = (-6, -1, 0, 1, 5)
RANGES: list[Ends] = [
    (low, high)
    for low in (None, *ENDS)
    for high in (*ENDS, None)
    if low is None or high is None or low <= high
]
DEFINED = {op: (1, None) for op in DIVIDES} | {op: (0, 31) for op in SHIFTS}
"""Second operands of which bounds tell something."""
LOOSE = {BinaryOp.FLOORMOD, BinaryOp.TRUNCMOD, BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR}
"""Operations whose bounds need not be attained."""


@pytest.mark.parametrize("op", [*FUNCTIONS, *RELATIONS], ids=str)
def test_bounds_of_an_operation_hold_and_are_attained(op: BinaryOp) -> None:
    """Operands lie between all pairs of a few ends, or have no end."""
    function, bounds = (FUNCTIONS[op], combine) if op in FUNCTIONS else (RELATIONS[op], compare)
    every = values((None, None))
    table = [[function(x, y) if is_defined(op, y) else None for y in every] for x in every]
    least, most = (
        np.array([[none if value is None else int(value) for value in row] for row in table])
        for none in (1 << 60, -(1 << 60))
    )
    for a, b in itertools.product(RANGES, RANGES):
        if op in TRUTHS and not all(is_within(ends, (0, 1)) for ends in (a, b)):
            continue
        part = tuple(slice(all_of[0] + FAR, all_of[-1] + FAR + 1) for all_of in map(values, (a, b)))
        truth = int(least[part].min()), int(most[part].max())
        found = bounds(op, a, b)
        assert truth[0] > truth[1] or is_within(truth, found), (a, b)
        if op in LOOSE or (op in DEFINED and not is_within(b, DEFINED[op])):
            continue
        for each, wanted in zip(found, truth, strict=True):
            assert each == wanted or (each is None and None in (*a, *b)), (a, b)


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
