"""What hosts compute, as data: read, written as Python, computed, and never run."""

from __future__ import annotations

import ast
import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_launch.errors import InvalidBundle
from tile_launch.expressions import (
    DEEPEST,
    FUNCTIONS,
    STRENGTH,
    read,
    text_of,
    value_of,
    variables_of,
    words_of,
)

OPERATIONS = (
    *("+", "-", "*", "//", "%", "truncdiv", "truncmod", "min", "max", "and", "or", "&", "|", "^"),
    *("==", "!=", "<", "<=", ">", ">="),
)
leaves = st.one_of(st.integers(-9, 9), st.booleans(), st.sampled_from(["m", "n"]))
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(OPERATIONS), inner, inner),
        st.tuples(st.sampled_from(["neg", "not", "~", "int", "float"]), inner),
        st.tuples(st.just("select"), inner, inner, inner),
    ),
    max_leaves=8,
)


def decided(tree: Any) -> Any:
    """Return `tree` with conditions on both sides of "and" and "or", as in programs.

    Of other operands Python gives one of them, and the data says whether it is true.
    """
    if not isinstance(tree, tuple):
        return tree
    word, *operands = (tree[0], *map(decided, tree[1:]))
    if word in ("and", "or"):
        operands = [("!=", operand, 0) for operand in operands]
    return (word, *operands)


@given(trees, st.integers(-20, 20), st.integers(-20, 20))
def test_the_text_says_what_the_data_says(tree: Any, m: int, n: int) -> None:
    assert read(json.loads(json.dumps(tree)), "here") == tree
    expression = decided(tree)
    text = text_of(expression, {"m": "s0", "n": "s1"})
    try:
        wanted: object = value_of(expression, {"m": m, "n": n})
    except (ArithmeticError, TypeError) as error:  # bits of a float
        wanted = type(error)
    try:
        found: object = eval(text, {**FUNCTIONS, "s0": m, "s1": n})
    except (ArithmeticError, TypeError) as error:
        found = type(error)
    assert found == wanted


def test_division_of_negative_numbers() -> None:
    names = {"m": "m"}
    for m in (-7, 7):
        for n in (-2, 2):
            told = [value_of((op, "m", n), {"m": m}) for op in ("truncdiv", "truncmod")]
            assert told == [int(m / n), m - int(m / n) * n]
            assert told[0] == eval(text_of(("truncdiv", "m", n), names), {**FUNCTIONS, "m": m})


@pytest.mark.parametrize(
    "data",
    [
        None, {}, [], ["+", 1], ["+", 1, 2, 3], ["pow", 2, 3], [1, 2], [["+"], 1, 2],
        ["select", 1, 2], ["+", 1, None], ["__import__", "os"],
    ],
)  # fmt: skip
def test_what_is_no_expression(data: Any) -> None:
    with pytest.raises(InvalidBundle, match=r"^.TL8001. x: "):
        read(data, "x")


def test_names_never_become_code() -> None:
    evil = "__import__('os').system('true')"
    assert text_of(read(["+", evil, 1], "x"), {evil: "s0"}) == "(s0 + 1)"
    with pytest.raises(InvalidBundle, match="nothing says what"):
        text_of(evil, {})


def test_depth_has_a_bound() -> None:
    deep: Any = 1
    for _ in range(DEEPEST):
        deep = ["+", deep, 1]
    assert value_of(read(deep, "x"), {}) == DEEPEST + 1
    assert eval(text_of(read(deep, "x"), {})) == DEEPEST + 1
    with pytest.raises(InvalidBundle):
        read(["+", ["+", deep, 1], 1], "x")


def test_numbers_that_are_none() -> None:
    assert eval(text_of(float("inf"), {})) == float("inf")
    assert text_of(2.5, {}) == "2.5"


def test_words() -> None:
    expression = ("//", ("+", "m", 127), 128)
    assert words_of(expression) == "(m + 127) // 128"
    assert words_of(("min", "m", ("*", 2, "n"))) == "min(m, 2 * n)"
    assert (words_of("m"), words_of(4)) == ("m", "4")
    assert list(variables_of(("+", "m", ("*", "n", "m")))) == ["m", "n"]


def test_words_have_the_parentheses_that_python_needs() -> None:
    def meaning(text: str) -> str:
        return ast.dump(ast.parse(text))

    chains = {"==", "!=", "<", "<=", ">", ">="}, {"and"}, {"or"}  # of Python's own kinds
    for outer, inner in product(STRENGTH, repeat=2):
        if any({outer, inner} <= chain for chain in chains):
            continue
        bare = f"a {inner} b {outer} c", f"a {outer} b {inner} c"
        full = f"(a {inner} b) {outer} c", f"a {outer} (b {inner} c)"
        trees = (outer, (inner, "a", "b"), "c"), (outer, "a", (inner, "b", "c"))
        for tree, without, wanted in zip(trees, bare, full, strict=True):
            is_needed = meaning(without) != meaning(wanted)
            assert words_of(tree) == (wanted if is_needed else without)
