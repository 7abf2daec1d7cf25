"""Simplified index expressions have the same value everywhere, and never overflow on the way."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.index_strategies import (
    COMPARISONS,
    T,
    U,
    V,
    divisors,
    expressions,
    in_range,
    points,
    ranges,
    sums,
)
from tile_core.arith.evaluate import evaluate
from tile_core.arith.interval import Interval
from tile_core.arith.simplify import Ranges, Simplifier
from tile_core.ir.build_expr import binary, cast, maximum
from tile_core.ir.expr import Const, Expr, Var
from tile_core.ir.printer import print_expr_text


def simplified(index: Expr, known: dict[Var, Interval]) -> Expr:
    return Simplifier(Ranges(known)).index(index)


@given(expressions, ranges)
def test_simplifying_keeps_every_value(index, known):
    result = simplified(index, known)
    assert result.dtype == index.dtype
    for where in points(known):
        if in_range(index, where):
            text = f"{print_expr_text(index)} -> {print_expr_text(result)} at {where}"
            assert evaluate(result, where) == evaluate(index, where), text
            assert in_range(result, where), text


@given(expressions, expressions, st.sampled_from(COMPARISONS), ranges)
def test_decided_comparisons_are_decided_right(a, b, op, known):
    condition = binary(op, a, b)
    value = Simplifier(Ranges(known)).expr(condition)
    for where in points(known):
        if in_range(a, where) and in_range(b, where):
            assert evaluate(value, where) == evaluate(condition, where)


# 4u + 12 holds one 32 more than it seems to.
@example(V * 32 + U * 4, 32, 2, 12, {T: Interval(0, 0), U: Interval(5, 6), V: Interval(0, 1)})
@given(sums, divisors, divisors, st.integers(0, 40), ranges)
def test_mixed_radices_fold_back_to_the_number(number, inner, outer, offset, known):
    """Splitting a natural number into digits and putting it together needs no division."""
    natural = {v: Interval(max(0, r.low), max(0, r.high)) for v, r in known.items()}
    number = maximum(number, 0) + offset
    digits = number // (inner * outer), number // inner % outer, number % inner
    joined = (digits[0] * outer + digits[1]) * inner + digits[2]
    result = simplified(joined, natural)
    assert print_expr_text(result) == print_expr_text(simplified(number, natural))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("factor", [1, 4096, 2**20])
@given(sums, sums, ranges)
def test_wide_indices_are_narrow_where_that_suffices(factor, row, column, known):
    index = cast(row, "int64") * factor + cast(column, "int64")
    result = simplified(index, known)
    fits = True
    for where in points(known):
        assert evaluate(result, where) == evaluate(index, where)
        fits = fits and in_range(row * factor, where)
    if factor == 1:
        assert result.dtype == "int32"
    if result.dtype == "int32" and not isinstance(result, Const):
        assert all(in_range(result, where) for where in points(known))
