"""Arrays out of nothing, within a captured function, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy import arange

from support.captured_arrays import assert_agrees, filled, outputs
from tile_api.arrays.capturing import creation, numpy_names
from tile_api.arrays.capturing.creation import CREATED

X = filled((3, 5), "float32", 1)

CASES = {
    "arange": [
        lambda x: x + np.arange(5), lambda x: np.arange(x.shape[1]), lambda x: np.arange(2, 9, 3),
        lambda x: np.arange(9, 2, -2), lambda x: np.arange(0.5, 4.0), lambda x: np.arange(-3),
        lambda x: np.arange(5, dtype="float16"), lambda x: np.arange(3, 3),
        lambda x: np.arange(4.0),
        lambda x: np.arange(np.float32(3)), lambda x: np.arange(0, 1, 0.25, dtype=np.float32),
        lambda x: np.arange(5)[:, None] >= np.arange(3), lambda x: arange(4) * 2,
    ],
    "linspace": [
        lambda x: np.linspace(0, 1, 5), lambda x: np.linspace(2, -2, 9, endpoint=False),
        lambda x: np.linspace(0, 3, 4, dtype="float32"), lambda x: np.linspace(1, 2, 1),
    ],
    "full": [
        lambda x: np.full(3, 2), lambda x: np.full((2, 3), 1.5), lambda x: np.full((), True),
        lambda x: np.full((4, 3, 5), x), lambda x: np.full(3, 2.7, "int8"),
        lambda x: np.full((2, 1), 7, dtype=np.float16), lambda x: np.full(np.int64(3), np.int8(1)),
    ],
    "zeros": [lambda x: np.zeros(3), lambda x: np.zeros((0, 2), "int8"),
              lambda x: np.zeros(x.shape, bool)],
    "ones": [lambda x: np.ones((2, 7)), lambda x: np.ones(3, dtype=np.uint8),
             lambda x: np.ones([2, 3])],
    "empty": [lambda x: np.empty((2, 3)) * 0],
    "zeros_like": [lambda x: np.zeros_like(x), lambda x: np.zeros_like(x, dtype=int),
                   lambda x: np.zeros_like(x, shape=(2, 2))],
    "ones_like": [lambda x: np.ones_like(x), lambda x: np.ones_like(x, "bool")],
    "full_like": [lambda x: np.full_like(x, 3), lambda x: np.full_like(x, 2.5, int)],
    "empty_like": [lambda x: np.empty_like(x) * 0],
    "eye": [lambda x: np.eye(3), lambda x: np.eye(3, 5, 1, dtype="int8"),
            lambda x: np.eye(4, k=-2, dtype=bool)],
    "identity": [lambda x: np.identity(3), lambda x: np.identity(2, "float32")],
    "tri": [lambda x: np.tri(3), lambda x: np.tri(3, 5, -1, dtype=bool),
            lambda x: np.tri(5, 3, 1, "int32")],
    "tril": [lambda x: np.tril(x), lambda x: np.tril(x, -1), lambda x: np.tril(x[0]),
             lambda x: np.tril(np.ones((4, 4), bool)), lambda x: np.tril(x[None], 2)],
    "triu": [lambda x: np.triu(x), lambda x: np.triu(x, 1), lambda x: np.triu(x[:1], -1)],
    "array": [lambda x: np.array([x, x + 1]), lambda x: np.array([[x[0], x[1]], [x[2], x[0]]]),
              lambda x: np.array(x, "float64"), lambda x: x * np.array([1, 2, 3, 4, 5])],
    "asarray": [lambda x: np.asarray(x), lambda x: np.asarray([x, x], dtype="float16")],
    "asanyarray": [lambda x: np.asanyarray(x + 1)],
    "ascontiguousarray": [lambda x: np.ascontiguousarray(x.T, "float64"),
                          lambda x: np.ascontiguousarray(x[0, 0])],
    "asfortranarray": [lambda x: np.asfortranarray(x)],
    "meshgrid": [lambda x: np.meshgrid(np.arange(3), np.arange(5)),
                 lambda x: np.meshgrid(x[0], np.arange(2), indexing="ij"),
                 lambda x: np.meshgrid(x[0])],
    "indices": [lambda x: np.indices((3, 5)), lambda x: np.indices((2, 3, 1), dtype="int32")],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_function(name):
    for function in CASES[name]:
        assert_agrees(function, X)


def test_every_function_is_met():
    assert set(CREATED) == set(CASES)
    rooms = {name for name, f in numpy_names.FUNCTIONS.items() if f.__module__ == creation.__name__}
    assert rooms <= set(CASES)


def test_keywords_are_refused():
    for function in (
        lambda x: np.zeros(3, order="F"), lambda x: np.arange(3, like=x), lambda x: np.tri(3, l=2)
    ):  # fmt: skip
        with pytest.raises(TypeError, match="TL1203"):
            outputs(function, X)


def helper(n):
    return np.arange(n)[:, None] >= np.arange(n)


def test_a_helper_of_the_module_is_captured():
    assert_agrees(lambda x: np.where(helper(5), x[0], -np.inf), X, exact=True)
