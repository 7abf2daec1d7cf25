"""Elements that arrays of indices choose: read once, checked in the kernel."""

from __future__ import annotations

import numpy as np
import pytest

from support.captured_arrays import filled
from tile_api.arrays.function import Function
from tile_core.errors import ArrayShapeError

# Row values that registers cannot be named for.
pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")


def picked(x, i):
    return x[i]


def paged(q, keys, values, table):
    """Attention to the pages that a table names."""
    k = keys[table].reshape(-1, keys.shape[-1])
    v = values[table].reshape(-1, values.shape[-1])
    s = q @ k.T
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v


ERROR = (
    "[TL6009] device assertion failed: an index of dimension 0 of x is outside of its 9 elements"
)


@pytest.mark.parametrize("target", ["cpu", "interpret", "cuda:sm_80@sim"])
@pytest.mark.parametrize("index", [9, -10, 2**40])
def test_an_index_outside_is_an_error_of_the_kernel(target, index):
    x = filled((9, 4), "float32", 0, -2, 3)
    function = Function(picked, target=target)
    with pytest.raises(RuntimeError) as caught:
        function(x, np.array([0, index, 1]))
    assert str(caught.value).splitlines()[0] == ERROR
    np.testing.assert_array_equal(function(x, np.array([8, -9, 1])), x[[8, -9, 1]])


def test_rows_beyond_the_last_one_are_not_checked():
    x, i = filled((9, 4), "float32", 0, -2, 3), np.full(70, 3)

    def later(x, i):
        return x[i - 3]  # beyond the last row: -3, or -6

    np.testing.assert_array_equal(Function(later, target="cpu")(x, i), later(x, i))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("function", "checks"),
    [
        (picked, 1),
        (lambda x, i: x[i] * x[i] + x[i, ::-1], 1),
        (lambda x, i: np.take(x, i, 0, mode="clip") + np.take(x, i, 0, mode="wrap"), 0),
        (lambda x, i: x[i % 9, i % 4], 0),
        (lambda x, i: x[i, i // 3], 2),
        (lambda x, i: x[np.argmax(x, axis=0), np.arange(4)], 1),
    ],
)
def test_each_index_is_computed_and_checked_once(function, checks):
    x, i = filled((9, 4), "float32", 0, -2, 3), np.array([3, 0, 8, 1], "int32")
    made = Function(function, target="cpu")
    assert made.source(x, i).count("T.device_assert") == checks
    np.testing.assert_array_equal(made(x, i), function(x, i))


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a@sim"])
def test_pages_are_gathered_in_the_loop(target):
    keys, values = filled((10, 16, 16), "float32", 0), filled((10, 16, 8), "float32", 1)
    q, table = filled((5, 16), "float32", 2), np.array([7, 2, -1, 0, 3, 9, 8, 1, 4])
    function = Function(paged, target=target)
    source = function.source(q, keys, values, table)
    assert (source.count("@tile.jit"), source.count("T.device_assert")) == (1, 1)
    wanted = paged(q, keys, values, table)
    np.testing.assert_allclose(function(q, keys, values, table), wanted, rtol=1e-5, atol=1e-6)


PARTS = {
    "padded": lambda x, i: np.pad(x, ((1, 2), (0, 0)))[i % 12],
    "padded in front": lambda x, i: np.pad(x, ((3, 0), (0, 0)))[i % 12],
    "joined": lambda x, i: np.concatenate([x, x[:2], x * 2])[i],
    "a diagonal": lambda x, i: np.diag(x[:, 0], -2)[i % 11],
}


@pytest.mark.parametrize("name", PARTS)
def test_rows_of_what_has_parts_are_rows_of_the_right_one(name):
    x, i = filled((9, 4), "float32", 0, 1, 9), np.arange(-20, 20)
    wanted = PARTS[name](x, i)
    np.testing.assert_array_equal(Function(PARTS[name], target="cpu")(x, i), wanted)


@pytest.mark.parametrize("index", [20, -21])
def test_an_index_outside_of_what_is_joined(index):
    x = filled((9, 4), "float32", 0)
    with pytest.raises(RuntimeError, match="is outside of its 9 elements"):
        Function(PARTS["joined"], target="cpu")(x, np.array([0, index]))


CHOICES = {
    "arrays": lambda x, i: np.choose(i % 3, [x, x[::-1] * 2, -1]),
    "one array": lambda x, i: np.choose(i % 9, x),
    "clipped": lambda x, i: np.choose(i, [x, 3.5], mode="clip"),
    "wrapped": lambda x, i: i.choose([x, x.astype("float64"), 7], mode="wrap"),
    "truth": lambda x, i: np.choose(i > 0, [x, np.nan]),
    "numbers": lambda x, i: np.choose(i % 2, [2, 3]),
    "bytes": lambda x, i: np.choose((i % 2).astype("uint8"), [i.astype("int8"), 3]),
    "known": lambda x, i: np.choose([[0, 1, 1, 0]], [x, i[:4]]),
    "one": lambda x, i: (np.choose(i[0] % 2, [x[0, 0], 2.0]), np.choose(i[:0], [x[:0, :1], 1])),
    "broadcast": lambda x, i: np.choose(i[:4] % 2, [x[:, :1], x[0]]),
}


@pytest.mark.parametrize("name", CHOICES)
def test_numbers_choose_arrays(name):
    x, i = filled((9, 4), "float32", 0, 1, 9), np.arange(-20, 20)
    if name in ("arrays", "one array", "clipped", "wrapped", "truth"):
        i = i[:36].reshape(9, 4)
    wanted = CHOICES[name](x, i)
    for target in ("interpret", "cpu"):
        found = Function(CHOICES[name], target=target)(x, i)
        for mine, numpys in zip(
            *(f if isinstance(f, tuple) else (f,) for f in (found, wanted)), strict=True
        ):
            assert (mine.dtype, mine.shape) == (np.asarray(numpys).dtype, numpys.shape)
            np.testing.assert_array_equal(mine, numpys)


@pytest.mark.parametrize("target", ["interpret", "cpu"])
@pytest.mark.parametrize("number", [3, -1])
def test_a_number_of_no_array_is_an_error_of_the_kernel(target, number):
    x, i = filled((4,), "float32", 0), np.array([0, 2, number, 1])
    with pytest.raises(ValueError, match="invalid entry in choice array"):
        np.choose(i, [x, 1, 2])
    with pytest.raises(RuntimeError, match="is outside of its 3 elements"):
        Function(lambda x, i: np.choose(i, [x, 1, 2]), target=target)(x, i)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda x: np.choose(x, [x, 1]), "np.choose: numbers of arrays of float32"),
        (lambda x: np.choose([0, 1], [x, 1], mode="none"), "np.choose: mode 'none'"),
        (lambda x: np.choose(x > 0, []), "np.choose from no arrays"),
        (lambda x: np.choose(x > 0, [x, x[:2]]), "np.choose: shapes"),
    ],
)
def test_choices_that_make_no_sense(function, told):
    with pytest.raises(ArrayShapeError) as refused:
        Function(function)(filled((3,), "float32"))
    assert told in str(refused.value)


def test_an_index_is_checked_after_what_it_is_computed_from():
    def function(a, b):
        return b, a[np.where(b > 0, 0, -1)]

    a, b = filled((1, 1), "float32", 0, 1, 9), filled((1, 1), "float32", 1)
    for found, wanted in zip(Function(function)(a, b), function(a, b), strict=True):
        np.testing.assert_array_equal(found, wanted)
