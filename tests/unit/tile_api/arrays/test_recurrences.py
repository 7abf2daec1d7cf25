"""`tile.scan`: what is captured means what the loop of NumPy does."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from support.captured_arrays import assert_agrees, filled
from support.recurrent_programs import before, filtered, within
from tile_api.arrays.function import Function

RNG = np.random.default_rng(3)


def floats(*shape):
    return RNG.standard_normal(shape)


def decayed(x, a):
    return tile.scan(lambda h, now: (now[1] * h + now[0],) * 2, np.zeros(x.shape[1:]), (x, a))


def recurrent(x, w, v):
    def step(h, x):
        h = np.tanh(h @ w + x)
        return h, h @ v

    return tile.scan(step, np.zeros(w.shape[0]), x)


def fibonacci(x):
    return tile.scan(lambda h, _: ((h[1], h[0] + h[1]), h[0]), (0, 1), x)


def shifted(x):
    return tile.scan(lambda h, x: (np.roll(h, 1) + x, h[::-1]), np.ones(x.shape[1]), x)


def constant(x):
    """A recurrence that carries what it started from, and gives nothing."""
    return tile.scan(lambda h, x: (h, None), x[0], x)[0]


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_loops_of_numpy(steps):
    x = floats(steps, 5)
    assert_agrees(lambda x, a: decayed(x, a)[1], x, floats(steps, 5))
    assert_agrees(lambda x, a: decayed(x, a)[0], x, floats(steps, 5))
    assert_agrees(lambda x: before(x), x)
    assert_agrees(lambda x: shifted(x), x)
    if steps > 1:  # until then the second number is one
        assert_agrees(lambda x: filtered(x), x)
    if steps:
        assert_agrees(lambda x: constant(x), x)


def test_carried_values_that_mix():
    assert_agrees(lambda x, w, v: recurrent(x, w, v)[1], floats(6, 4), floats(4, 4), floats(4, 3))
    assert_agrees(lambda x, w, v: recurrent(x, w, v)[0], floats(6, 4), floats(4, 4), floats(4, 3))


def test_a_recurrence_within_another():
    assert_agrees(lambda x: within(x)[1], floats(5, 4))
    assert_agrees(lambda x: within(np.cumsum(x, 0))[0], floats(5, 5))


def test_recurrences_over_recurrences_stay_small():
    def stacked(x, w):
        for _ in range(6):
            x = tile.scan(lambda h, r: (np.tanh(h @ w + r * r), h + r), np.zeros(4), x)[1]
        return x

    assert_agrees(stacked, floats(6, 4), floats(4, 4))


def test_whole_numbers():
    x = filled((9,), "int64")
    assert_agrees(lambda x: fibonacci(x)[1], x, exact=True)
    assert_agrees(lambda x: tile.scan(lambda h, x: (np.maximum(h - 1, x), h), 0, x)[1], x)


def test_equal_sizes_of_unequal_things():
    x, y = floats(4, 4), floats(4, 4)
    assert_agrees(lambda x, y: tile.scan(lambda h, r: (h + y @ r, h @ x), y[0], x @ x)[1], x, y)


def test_places_of_carried_values_in_their_order() -> None:
    """Two variables of one dimension of what is carried stay two."""

    def ordered(x):
        y = np.cumprod(x, axis=-1)
        return np.take_along_axis(y, np.argsort(y, axis=0, kind="stable"), axis=0)

    x = np.random.default_rng(0).standard_normal((7, 2))
    found = Function(ordered, target="interpret")(x)
    np.testing.assert_allclose(found, np.sort(np.cumprod(x, axis=-1), axis=0), rtol=1e-12)


PARTS = {
    "differences along rows": lambda x: np.diff(np.cumsum(x, axis=0), axis=-1),
    "a sum of a part": lambda x: np.cumsum(x, axis=0)[:, 1:].sum(axis=-1),
    "a part": lambda x: np.cumsum(x, axis=0)[:, :2] * 2,
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("steps", [1, 5])
def test_parts_of_carried_values(name, steps):
    x = np.arange(4.0 * steps).reshape(steps, 4) ** 2
    np.testing.assert_array_equal(Function(PARTS[name], target="interpret")(x), PARTS[name](x))
