"""NumPy's functions that are programs of others, against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tile_api as tile
from support.captured_arrays import assert_agrees, filled
from tile_api.arrays.capturing import decompositions
from tile_api.arrays.function import Function
from tile_core.errors import ArrayShapeError, UnknownArrayFunction

CASES = {
    "sinc": [lambda x, y: np.sinc(x)],
    "unwrap": [
        lambda x, y: np.unwrap(x * 2.0), lambda x, y: np.unwrap(x * 2, axis=0, period=7.0),
        lambda x, y: np.unwrap(x.astype("int32") * 3, period=4, discont=3),
        lambda x, y: np.unwrap(x[:, :0] + 1.5),
    ],
    "cross": [
        lambda x, y: np.cross(x[:, :3], y[:3]), lambda x, y: np.cross(x, x[::-1] + 1, axis=0),
        lambda x, y: np.linalg.cross(x[:, 1:4], x[:, :3]),
        lambda x, y: np.cross(x[:3, :3], y[:3], axisa=0, axisc=0),
        lambda x, y: np.cross(x[:, :2], y[1:3]), lambda x, y: np.cross(x[:2], x[1:], axis=0),
        lambda x, y: np.cross(x[:, :2], y[:3]), lambda x, y: np.cross(x[:, 2:], y[:2]),
        lambda x, y: np.cross(x[:2], x, axisa=0, axisb=0, axisc=0),
        lambda x, y: np.cross(y[:2], y[3:]), lambda x, y: np.cross(x[:0, :2], x[:0, 1:3]),
    ],
    "vander": [lambda x, y: np.vander(y), lambda x, y: np.vander(y, 3, increasing=True)],
    "isin": [
        lambda x, y: np.isin(x, y), lambda x, y: np.isin(y, [1, 2.5, 3], invert=True),
        lambda x, y: np.isin(x, []),
    ],
    "ediff1d": [
        lambda x, y: np.ediff1d(x), lambda x, y: np.ediff1d(y, to_end=[1, 2], to_begin=0),
    ],
    "delete": [
        lambda x, y: np.delete(x, 1, axis=1), lambda x, y: np.delete(x, [0, -1], 0),
        lambda x, y: np.delete(x, slice(None, None, 2)),
        lambda x, y: np.delete(y, np.array([True, False, False, True, False])),
    ],
    "insert": [
        lambda x, y: np.insert(y, 0, 7), lambda x, y: np.insert(x, 1, y, axis=0),
        lambda x, y: np.insert(x, [0, 2, 5], [[1], [2], [3]], axis=1) if len(x) == 3 else x,
        lambda x, y: np.insert(x, [1, 1], 2), lambda x, y: np.insert(y, slice(0, 2), 3),
        lambda x, y: np.insert(x, 1, [4, 5]), lambda x, y: np.insert(x, -1, x[:, 0], axis=1),
    ],
    "broadcast_arrays": [lambda x, y: np.broadcast_arrays(x[:, :1], y, 2)],
    "array_equal": [
        lambda x, y: np.array_equal(x, x), lambda x, y: np.array_equal(x, y),
        lambda x, y: np.array_equal(x, x[::-1]),
        lambda x, y: np.array_equal(np.sqrt(x - 2.0), np.sqrt(x - 2.0), equal_nan=True),
    ],
    "rollaxis": [
        lambda x, y: np.rollaxis(x, 1), lambda x, y: np.rollaxis(x[None], 0, 3),
        lambda x, y: np.rollaxis(x[None], 2, -2),
    ],
    "unravel_index": [
        lambda x, y: np.unravel_index(np.argmax(x), x.shape),
        lambda x, y: np.unravel_index(np.abs(y.astype("int32")), (2, 3, 4)),
    ],
    "multi_dot": [
        lambda x, y: np.linalg.multi_dot([x, x.T, x]),
        lambda x, y: np.linalg.multi_dot([x.T, x, y]),
        lambda x, y: np.linalg.multi_dot([x[0], x.T, x, y]),
    ],
    "matrix_power": [
        lambda x, y: [np.linalg.matrix_power(x @ x.T, n) for n in (0, 1, 2, 3, 4, 5)],
    ],
}  # fmt: skip


@pytest.mark.parametrize("dtypes", [("int8", "int8"), ("float32", "int32"), ("float64", "float32")])
@pytest.mark.parametrize("name", CASES)
def test_function(name, dtypes):
    x, y = filled((3, 5), dtypes[0], 9, -2, 3), filled((5,), dtypes[1], 10, -2, 3)
    for function in CASES[name]:
        assert_agrees(function, x, y)


def test_every_function_is_met():
    public = {
        name for name, f in vars(decompositions).items()
        if getattr(f, "__module__", "") == decompositions.__name__ and not name.startswith("_")
    }  # fmt: skip
    assert public == CASES.keys()


def test_numbers_in_a_list_are_an_array():
    x = filled((3, 5), "float32", 1)
    assert_agrees(lambda x: np.max([x.max(), 3.0]), x)
    assert_agrees(lambda x: (np.mean([x[0, 0], x[1, 1]]), np.sum([[x[0], x[1]]], axis=1)), x)


KNOWN = np.array([True, False, False, True, True])
TABLE = np.add.outer(range(3), range(5)) % 3 > 0


@pytest.mark.parametrize(
    "key",
    [(slice(None), KNOWN), (..., KNOWN), (None, ..., KNOWN), (0, KNOWN), [True, False, True],
     (slice(1), [False] * 5), TABLE, (TABLE, None), (..., TABLE), (KNOWN[:3], 1)],
)  # fmt: skip
def test_masks_that_are_known_choose(key):
    assert_agrees(lambda x: x[key], filled((3, 5), "float32", 1))


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda x: x[np.array([True, False])], ArrayShapeError),
        (lambda x: np.cross(x, x), ArrayShapeError),
        (lambda x: np.linalg.cross(x[:, :2], x[:, :2]), ArrayShapeError),
        (lambda x: np.vander(x), ArrayShapeError),
        (lambda x: np.delete(x, np.argmax(x)), UnknownArrayFunction),
        (lambda x: np.linalg.matrix_power(x, 2.5), UnknownArrayFunction),
    ],
)
def test_what_makes_no_sense_is_refused(function, error):
    with pytest.raises(error):
        tile.function(function)(filled((3, 5), "float32", 1))


def test_functions_that_numpy_has_are_no_misspellings():
    with pytest.raises(UnknownArrayFunction) as refused:
        tile.function(lambda x: np.packbits(x))(filled((3, 5), "float32", 1))
    assert "np.unpackbits" not in str(refused.value)


@pytest.mark.parametrize("seed", range(20))
def test_products_of_many_wrap_around_in_the_order_of_numpy(seed):
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 12, 5)
    matrices = [
        random.integers(-128, 128, pair).astype("int8") for pair in itertools.pairwise(sizes)
    ]
    last = matrices[-1] = matrices[-1].astype("float64")
    if seed % 3 == 0:
        matrices[-1] = last[:, 0]
    found = Function(lambda a, b, c, d: np.linalg.multi_dot([a, b, c, d])).interpret(*matrices)
    np.testing.assert_array_equal(found, np.linalg.multi_dot(matrices))
