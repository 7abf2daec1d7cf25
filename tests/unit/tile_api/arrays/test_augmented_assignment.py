"""``y += 1`` is NumPy's, or refused: who shares memory with what it writes sees it."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

from support.captured_arrays import assert_agrees, filled, outputs
from tile_core.errors import ArrayShapeError, ImmutableArray, UnknownArrayFunction


def every_sign(x, y):
    z = x + 1
    z += y
    z -= 2
    z *= x
    z //= 3
    z %= 7
    z <<= 1
    z >>= 2
    z |= 3
    z &= 61
    z ^= y
    return z


def accumulated(x, y):
    total = 0
    for row in x:
        total += row * 2
    return total


def before_and_after(x, y):
    z = x * 2
    before = z + 1
    z += y
    return before, z


def of_a_view(x, y):
    z = (x * 2).reshape(-1)
    z += 1
    return z


def of_chosen_rows(x, y):
    rows = x[np.arange(2)]
    rows += 1
    return rows, x


def of_a_copy(x, y):
    z, w = x.copy(), np.copy(y)
    z += 1
    w *= 2
    return z, w, x, y


@pytest.mark.parametrize(
    "function",
    [every_sign, accumulated, before_and_after, of_a_view, of_chosen_rows, of_a_copy],
    ids=lambda f: f.__name__,
)
def test_as_numpy(function) -> None:
    assert_agrees(function, filled((4, 6), "int32", 1), filled((4, 6), "int32", 2), exact=True)


def test_quotients_and_powers() -> None:
    def function(x):
        z = x + 1
        z /= 3
        z **= 2
        return z

    assert_agrees(function, filled((4, 6), "float32", low=1))


def test_the_type_stays() -> None:
    def function(x):
        z = x * 2
        z += np.float64(1) * np.arange(6.0)
        return z

    assert_agrees(function, filled((4, 6), "float32"), exact=True)


def another_name(x, y):
    z = x * 2
    w = z
    z += 1
    return w


def a_view_of_it(x, y):
    z = x * 2
    w = z[1:]
    z += 1
    return w + 1


def what_it_is_a_view_of(x, y):
    z = x * 2
    w = z[1:, ::2][:, 1:]
    w += 1
    return z, w


def numbers_of_it(x, y):
    z = x * 2
    first, total = z[0, 0], z.sum()
    z += 1
    total += first
    return first, total, z


@pytest.mark.parametrize(
    "function", [another_name, a_view_of_it, what_it_is_a_view_of, numbers_of_it]
)
def test_who_shares_memory_with_it_sees_it(function) -> None:
    assert_agrees(function, filled((4, 6), "int32", 1), filled((4, 6), "int32", 2), exact=True)


def what_a_transpose_is_of(x):
    z = x * 2
    w = z.T
    w += 1
    return z, w


def the_view_s_view(x):
    z = x * 2
    w = z[1:].T
    z += 1
    return w.sum()


def another_name_of_a_number(x):
    z = x.sum()
    w = z
    z += 1
    return w


@pytest.mark.parametrize(
    "function", [what_a_transpose_is_of, the_view_s_view, another_name_of_a_number]
)
def test_what_numpy_might_change_too_is_refused(function) -> None:
    with pytest.raises(ImmutableArray, match="changed in place under another name") as caught:
        outputs(function, filled((4, 6), "float32"))
    (note,) = caught.value.notes
    assert note.text == "it is changed here"
    assert linecache.getline(note.span.file, note.span.line).endswith("+= 1\n")


def test_shapes_and_types_that_would_change() -> None:
    def wider(x):
        z = x[0] * 2
        z += x
        return z

    def exact(x):
        z = x.astype("int32")
        z += 1.5
        return z

    with pytest.raises(ArrayShapeError, match=r"\+= makes shape \(x0=4, x1=6\) of \(x1=6,\)"):
        outputs(wider, filled((4, 6), "float32"))
    with pytest.raises(UnknownArrayFunction, match="\\+= makes float64 of int32"):
        outputs(exact, filled((4, 6), "float32"))
