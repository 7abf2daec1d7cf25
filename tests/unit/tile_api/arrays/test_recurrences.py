"""`tile.scan`: what is captured means what the loop of NumPy does."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from support.captured_arrays import assert_agrees, filled
from support.recurrent_programs import before, filtered, within
from tile_api.arrays.function import Function
from tile_api.arrays.planning.plan import Blocks

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


def padded(x):
    return np.pad(x, ((0, 2), (0, 3)))


AMONG_OTHERS = {
    "rows behind": lambda y, x: np.concatenate([y, x]),
    "rows before": lambda y, x: np.concatenate([x, y]),
    "columns behind": lambda y, x: np.concatenate([y, x], axis=1),
    "zeros around": lambda y, _: np.pad(y, ((1, 2), (2, 1))),
    "zeros behind": lambda y, _: padded(y),
    "the first rows": lambda y, _: y[:3] * 2,
    "the first rows and zeros": lambda y, _: padded(y[:3]),
    "each row twice": lambda y, _: np.repeat(y, 2, axis=0),
    "the last row and zeros": lambda y, _: np.pad(y[-1], (0, 2)),
}


@pytest.mark.parametrize("name", AMONG_OTHERS)
@pytest.mark.parametrize("accumulate", [np.cumsum, np.maximum.accumulate, np.nancumprod])
@pytest.mark.parametrize("axis", [0, 1])
def test_results_of_more_rows_than_steps(name, accumulate, axis):
    def function(x):
        return AMONG_OTHERS[name](accumulate(x, axis=axis), x)

    x = RNG.integers(-3, 4, (5, 4)).astype("float64")
    for resident in (16_384, 0):
        found = Function(function, target="interpret", blocks=Blocks(resident=resident))(x)
        np.testing.assert_array_equal(found, function(x))


def test_gradients_of_the_first_rows():
    """What no step has computed has gradients, too: zeros."""
    x = np.arange(6.0).reshape(3, 2)
    _, pull = Function(lambda x: np.nancumsum(x[:2], axis=0), target="interpret").vjp(x)
    assert np.asarray(pull(np.ones((2, 2)))).tolist() == [[2, 2], [1, 1], [0, 0]]


def test_parts_of_an_index_beside_variables_of_what_is_carried():
    def function(x):
        flat = x.reshape(-1)
        return flat, np.cumprod(flat[:, None], axis=-1)

    x = floats(2, 2, 32)
    _, pull = Function(function, target="interpret").vjp(x)
    ones = np.ones(128)
    np.testing.assert_array_equal(pull(ones, ones[:, None]), np.full(x.shape, 2.0))


JOINED = {
    "joined": lambda h, z: np.concatenate([h * 2, np.zeros(2) + z])[2:] + h * 0.5,
    "both": lambda h, z: np.concatenate([h * z, h * 3])[:2] - np.concatenate([z * h, h])[2:],
    "padded": lambda h, z: np.pad(h * 2, (1, 2))[3:] + np.pad(h, (2, 2))[:2] + h * z,
    "stored": lambda h, z: stored(h, z, slice(2, None))[:2] + h,
    "stored apart": lambda h, z: stored(h, z, slice(0, 3, 2))[3:] * h,
    "inverted": lambda h, z: np.linalg.inv(np.eye(2) * 3 + h[:, None] * h)[0] * z,
}


def stored(h, z, key):
    made = np.zeros(4) + z
    made[key] = h
    return made


@pytest.mark.parametrize("name", JOINED)
def test_parts_of_what_a_step_joins(name: str) -> None:
    def function(h, z):
        return tile.scan(lambda h, z: (JOINED[name](h, z), None), h, z)[0]

    h, z = np.array([0.25, -0.5]), np.array([0.5, 0.75, -0.25])
    for target in ("interpret", "cpu", "cuda:sm_80@sim"):
        np.testing.assert_allclose(Function(function, target=target)(h, z), function(h, z), 1e-13)
