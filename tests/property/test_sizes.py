"""Sizes in terms of symbols: their text has the value that arithmetic of numbers gives."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tile_api.arrays.equations.sizes import (
    CONDITIONS,
    LEAST,
    Size,
    ValueNeeded,
    at_most,
    is_multiple,
    symbols_of,
    valued,
)

VALUES = st.fixed_dictionaries({n: st.integers(LEAST, 70) for n in "nm"})
SYMBOLS = [*symbols_of({"n": 5, "m": 5}).values()]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["+", "-", "*", "//", "%", "neg", "rsub"]),
        st.one_of(st.integers(1, 9), st.sampled_from(SYMBOLS)),
    ),
    max_size=4,
)


def computed(start: int, steps, value) -> int:
    x = start
    for sign, other in steps:
        y = value(other)
        match sign:
            case "+":
                x = x + y
            case "-":
                x = x - y
            case "rsub":
                x = y - x
            case "*":
                x = x * y
            case "//" if not isinstance(other, Size):
                x = x // y
            case "%" if not isinstance(other, Size):
                x = x % y
            case "neg":
                x = -x
    return x


@settings(max_examples=100, deadline=None)
@given(STEPS, VALUES)
def test_texts_mean_what_numbers_give(steps, values) -> None:
    try:
        size = computed(SYMBOLS[0], steps, lambda x: x)
    except ValueNeeded:  # a quotient of what is not large
        return
    wanted = computed(values["n"], steps, lambda x: valued(x, values))
    assert valued(size, values) == wanted
    if isinstance(size, Size):
        assert size.usual == computed(5, steps, lambda x: 5 if isinstance(x, Size) else x)


@settings(max_examples=100, deadline=None)
@given(STEPS, STEPS, VALUES)
def test_what_is_told_of_all_values_holds(one, two, values) -> None:
    conditions: dict[str, None] = {}
    token = CONDITIONS.set(conditions)
    try:
        x, y = (computed(SYMBOLS[0], steps, lambda x: x) for steps in (one, two))
        told = {"==": x == y, "<": x < y, ">=": x >= y}
    except ValueNeeded:
        return
    finally:
        CONDITIONS.reset(token)
    a, b = (computed(values["n"], steps, lambda x: valued(x, values)) for steps in (one, two))
    if all(eval(text, dict(values)) for text in conditions):
        assert told == {"==": a == b, "<": a < b, ">=": a >= b}
    if at_most(x, y):
        assert a <= b
    if b > 0 and not isinstance(y, Size) and is_multiple(x, y):
        assert a % b == 0


N, M = SYMBOLS


@settings(max_examples=100, deadline=None)
@given(STEPS, STEPS, VALUES)
@example([("+", M)], [("+", M)], {"n": 8, "m": 9})
@example([("+", M)], [("+", 1)], {"n": 8, "m": 9})
@example([("neg", N)], [("-", N)] * 3, {"n": 8, "m": 9})
@example([("+", M), ("*", N)], [], {"n": 8, "m": 9})
def test_quotients_of_sizes(one, two, values) -> None:
    conditions: dict[str, None] = {}
    token = CONDITIONS.set(conditions)
    try:
        x, y = (computed(N, steps, lambda x: x) for steps in (one, two))
        quotient = x // y
    except (ValueNeeded, ZeroDivisionError):
        return
    finally:
        CONDITIONS.reset(token)
    a, b = (computed(values["n"], steps, lambda x: valued(x, values)) for steps in (one, two))
    if b and all(eval(text, dict(values)) for text in conditions):
        assert valued(quotient, values) == a // b


def test_a_sum_goes_into_itself_once() -> None:
    token = CONDITIONS.set({})
    try:
        assert (N + M) // (M + N) == 1
        with pytest.raises(ValueNeeded):
            _ = (N + M) // (N + 1)
    finally:
        CONDITIONS.reset(token)
