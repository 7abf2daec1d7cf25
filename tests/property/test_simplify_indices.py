"""Simplified index expressions have the same value everywhere, and never overflow on the way."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.device_programs import flat, store
from tile_core.dtypes import dtype_of
from tile_core.ir.arith import binary, cast, const, maximum, minimum, select
from tile_core.ir.evaluate import evaluate
from tile_core.ir.expr import BinaryOp, Const, Expr, Var
from tile_core.ir.interval import Interval
from tile_core.ir.node import walk
from tile_core.ir.printer import print_expr_text
from tile_core.simt.simplify import simplify_indices

T, U, V = (Var(name, dtype_of("int32")) for name in "tuv")
OUT = flat("out", 1, "float32")
COMPARISONS = [op for op in BinaryOp if op.is_comparison]

numbers = st.sampled_from([0, 1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 32, -1, -3, -8])
divisors = st.sampled_from([1, 2, 3, 4, 6, 8, 16, 24, 32, 64])
leaves = st.one_of(st.sampled_from([T, U, V]), numbers.map(const))
sums = st.tuples(*[st.sampled_from([0, 1, 1, 2, 4, 8, 16, 32, -1])] * 3, numbers).map(
    lambda k: T * k[0] + U * k[1] + V * k[2] + k[3]
)


def grow(parts):
    pairs = st.tuples(parts, parts)
    by = st.tuples(parts, divisors)
    return st.one_of(
        pairs.map(lambda p: p[0] + p[1]),
        pairs.map(lambda p: p[0] - p[1]),
        pairs.map(lambda p: p[0] ^ p[1]),
        pairs.map(lambda p: p[0] | p[1]),
        pairs.map(lambda p: p[0] * p[1]),
        pairs.map(lambda p: minimum(*p)),
        pairs.map(lambda p: maximum(*p)),
        st.tuples(parts, numbers).map(lambda p: p[0] * p[1]),
        by.map(lambda p: p[0] // p[1]),
        by.map(lambda p: p[0] % p[1]),
        by.map(lambda p: binary(BinaryOp.TRUNCDIV, *p)),
        by.map(lambda p: binary(BinaryOp.TRUNCMOD, *p)),
        st.tuples(parts, st.sampled_from([1, 3, 6, 7, 12, 15])).map(lambda p: p[0] & p[1]),
        st.tuples(parts, st.integers(1, 3)).map(lambda p: p[0] >> p[1]),
        st.tuples(parts, st.integers(1, 3)).map(lambda p: p[0] << p[1]),
        parts.map(lambda p: ~p),
        parts.map(lambda p: -p),
        parts.map(lambda p: cast(cast(p, "int64"), "int32")),
        st.tuples(st.sampled_from(COMPARISONS), pairs, pairs).map(
            lambda p: select(binary(p[0], *p[1]), *p[2])
        ),
    )


expressions = st.recursive(st.one_of(leaves, sums), grow, max_leaves=8)
ranges = st.tuples(
    *[st.tuples(st.sampled_from([0, 0, 0, -3, 5]), st.sampled_from([0, 1, 3, 6, 7, 15, 31]))] * 3
).map(lambda p: {v: Interval(low, low + n) for v, (low, n) in zip((T, U, V), p, strict=True)})


def points(known: dict[Var, Interval]) -> list[dict[Var, int]]:
    box = [range(known[v].low, known[v].high + 1) for v in (T, U, V)]
    all_ = [dict(zip((T, U, V), p, strict=True)) for p in itertools.product(*box)]
    return all_ if len(all_) <= 200 else random.Random(0).sample(all_, 200)


def in_range(expr: Expr, where: dict[Var, int]) -> bool:
    """Whether no part of an int32 expression overflows."""
    parts = [n for n in walk(expr) if isinstance(n, Expr) and n.dtype == "int32"]
    return all(-(2**31) <= evaluate(n, where) < 2**31 for n in parts)


def simplified(index: Expr, known: dict[Var, Interval]) -> Expr:
    (result,) = simplify_indices(store(OUT, index, 0.0), known).indices
    return result


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
    value = simplify_indices(
        store(flat("truths", 1, "bool"), 0, condition), known
    ).value  # fmt: skip
    for where in points(known):
        if in_range(a, where) and in_range(b, where):
            assert evaluate(value, where) == evaluate(condition, where)


@given(sums, divisors, divisors, st.integers(0, 40), ranges)
def test_mixed_radices_fold_back_to_the_number(number, inner, outer, offset, known):
    """Splitting a natural number into digits and putting it together needs no division."""
    natural = {v: Interval(max(0, r.low), max(0, r.high)) for v, r in known.items()}
    number = maximum(number, 0) + offset
    digits = number // (inner * outer), number // inner % outer, number % inner
    joined = (digits[0] * outer + digits[1]) * inner + digits[2]
    result = simplified(joined, natural)
    assert print_expr_text(result) == print_expr_text(simplified(number, natural))


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
