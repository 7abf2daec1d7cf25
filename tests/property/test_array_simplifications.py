"""Rules by which equations are made simpler: the value stays, of hostile numbers too."""

from __future__ import annotations

import math
import operator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.reduction_laws import value
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import Expr, const, load, make
from tile_api.arrays.equations.quotients import without_quotients
from tile_api.arrays.reductions.algebra import (
    expression,
    factors,
    polynomial,
    product,
    terms,
    total,
)
from tile_core.dtypes import dtype_of

F64, I64 = dtype_of("float64"), dtype_of("int64")
ATOMS = [load(name, (), F64) for name in "abc"]
HOSTILE = st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 1.5, -3.0, 1e-3])
NUMBERS = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 49.0, -7.0, 1e-3, math.inf, -math.inf])
VALUES = st.tuples(HOSTILE, HOSTILE, HOSTILE)


def reciprocal(x):
    with np.errstate(all="ignore"):
        return np.float64(1) / np.float64(x)


def chosen(x, y, z):
    return eq.where(make("lt", x, y), x, z)


PAIRS = [
    (eq.add, operator.add), (eq.multiply, operator.mul), (eq.subtract, operator.sub),
    (eq.divide, np.divide), (lambda x, y: make("maximum", x, y), np.maximum),
    (lambda x, y: chosen(x, y, const(-math.inf, "float64")),
     lambda x, y: np.where(x < y, x, -np.inf)),
    (lambda x, y: eq.cast(make("eq", x, y), F64), lambda x, y: np.float64(x == y)),
]  # fmt: skip
ALONE = [
    (eq.negate, operator.neg), (eq.reciprocal, reciprocal),
    (lambda x: make("exp", x), np.exp), (lambda x: make("floor", x), np.floor),
]  # fmt: skip


def plain(leaf):
    """Return an expression with a function that computes it, operation by operation."""
    return leaf if isinstance(leaf, tuple) else (const(leaf, "float64"), lambda _: np.float64(leaf))


LEAVES = st.one_of(
    st.sampled_from([(atom, lambda v, k=k: np.float64(v[k])) for k, atom in enumerate(ATOMS)]),
    NUMBERS.map(plain),
)


def grown(children):
    def pair(drawn):
        (row, compute), (x, f), (y, g) = drawn
        return row(x, y), lambda v: compute(f(v), g(v))

    def alone(drawn):
        (row, compute), (x, f) = drawn
        return row(x), lambda v: compute(f(v))

    return st.one_of(
        st.tuples(st.sampled_from(PAIRS), children, children).map(pair),
        st.tuples(st.sampled_from(ALONE), children).map(alone),
    )


EXPRESSIONS = st.recursive(LEAVES, grown, max_leaves=7)


def known(values) -> dict[Expr, np.float64]:
    return {atom: np.float64(v) for atom, v in zip(ATOMS, values, strict=True)}


def assert_same(made: Expr, wanted: float, values) -> None:
    np.testing.assert_allclose(value(made, known(values)), wanted, rtol=1e-12, equal_nan=True)


@given(EXPRESSIONS, VALUES)
def test_makers_keep_the_value(drawn, values):
    made, compute = drawn
    with np.errstate(all="ignore"):
        wanted = compute(values)
    if np.isfinite(wanted) and 0 < abs(wanted) < 1e-290:
        return  # factors that are joined need not be subnormal
    assert_same(made, wanted, values)


@given(NUMBERS, VALUES)
def test_factors_that_leave_masks_keep_the_value(c, values):
    a, b, _ = (np.float64(v) for v in values)
    scaled = eq.multiply(const(c, "float64"), ATOMS[0])
    made = eq.where(make("lt", ATOMS[1], const(1, "float64")), scaled, const(-math.inf, "float64"))
    with np.errstate(all="ignore"):
        assert_same(made, c * a if b < 1 else -math.inf, values)


@given(EXPRESSIONS, VALUES)
def test_factors_and_terms_are_the_whole(drawn, values):
    made, _ = drawn
    wanted = value(made, known(values))
    assert_same(product(factors(made), const(1, "float64")), wanted, values)
    assert_same(total(terms(made), const(0, "float64")), wanted, values)


SMALL = st.tuples(*[st.sampled_from([0.0, 1.0, -1.0, 0.5, -2.0, 3.0])] * 3)
POLYNOMIALS = st.recursive(
    st.one_of(st.sampled_from(ATOMS), st.sampled_from([const(k, "float64") for k in (-1, 0.5, 2)])),
    lambda x: st.one_of(st.builds(eq.add, x, x), st.builds(eq.multiply, x, x)),
    max_leaves=8,
)


@given(POLYNOMIALS, SMALL)
def test_polynomials_are_the_whole(made, values):
    assert_same(expression(polynomial(made), "float64"), value(made, known(values)), values)


@given(EXPRESSIONS, VALUES)
def test_quotients_by_numbers_keep_the_value(drawn, values):
    made, _ = drawn
    (output,) = without_quotients([Output("out", (), F64, (), made)])
    wanted = value(made, known(values))
    np.testing.assert_allclose(
        value(output.element, known(values)), wanted, rtol=1e-12, equal_nan=True
    )


@given(st.integers(-20, 20), st.integers(1, 7), st.sampled_from(["floordiv", "mod"]))
def test_integer_parts_are_those_of_numpy(x, y, op):
    made = eq.integer_part(op, const(x), const(y))
    assert made.value == (x // y if op == "floordiv" else x % y)
    n = eq.index("n", y)
    folded = eq.integer_part(op, n, const(y))
    raw = np.arange(y) // y if op == "floordiv" else np.arange(y) % y
    got = np.arange(y) if folded is n else folded.value
    np.testing.assert_array_equal(np.broadcast_to(got, y), raw)
