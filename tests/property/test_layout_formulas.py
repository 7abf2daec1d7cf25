"""Index expressions: simplifying keeps every value, and reach tells no lie."""

import ast
import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_core.ir.expr import BinaryOp
from tile_core.layout import evaluate, maximum, minimum, same_expr, simplify
from tile_core.layout.formula_bounds import reach
from tile_core.layout.formulas import OPERATORS, as_index, coordinate, inputs, to_text
from tile_core.layout.index_tables import box_coords, tabulate

small = st.integers(-9, 9)
divisors = st.sampled_from([1, 2, 3, 4, 6, 8])
boxes = st.tuples(*[st.sampled_from([1, 2, 3, 4, 6, 8])] * 3)


def grow(parts):
    """Expressions one operation larger than those of `parts`."""
    return st.one_of(
        st.tuples(parts, parts).map(lambda p: p[0] + p[1]),
        st.tuples(parts, parts).map(lambda p: p[0] - p[1]),
        st.tuples(parts, small).map(lambda p: p[0] * p[1]),
        st.tuples(parts, divisors).map(lambda p: p[0] // p[1]),
        st.tuples(parts, divisors).map(lambda p: p[0] % p[1]),
        st.tuples(parts, parts).map(lambda p: p[0] ^ p[1]),
        st.tuples(parts, parts).map(lambda p: minimum(*p)),
        st.tuples(parts, parts).map(lambda p: maximum(*p)),
        st.tuples(parts, parts).map(lambda p: p[0] * p[1]),
    )


leaves = st.one_of(st.sampled_from(inputs(3)), small.map(as_index))
exprs = st.recursive(leaves, grow, max_leaves=10)


sums = st.tuples(*[st.sampled_from([0, 0, 1, 1, 2, 3, 4, 8, -1])] * 3, st.integers(-2, 5)).map(
    lambda c: sum((x * k for x, k in zip(inputs(3), c, strict=False)), as_index(c[3]))
)
terms = st.one_of(sums, grow(sums))
shallow = st.one_of(terms, grow(terms))  # where the conditions of the rules are nearly met
thorough = settings(max_examples=max(400, settings().max_examples))


def values(expr, box):
    return tabulate(expr, box).tolist()


@thorough
@given(st.one_of(exprs, shallow), boxes)
def test_simplify_keeps_every_value(expr, box):
    assert values(simplify(expr, box), box) == values(expr, box)


@thorough
@given(st.one_of(exprs, shallow), boxes)
def test_reach_bounds_every_value_and_attains_them_where_it_says_so(expr, box):
    seen = tabulate(expr, box)
    found = reach(expr, box)
    assert found.lo <= seen.min()
    assert seen.max() <= found.hi
    if found.gap is not None:
        distinct = np.unique(seen)
        assert (found.lo, found.hi) == (distinct[0], distinct[-1])
        assert distinct.size == 1 or np.diff(distinct).max() <= found.gap


@given(st.permutations(range(3)), boxes, divisors)
def test_reach_is_exact_for_addresses_and_their_digits(order, box, unit):
    """Pins `reach` from below: giving every bound up is not an answer."""
    address, step = as_index(0), 1
    for axis in order:
        address, step = address + coordinate(axis) * step, step * box[axis]
    for expr in (address, address // unit, address % unit):
        assert reach(expr, box).is_exact


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4, 8]))
def test_reach_leaves_no_gap_in_rows_that_are_swizzled(rows, columns):
    i, j, _ = inputs(3)
    box = (rows, columns, 1)
    found, seen = reach(i ^ j, box), np.unique(tabulate(i ^ j, box))
    assert (found.lo, found.hi) == (seen[0], seen[-1])
    assert found.gap is not None
    assert found.gap <= 1


@given(boxes, st.sampled_from([1, 2, 4]))
def test_quotient_and_remainder_of_a_flat_index_are_put_together_again(box, unit):
    """Pins `simplify` from below: returning its argument is not an answer."""
    i, j, k = inputs(3)
    flat = (i * box[1] + j) * box[2] + k
    again = flat // unit * unit + flat % unit
    assert same_expr(simplify(again, box), simplify(flat, box))
    assert same_expr(simplify(flat // box[2] // box[1], box), simplify(i, box))
    assert same_expr(simplify(flat // box[2] % box[1], box), simplify(j, box))
    assert same_expr(simplify(flat % box[2], box), simplify(k, box))


@given(exprs, boxes)
def test_integers_arrays_and_substitution_agree(expr, box):
    table = evaluate(expr, box_coords(box))
    full = np.broadcast_to(table, box)
    for at in ((0, 0, 0), tuple(extent - 1 for extent in box)):
        assert evaluate(expr, at) == full[at]
        assert values(evaluate(expr, [as_index(x) for x in at]), (1, 1, 1)) == [[[full[at]]]]


@given(exprs, boxes)
def test_the_text_is_python_with_the_same_values(expr, box):
    names = dict(zip("ijk", box_coords(box), strict=True))
    again = eval(to_text(expr), {"minimum": np.minimum, "maximum": np.maximum}, names)
    assert (np.broadcast_to(again, box) == tabulate(expr, box)).all()


@given(exprs)
def test_the_text_has_no_needless_brackets(expr):
    text = re.sub(r"\((-\d+)\)", r"\1", to_text(expr))
    assert ast.unparse(ast.parse(text)) == text


@given(exprs)
def test_evaluation_goes_through_the_operators_given(expr):
    seen = []

    def noted(op):
        return lambda a, b: seen.append(op) or OPERATORS[op](a, b)

    again = evaluate(expr, inputs(3), {op: noted(op) for op in BinaryOp})
    assert same_expr(as_index(again), expr)
    assert len(seen) <= to_text(expr).count(" ") + to_text(expr).count("imum(")
