"""`tile.Array`: what is checked, what dimensions of one name are; as strings, and evaluated."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from tile_core.errors import ArgumentShapeError, ArgumentTypeError


def zeros(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.zeros(shape, dtype)


def both(x, y):
    return x.sum(axis=-1), y.max(axis=-1)


def kernels(function, *arrays) -> int:
    return tile.Function(function).source(*arrays).count("@tile.jit")


def test_equal_names_are_one_dimension() -> None:
    @tile.function(target="interpret")
    def named(x: tile.Array["n d"], y: tile.Array["n d"]):  # noqa: F722
        return both(x, y)

    x, y = zeros(30, 70) + 2, zeros(30, 70) - 3
    assert named.source(x, y).count("@tile.jit") == 1 < kernels(both, x, y)
    assert "stream: d, a symbol in blocks of 64" in str(named.explain(x, y))
    for got, wanted in zip(named(x, y), both(x, y), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_names_that_dimensions_have_anyway() -> None:
    def named(x, y: tile.Array["x0 x1"]):  # noqa: F722
        return x.sum(axis=-1)[:, None] * y.max(axis=-1)

    x, y = np.arange(12.0).reshape(3, 4), np.arange(30.0).reshape(5, 6)
    np.testing.assert_array_equal(tile.Function(named, target="cpu")(x, y), named(x, y))


def test_any_rank_and_sizes() -> None:
    @tile.function(target="cpu")
    def rows(x: tile.Array["... n 7"], scale: tile.Array[""]) -> tile.Array["... n"]:  # noqa: F722
        return x.sum(axis=-1) * scale

    for shape in ((3, 7), (2, 3, 7), (1, 1, 1, 7)):
        found = rows(zeros(*shape) + 1, np.asarray(2, "float32"))
        np.testing.assert_array_equal(found, np.full(shape[:-1], 14, "float32"))


def test_what_may_be_missing() -> None:
    @tile.function(target="cpu")
    def shifted(x: tile.Array[2], y: tile.Array[2] | None, z: tile.Array[2] = None):
        return x if y is None else x + y

    assert shifted(zeros(2), None).shape == (2,)
    assert shifted(zeros(2), zeros(2)).shape == (2,)
    with pytest.raises(ArgumentTypeError, match="x is a NoneType, and annotated as an array"):
        shifted(None, None)


def test_annotations_of_others_mean_nothing() -> None:
    @tile.function(target="cpu")
    def same(x: Unknown, y: int = 3) -> np.ndarray:  # noqa: F821
        return x + y

    assert same(zeros(2)).tolist() == [3, 3]


def test_functions_within_functions() -> None:
    @tile.function
    def inner(x: tile.Array["n d"], y: tile.Array["n d"]):  # noqa: F722
        return both(x, y)

    def outer(x, y):
        return inner(x, y)

    assert kernels(outer, zeros(30, 70), zeros(30, 70)) == 1
    with pytest.raises(ArgumentShapeError, match="inner: d is 70 in x, and 71 in y"):
        kernels(outer, zeros(30, 70), zeros(30, 71))
