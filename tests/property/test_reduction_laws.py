"""Laws of reductions that depend on each other: any split of a row, merged in any order, is a fold.

The law of each rule: a correction from old to new states takes the fold with the old ones to the
fold with the new ones, for any elements. Hence corrections compose, parts of rows can be merged,
and merging is associative and commutative.
"""

from __future__ import annotations

from functools import cache, reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.reduction_laws import Part, Rows

LENGTH = 9


RULES = {
    "independent": [
        lambda x, w: (np.max(x), np.sum(x * w), np.min(x), np.prod(x), np.mean(x)),
    ],
    "hoist": [
        lambda x, w: np.sum(w * x / (1 + np.abs(np.sum(x)))),
        lambda x, w: np.max(w + x + np.sum(x * w)),
        lambda x, w: np.mean(x * w / (2 + np.max(np.abs(x)))),
    ],
    "scaling": [
        lambda x, w: np.sum(w * np.exp(x - np.max(x))),
        lambda x, w: np.sum(np.exp(x - np.max(x)) * w) / np.sum(np.exp(x - np.max(x))),
        lambda x, w: np.sum(w * np.exp(x - np.mean(x * w))),
        lambda x, w: np.logaddexp.reduce(x),
    ],
    "extremum": [
        lambda x, w: np.argmax(x), lambda x, w: np.argmin(x),
        lambda x, w: np.sum(np.where(x == np.max(x), w, 0.0)),
        lambda x, w: np.max(np.where(x == np.min(x), w, -np.inf)),
    ],
    "shift": [
        lambda x, w: np.var(x),
        lambda x, w: np.sum((x - np.mean(x)) ** 2 + np.mean(x) * 2),
    ],
    "another sweep": [
        lambda x, w: np.sum(np.sqrt(x * x + np.max(x) ** 2)),
        lambda x, w: np.sum(np.tanh(x - np.mean(x * w))),
    ],
}  # fmt: skip
CASES = [(rule, k) for rule, functions in RULES.items() for k in range(len(functions))]
ROW = st.lists(
    st.sampled_from([-3.0, -1.5, -1.0, -0.5, -0.0, 0.0, 0.25, 1.0, 2.0, 2.5, 4.0]),
    min_size=LENGTH, max_size=LENGTH,
).map(np.array)  # fmt: skip
CUTS = st.lists(st.integers(1, LENGTH - 1), max_size=LENGTH - 1, unique=True).map(sorted)


@cache
def rows(rule: str, k: int) -> Rows:
    return Rows.of(RULES[rule][k], LENGTH)


def in_order(parts, merge) -> Part:
    return reduce(merge, parts)


def wanted(function, x, w):
    found = function(x, w)
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize(("rule", "k"), CASES)
def test_the_rule_is_applied(rule, k):
    assert any(s.rule.startswith(rule) for s in rows(rule, k).states)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(("rule", "k"), CASES)
@given(x=ROW, w=ROW, cuts=CUTS)
def test_any_blocks_are_the_fold_of_all_elements(rule, k, x, w, cuts):
    made = rows(rule, k)
    found = made.results(x, w, cuts, in_order)
    np.testing.assert_allclose(found, wanted(made.function, x, w), rtol=1e-12, atol=1e-12)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(("rule", "k"), CASES)
@given(x=ROW, w=ROW, cuts=CUTS, data=st.data())
def test_parts_merge_in_any_order_and_grouping(rule, k, x, w, cuts, data):
    def anyhow(parts, merge):
        parts = [*parts]
        while len(parts) > 1:
            one = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
            other = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
            parts.append(merge(one, other))
        return parts[0]

    made = rows(rule, k)
    found = made.results(x, w, cuts, anyhow)
    np.testing.assert_allclose(found, wanted(made.function, x, w), rtol=1e-12, atol=1e-12)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(("rule", "k"), [c for c in CASES if c[0] in ("scaling", "extremum")])
@given(x=ROW, w=ROW, y=ROW, v=ROW)
def test_corrections_compose(rule, k, x, w, y, v):
    """From the states of a part to those of more elements, and on to those of all."""
    made = rows(rule, k)
    none = Part(0, {})
    one, two, three = (
        made.part(a, b, slice(None), 0, none)
        for a, b in ((x, w), (np.maximum(x, y), w), (np.maximum(np.maximum(x, y), v), w))
    )
    known = made.merged(one, two, 0)
    last = made.merged(known, three, 0)
    for s in (s for s in made.states if s.correct is not None):
        directly = made.moved(s, one, last.accumulators)
        between = {**one.accumulators, **{d: known.accumulators[d] for d in s.depends}}
        between[s.mine] = made.moved(s, one, known.accumulators)
        on = made.moved(s, Part(one.count, between), last.accumulators)
        np.testing.assert_allclose(on, directly, rtol=1e-12)
