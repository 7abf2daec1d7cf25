"""TL1207: a gradient is asked for where there is none."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from tile_core.errors import ArgumentCountError, ArrayShapeError, NoGradient

X = np.ones((3, 4), "float32")
TOKENS = np.array([1, 2])


@tile.function
def taken(table, tokens):
    return table[tokens]


@tile.function
def rows_and_position(x):
    return x * 2, x.argmax(axis=-1)


def refused(call, error=NoGradient) -> str:
    with pytest.raises(error) as caught:
        call()
    lines = str(caught.value).splitlines()
    return "\n".join(x for x in lines if x[:1] == "[" or x.startswith("hint"))


def test_integers_have_none() -> None:
    assert refused(lambda: taken.vjp(X, TOKENS, wrt="tokens")) == (
        "[TL1207] 'tokens' holds elements of int64: a step between integers is not small\n"
        "hint: there are gradients with respect to table"
    )
    assert refused(lambda: taken.vjp(X.astype("int32"), TOKENS)) == (
        "[TL1207] taken takes no array of floats\nhint: cast arguments with astype"
    )


def test_no_such_argument() -> None:
    assert refused(lambda: taken.grad(X, TOKENS, wrt=("table", "weight"))) == (
        "[TL1207] grad is of a function that returns one number, and taken returns (2, 4)\n"
        "hint: sum the result; or vjp takes a cotangent for each element"
    )
    assert refused(lambda: taken.vjp(X, TOKENS, wrt=("table", "weight"))) == (
        "[TL1207] taken takes no array 'weight'\nhint: there are gradients with respect to table"
    )


def test_results_of_integers_have_none() -> None:
    assert refused(lambda: rows_and_position.vjp(X)) == (
        "[TL1207] result 1 of rows_and_position has elements of int64, which have no gradient\n"
        "hint: return floats alone; astype makes floats"
    )


def test_cotangents_are_like_results() -> None:
    _, pull = taken.vjp(X, TOKENS)
    assert refused(lambda: pull(X), ArrayShapeError) == (
        "[TL1204] the cotangent of result 0 has shape (3, 4), and the result (2, 4)\n"
        "hint: np.broadcast_to makes one of the right shape"
    )
    assert refused(lambda: pull(X[:2].astype("float64"))) == (
        "[TL1207] the cotangent of result 0 has elements of float64, and the result of float32\n"
        "hint: cast it with astype"
    )
    assert refused(lambda: pull(1.0), ArrayShapeError).startswith(
        "[TL1204] the cotangent of result 0 has shape (), and the result (2, 4)"
    )
    assert refused(lambda: pull(X[:2], X[:2]), ArgumentCountError) == (
        "[TL6002] the gradient of taken takes 1 cotangents, one for each result, and got 2"
    )


def test_cotangents_within_a_function_are_like_results() -> None:
    @tile.function
    def pulled(x, tokens):
        _, pull = taken.vjp(x, tokens)
        return pull(x)[0]

    assert refused(lambda: pulled.source(X, TOKENS), ArrayShapeError).startswith(
        "[TL1204] the cotangent of result 0 has shape (3, 4), and the result (2, 4)"
    )


def test_the_line_of_the_call_is_told() -> None:
    with pytest.raises(NoGradient) as caught:
        taken.vjp(X, TOKENS, wrt="tokens")
    assert 'taken.vjp(X, TOKENS, wrt="tokens")' in str(caught.value)
