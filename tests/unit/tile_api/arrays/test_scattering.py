"""``np.add.at`` and its like are NumPy's, or refused: repeated indices accumulate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tile_api as tile
from support.captured_arrays import assert_agrees, filled, outputs, written
from support.gradients import Backward
from tile_api.arrays.function import Function
from tile_core.errors import (
    ArrayShapeError,
    DataDependentShape,
    ImmutableArray,
    UnknownArrayFunction,
)

X, V = filled((4, 5), "int32", 1), filled((5,), "int32", 2)
K, Y = np.array([2, 0, 2, 1]), np.array([4, 0, 3, 3])
PROGRAMS = """
np.add.at(u, k, v)
np.add.at(u, k[:3], np.arange(3)[:, None])
np.add.at(u, [0, 0, -1], 2)
np.add.at(u, k[0], v)
np.add.at(u, (k[0], slice(1, 3)), 5)
np.add.at(u, 1, v)
np.add.at(u, ..., v)
np.add.at(u, (None, k), 1)
np.add.at(u, (k, None), 1)
np.add.at(u, (np.arange(4), y), 5)
np.add.at(u, (slice(None), k), np.arange(4))
np.add.at(u, u > 0, 5)
np.add.at(u, (slice(None), v > 0), 5)
np.add.at(u, np.array([True, False, True, False]), v)
np.subtract.at(u, (k, y), np.arange(4))
np.subtract.at(u, np.ix_([0, 2], [1, 1]), 3)
np.multiply.at(u, (slice(1, None), y), 3)
np.maximum.at(u, (k, slice(None, None, 2)), 1)
np.minimum.at(u, (k[:2, None], y[None, :3]), v[:3])
np.add.at(u[1:], k - 1, v)
w = u; np.add.at(w[:, 0], k, 1)
w = u[1:]; np.add.at(u, k, 1); u[0] = w[0]
np.add.at(u, k, u[y - 1]); np.maximum.at(u, k, u[0])
u = np.zeros(9); np.add.at(u, x, 0.5)
u = np.zeros(9, "int8"); np.add.at(u, x, 100)
u = np.zeros(9, "int8"); np.add.at(u, k, x[:, 0] * 90)
u = np.zeros(9, "uint8"); np.subtract.at(u, np.arange(40) % 7, 1)
u = np.full(9, 3, "int16"); np.minimum.at(u, k, -2)
u = np.zeros(9, "uint64"); np.add.at(u, k, 1)
u = np.zeros(9, "float32"); np.add.at(u, k, x[:, 0])
u = np.zeros(9, "float16"); np.add.at(u, k, True)
u = np.zeros(9, bool); np.add.at(u, k, x[:, 0] > 0)
u = np.ones(9, bool); np.multiply.at(u, k, x[:, 0] > 0)
u = np.ones(9, bool); np.minimum.at(u, k, x[:, 0] > 0)
u = np.zeros(7, "float32"); np.maximum.at(u, k, np.where(x[:, 0] > 0, np.nan, x[:, 0]))
u = np.zeros((7, 3), "float32"); np.add.at(u, np.arange(40) % 9 - 2, np.ones((40, 3)))
u = np.zeros((3, 4, 5)); np.add.at(u, (slice(None), k % 2, 1), np.arange(12).reshape(3, 4))
u = np.zeros((3, 4, 5)); np.add.at(u, (k, slice(None), y), np.arange(16).reshape(4, 4))
u = u[:0]; np.add.at(u, (slice(None), k), 1)
np.add.at(u, np.zeros(0, int), 1)
u = np.zeros(()); np.add.at(u, (), 3)
""".strip().splitlines()


@pytest.mark.parametrize("line", PROGRAMS)
def test_as_numpy(line) -> None:
    assert_agrees(written(line), X, V, K, Y, exact=True)


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("target", ["cpu", "interpret"])
@pytest.mark.parametrize("line", PROGRAMS)
def test_kernels_write_as_numpy(line, target) -> None:
    f = written(line)
    np.testing.assert_array_equal(Function(f, target=target)(X, V, K, Y), f(X, V, K, Y))


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80@sim"])
def test_long_lists_of_indices_are_gone_through_once(target) -> None:
    def f(x, i, b):
        u = x * 2
        np.add.at(u, i, b)
        return u

    x, b = filled((50, 7), "float32", 1), filled((100, 7), "float32", 2)
    i = filled(100, "int64", 3, -50, 50)
    function = Function(f, target=target)
    assert "# scatter: of 100 indices" in function.source(x, i, b)
    np.testing.assert_array_equal(function(x, i, b), f(x, i, b))


UFUNCS = [np.add, np.subtract, np.multiply, np.maximum, np.minimum]
TYPES = ["bool", "int8", "uint8", "int32", "int64", "float32", "float64"]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(data=st.data())
def test_random_indices(data) -> None:
    """Values are small whole numbers, which are added without rounding."""
    ufunc, seed = data.draw(st.sampled_from(UFUNCS)), data.draw(st.integers(0, 99))
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    dtype = data.draw(st.sampled_from(TYPES))
    given = dtype if dtype == "bool" else data.draw(st.sampled_from(["bool", "int8", dtype]))
    if (ufunc is np.subtract and dtype == "bool") or (dtype == "uint8" and given == "int8"):
        given = dtype = "int32"
    common = data.draw(st.sampled_from([(), (0,), (1,), (3,), (20,), (2, 3), (1, 3)]))
    arrays, key, slots = [], [], data.draw(st.integers(1, len(shape)))
    for k, n in enumerate(shape[:slots]):
        if data.draw(st.booleans()):
            part = common[data.draw(st.integers(0, len(common))) :]
            arrays.append(filled(part, "int64", seed + k, -n, n))
            key.append(f"i{len(arrays)}")
        else:
            key.append(data.draw(st.sampled_from([":", "1:", "::-1", "::2", "0", "-1"])))
    text = ", ".join(key)
    x = filled(shape, dtype, seed)
    i1, i2, i3 = [*arrays, *[np.zeros((), "int64")] * 3][:3]
    region = eval(f"x[{text}]", {"x": x, "i1": i1, "i2": i2, "i3": i3}).shape
    behind = region[data.draw(st.integers(0, len(region))) :]
    value = filled([1 if data.draw(st.booleans()) else n for n in behind], given, seed + 9)
    names = {"np": np, "ufunc": ufunc}
    exec(
        f"def f(x, b, i1, i2, i3):\n    u = x.copy()\n    ufunc.at(u, np.s_[{text}], b)\n"
        "    return u",
        names,
    )
    assert_agrees(names["f"], x, value, i1, i2, i3, exact=True)


SMOOTH = {
    "add": lambda x, i, b: _at(np.add, np.sin(x), i, b),
    "subtract": lambda x, i, b: _at(np.subtract, x, i, b * b),
    "multiply": lambda x, i, b: _at(np.multiply, x, i, b),
    "maximum": lambda x, i, b: _at(np.maximum, x, i, b),
    "minimum": lambda x, i, b: _at(np.minimum, x, i, b * 2),
    "columns": lambda x, i, b: _at(np.add, x, (slice(None), i % 3), b[:4, :1] * b[:, 0]),
    "pairs": lambda x, i, b: _at(np.add, x, (i, i % 2), b[:, 0]) ** 2,
}


def _at(ufunc, x, indices, b):
    u = x.copy()
    ufunc.at(u, indices, b)
    return u


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name) -> None:
    random = np.random.default_rng(5)
    x, b = random.standard_normal((4, 3)), random.standard_normal((20, 3))
    Backward(SMOOTH[name], x, random.integers(-4, 4, 20), b).check()


def test_steps_accumulate() -> None:
    """A step adds to the state that it takes, and changes nothing else."""

    def step(state, given):
        i, b = given
        made = state.copy()
        np.add.at(made, i, b)
        return made, made.sum()

    def f(x, i, b):
        return tile.scan(step, x, (i, b))

    arrays = X, filled((6, 3), "int64", 3, -4, 4), filled((6, 3, 5), "int32", 4)
    assert_agrees(f, *arrays, exact=True)
    found = Function(f, target="interpret")(*arrays)
    for mine, numpys in zip(found, f(*arrays), strict=True):
        np.testing.assert_array_equal(mine, numpys)


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("np.add.at(x, k, 1)", ImmutableArray, "np.add.at writes into the argument x"),
        ("np.add.at(x[1:].T, 0, 1)", ImmutableArray, "np.add.at writes into the argument x"),
        ("np.add.at(u, k, np.ones(4, int))", ArrayShapeError, "do not fit"),
        ("np.add.at(u, 0, x)", ArrayShapeError, r"shape \(x0=4, x1=5\) for 1 dimension"),
        ("np.add.at(u, k[:2], np.ones((1, 2, 5), int))", ArrayShapeError, "for 2 dimensions"),
        ("np.add.at(u, 9, 1)", ArrayShapeError, "index 9 of a dimension of 4"),
        ("np.add.at(u, u > 0, v)", DataDependentShape, "how many elements a mask chooses"),
        ("np.add.at(u, k, 1.5)", UnknownArrayFunction, "is cast from float64 to int32"),
        ("np.maximum.at(u, k, 2**40)", UnknownArrayFunction, "is cast from int64 to int32"),
        ("u = u > 0; np.add.at(u, k, 1)", UnknownArrayFunction, "is cast from int64 to bool"),
        ("u = u > 0; np.subtract.at(u, k, u[0])", UnknownArrayFunction, "takes no elements"),
        ("np.divide.at(u, k, 2)", UnknownArrayFunction, "np.divide.at cannot be captured"),
        ("u = np.bincount(k)", DataDependentShape, r"np.add.at\(y, x, 1\)"),
        ("w = u.T; np.add.at(u, k, 1); u = w", ImmutableArray, "changed in place"),
        ("np.add.at(TABLE, k, x[0])", UnknownArrayFunction, "no captured one"),
    ],
)  # fmt: skip
def test_what_is_refused(line, error, message) -> None:
    f = written(line)
    f.__globals__["TABLE"] = np.zeros(4)
    with pytest.raises(error, match=message):
        outputs(f, X, V, K, Y)
