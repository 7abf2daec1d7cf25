"""What is computed twice in terms of other variables is one kernel."""

from __future__ import annotations

import numpy as np
import pytest

from support.captured_arrays import filled
from tile_api.arrays.equations.expressions import add, index, load, multiply, reduce
from tile_api.arrays.equations.substitution import renamed_alike
from tile_api.arrays.function import Function
from tile_core.dtypes import dtype_of

FLOAT = dtype_of("float32")


def product(i: str, k: str, j: str, extent: int = 4):
    rows, inner, columns = index(i, 3), index(k, extent), index(j, 3)
    a, b = load("a", (rows, inner), FLOAT), load("b", (inner, columns), FLOAT)
    return reduce("sum", k, extent, multiply(a, b))


def test_names_of_variables_make_no_difference() -> None:
    same, variables = renamed_alike(product("i", "k", "j"))
    other, others = renamed_alike(product("k", "i", "m"))
    assert same is other
    assert [v.value[0] for v in variables] == ["i", "j"]
    assert [v.value[0] for v in others] == ["k", "m"]


def test_all_else_makes_one() -> None:
    same = renamed_alike(product("i", "k", "j"))[0]
    assert same is not renamed_alike(product("i", "k", "j", 5))[0]
    assert same is not renamed_alike(product("i", "k", "i"))[0]
    assert same is not renamed_alike(add(product("i", "k", "j"), load("a", (), FLOAT)))[0]


@pytest.mark.parametrize("steps", [2, 4])
def test_steps_that_are_written_out(steps) -> None:
    def iterated(a, v):
        for _ in range(steps):
            v = a @ v
            v = v / np.sqrt((v * v).sum())
        return v

    a, v = filled((9, 9), "float64", 1), filled((9,), "float64", 2)
    function = Function(iterated, target="cpu")
    assert len(function.kernels(a, v)) <= 2 * steps
    np.testing.assert_allclose(function(a, v), iterated(a, v), rtol=1e-13)


def test_a_product_and_its_transpose() -> None:
    def both(x):
        c = (x.T @ x) / 7
        return np.exp(c) @ np.exp(c.T) + c.sum(0) * c.sum(1)[:, None]

    x = filled((40, 12), "float64", 3)
    found = Function(both, target="cpu")(x)
    np.testing.assert_allclose(found, both(x), rtol=1e-12)


def test_integers_less_themselves_are_nothing() -> None:
    def remainders(x):
        chosen = np.choose(x % 3, [x, 2, 1])
        nothing = chosen - chosen
        return np.fmod(nothing, nothing), (3 * x - 3 * x) % 7, x // 2 - x // 2 + x

    x = filled((2, 7), "int32", 4)
    with np.errstate(all="ignore"):
        wanted = remainders(x)
    for found, right in zip(Function(remainders, target="cpu")(x), wanted, strict=True):
        np.testing.assert_array_equal(found, right)


def test_a_computed_number_chooses_an_element() -> None:
    def last(x):
        return x[np.clip(x.sum(), -x.shape[0], x.shape[0] - 1)]

    x = filled((9,), "int32", 5)
    np.testing.assert_array_equal(Function(last, target="cpu")(x), last(x))


@pytest.mark.parametrize("target", ["interpret", "cpu"])
def test_windows_of_what_is_carried_have_zeros_beside_them(target) -> None:
    def windows(x):
        sums = np.sort(x, axis=-1)[:, ::-1].sum(-1)
        return np.convolve(sums, sums, "same"), np.convolve(np.sort(x, axis=0)[0], sums[:3], "same")

    x = filled((64, 64), "float64", 6)
    for found, right in zip(Function(windows, target=target)(x), windows(x), strict=True):
        np.testing.assert_array_equal(found, right)
