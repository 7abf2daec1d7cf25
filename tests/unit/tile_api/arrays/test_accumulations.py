"""Running sums, products and extrema mean what NumPy says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tile_api as tile
from support.captured_arrays import assert_agrees, filled
from tile_api.arrays.capturing import accumulations, numpy_names

SHAPES = [(7,), (1,), (0,), (5, 3), (3, 1, 4), (2, 0, 3)]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float64"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_sums_and_products(shape, dtype, axis):
    x = filled(shape, dtype, low=-2, high=3)
    assert_agrees(lambda x: np.cumsum(x, axis), x, exact=True)
    assert_agrees(lambda x: np.cumprod(x, axis), x, exact=True)
    assert_agrees(lambda x: x.cumsum(0, dtype="int32"), x, exact=True)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float32"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_extrema(dtype, axis):
    x = filled((4, 6), dtype)
    assert_agrees(lambda x: np.maximum.accumulate(x, axis), x, exact=True)
    assert_agrees(lambda x: np.minimum.accumulate(x, axis), x, exact=True)
    assert_agrees(lambda x: np.add.accumulate(x), x, exact=True)


def test_what_is_infinite_or_no_number():
    x = np.array([[1, np.inf, 2, -np.inf, 3], [-np.inf, -np.inf, 0, 1, np.nan]], "float32")
    assert_agrees(lambda x: np.cumsum(x, 1), x)
    assert_agrees(lambda x: np.logaddexp.accumulate(x, 1), x)
    assert_agrees(lambda x: np.maximum.accumulate(x, 1), x)
    assert_agrees(lambda x: np.nancumsum(x, 1), x)
    assert_agrees(lambda x: np.nancumprod(x), x)


def test_names_of_the_array_api():
    x = filled((5, 3), "int16")
    assert_agrees(lambda x: np.cumulative_sum(x, axis=0), x, exact=True)
    assert_agrees(lambda x: np.cumulative_sum(x, axis=1, include_initial=True), x, exact=True)
    assert_agrees(lambda x: np.cumulative_prod(x, axis=0, include_initial=True), x, exact=True)
    assert_agrees(lambda x: np.cumulative_sum(x), x[:, 0], exact=True)


def test_views_and_sums_of_running_sums():
    x = filled((5, 3), "int64")
    assert_agrees(lambda x: np.cumsum(x[::-1], 0)[::-1].T + x.T, x, exact=True)
    assert_agrees(lambda x: np.cumsum(np.cumsum(x, 1), 0)[2:].sum(0), x, exact=True)
    assert_agrees(lambda x: np.cumsum(x, 0)[-1] * np.cumprod(x, 1)[:, 1].max(), x, exact=True)


def test_small_floats_are_carried_in_32_bits():
    x = np.full(600, 1.001, "float16")
    names = {"np": np}
    exec("def f(x): return np.cumsum(x)", names)
    from support.captured_arrays import outputs

    (found,) = outputs(names["f"], x)
    wanted = np.cumsum(x.astype("float64"))
    np.testing.assert_allclose(found.astype("float64"), wanted, rtol=1e-3)


def test_every_name_is_compared():
    functions = numpy_names.FUNCTIONS.items()
    names = {n for n, f in functions if f.__module__ == accumulations.__name__}
    text = Path(__file__).read_text(encoding="utf-8")
    assert {name for name in names if f"np.{name}(" not in text} == set()


RECURRENCES = {
    "gcd": lambda x: np.gcd(x, 12),
    "lcm": lambda x: np.lcm(x + 3, 4),
    "cumsum": lambda x: np.cumsum(x, -1),
    "cumsum 0": lambda x: np.cumsum(x, 0),
    "nancumsum": lambda x: np.nancumsum(np.where(x > 3, np.nan, x / 2), -1).astype("int64"),
    "cumprod": lambda x: np.cumprod(x % 3 - 1, -1),
    "maximum": lambda x: np.maximum.accumulate(x, 0),
    "sort": lambda x: np.sort(x, -1),
    "median": lambda x: (2 * np.median(x, -1, keepdims=True)).astype("int64") + x,
    "scan": lambda x: tile.scan(lambda c, r: (c // 2 + r, c), np.zeros_like(x[0]), x)[1],
}


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("outer", RECURRENCES)
@pytest.mark.parametrize("inner", RECURRENCES)
def test_recurrences_of_recurrences(inner, outer):
    x = np.arange(15).reshape(3, 5) % 7
    assert_agrees(lambda x: RECURRENCES[outer](RECURRENCES[inner](x)), x, exact=True)
