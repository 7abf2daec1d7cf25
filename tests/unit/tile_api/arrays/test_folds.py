"""Reductions against NumPy: axes, types, masks, first values, arrays of no elements."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from support.captured_arrays import assert_agrees, filled, outputs
from tile_api.arrays.capturing import folds, numpy_names
from tile_api.arrays.function import Function
from tile_api.arrays.planning.plan import Blocks

DTYPES = ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"]
AXES = [None, 0, -1, (0, 2), (1, -1), (), (0, 1, 2)]
SUMS = ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all"]
STREAMED = Blocks(rows=4, stream=8, columns=8, resident=0)
ONE_AXIS = ["argmax", "argmin"]
KNOWN = ["nanargmax", "nanargmin"]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SUMS)
def test_axes(name, dtype):
    x = filled((2, 3, 5), dtype, 1, -2, 3)
    known = getattr(np, name)
    for axis in AXES:
        for keepdims in (False, True):
            assert_agrees(lambda x: known(x, axis=axis, keepdims=keepdims), x)
    assert_agrees(lambda x: getattr(x, name)(1), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ONE_AXIS)
def test_positions(name, dtype):
    x = filled((2, 3, 5), dtype, 2)
    for axis in (None, 0, 1, -1):
        for keepdims in (False, True):
            known = getattr(np, name)
            assert_agrees(lambda x: known(x, axis=axis, keepdims=keepdims), x, exact=True)
    assert_agrees(lambda x: getattr(x, name)(), x, exact=True)


@pytest.mark.parametrize("name", KNOWN)
def test_positions_of_numbers(name):
    known, inf = getattr(np, name), np.inf
    x = np.float32([[np.nan, -inf, inf, 2], [4, np.nan, 4, 2], [np.nan, -inf, -inf, np.nan],
                    [inf, np.nan, inf, 1], [-0.0, 0.0, np.nan, -0.0]])  # fmt: skip
    whole = filled((3, 5), "int8")
    for target in ("interpret", "cpu"):
        function = tile.function(
            lambda x, y: (known(x, axis=1), known(x), known(x, 0, keepdims=True), known(y, 1)),
            target=target,
        )
        for mine, numpys in zip(function(x, whole), function.func(x, whole), strict=True):
            assert mine.dtype == np.int64
            np.testing.assert_array_equal(mine, numpys)
    with pytest.raises(ValueError, match="TL1204"):
        outputs(lambda x: known(x, axis=0), x[:0])
    assert_agrees(lambda x: known(x, axis=1), x[:0])


@pytest.mark.parametrize("name", ["argmax", "argmin", "max", "min"])
def test_what_is_no_number_comes_first(name):
    x = np.float32([[1, np.nan, 3, np.nan], [4, 2, 4, 2], [np.inf, -np.inf, np.inf, 0]])
    assert_agrees(lambda x: getattr(np, name)(x, axis=1), x, exact=True)


MASKED = {
    "sum": {}, "prod": {}, "mean": {}, "var": {}, "std": {}, "any": {}, "all": {},
    "max": {"initial": -3}, "min": {"initial": 3},
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "float16", "float32"])
@pytest.mark.parametrize("name", MASKED)
def test_of_chosen_elements(name, dtype):
    x, keywords = filled((3, 7), dtype, 3), MASKED[name]
    if dtype == "bool" and keywords:
        keywords = {"initial": False}
    known = getattr(np, name)
    mask = filled((3, 7), "bool", 4)
    mask[0] = False
    assert_agrees(lambda x, m: known(x, axis=1, where=m, **keywords), x, mask)
    assert_agrees(lambda x, m: known(x, axis=0, where=m[:, :1], **keywords), x, mask)


@pytest.mark.parametrize("dtype", ["int8", "int32", "float32"])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_with_a_first_value(name, dtype):
    x, known = filled((3, 7), dtype, 5), getattr(np, name)
    assert_agrees(lambda x: known(x, axis=1, initial=2), x)
    assert_agrees(lambda x: known(x, initial=-1), x)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_with_a_type(name, dtype):
    if dtype == "int64" and name in ("var", "std"):
        return
    known = getattr(np, name)
    assert_agrees(lambda x: known(x, axis=0, dtype=dtype), filled((3, 7), "int8", 6))


@pytest.mark.parametrize("name", ["var", "std"])
def test_degrees_of_freedom(name):
    x, known = filled((3, 7), "float32", 7), getattr(np, name)
    for function in (
        lambda x: known(x, 1, ddof=1), lambda x: known(x, 0, correction=1),
        lambda x: known(x, 0, ddof=3), lambda x: known(x, 0, ddof=5),
        lambda x: known(x, 1, ddof=2, where=x > 0),
    ):  # fmt: skip
        assert_agrees(function, x)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "any", "all"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "float32"])
def test_no_elements(name, dtype):
    known = getattr(np, name)
    for axis in (None, 0, 1):
        assert_agrees(lambda x: known(x, axis=axis), filled((0, 3), dtype))


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extrema_of_no_elements(name):
    known, x = getattr(np, name), filled((0, 3), "int32")
    with pytest.raises(ValueError, match="TL1204"):
        outputs(lambda x: known(x, axis=0), x)
    assert_agrees(lambda x: known(x, axis=1), x)
    if not name.startswith("arg"):
        assert_agrees(lambda x: known(x, axis=0, initial=2), x)


@pytest.mark.parametrize("axis", [3, -4, (0, 0), (0, -3)])
def test_wrong_axes(axis):
    x = filled((2, 3, 5), "float32")
    with pytest.raises(ValueError, match="ax"):
        np.sum(x, axis)
    with pytest.raises(ValueError, match="TL1204"):
        outputs(lambda x: np.sum(x, axis), x)


def test_one_element():
    assert_agrees(lambda x: (x.sum(), x.max(), x.mean(), np.any(x)), filled((), "int8", 8))
    assert_agrees(lambda x: (x.sum(1), x.max(1), x.mean(1), x.argmax(1)), filled((3, 1), "int8", 8))


NAN = np.float32([[1, np.nan, 3], [np.nan, np.nan, np.nan], [2, -1, 0]])
CASES = {
    "amax": [(lambda x: np.amax(x, 1), NAN)],
    "amin": [(lambda x: np.amin(x), NAN)],
    "ptp": [(lambda x: np.ptp(x), NAN[2]), (lambda x: np.ptp(x, 0), filled((3, 5), "int32"))],
    "count_nonzero": [(lambda x: np.count_nonzero(x, axis=1), filled((3, 5), "int8")),
                      (lambda x: np.count_nonzero(x, axis=(0, 1), keepdims=True), NAN)],
    "average": [
        (lambda x: np.average(x), NAN[2]), (lambda x: np.average(x, 0), filled((3, 5), "int8")),
        (lambda x: np.average(x, 1, x[0] * x[0] + 1), filled((3, 5), "int32")),
        (lambda x: np.average(x, weights=x * x + 1), filled((3, 5), "float32")),
        (lambda x: np.average(x, 1, x[0].astype("float32") ** 2 + 1), filled((3, 5), "int8")),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_function(name):
    for function, x in CASES[name]:
        assert_agrees(function, x)


KEYWORDS = [
    (lambda x: (np.nanstd(x, 1, ddof=1), np.nanvar(x, axis=0, ddof=2, keepdims=True)), NAN),
    (lambda x: np.nanvar(x, axis=-1, ddof=7), NAN), (lambda x: np.nansum(x, 1, "float64"), NAN),
    (lambda x: np.nanmean(x, axis=1, where=x > 1), NAN),
    (lambda x: np.nanmax(x, 1, initial=1), NAN),
    (lambda x: np.nanmin(x, axis=0, where=x > 0, initial=9.0), NAN),
    (lambda x: np.nanprod(x, where=x != 3), NAN), (lambda x: np.nansum(x, 0, initial=2.0), NAN),
    (lambda x: (np.nanstd(x, ddof=1), np.nansum(x, 0, dtype="int8")), filled((3, 5), "int32")),
]  # fmt: skip


@pytest.mark.parametrize("case", KEYWORDS)
def test_reductions_without_nan_take_what_others_take(case):
    assert_agrees(*case)


@pytest.mark.parametrize("name", folds.NAN_FOLDS)
def test_without_what_is_no_number(name):
    known = getattr(np, name)
    assert_agrees(lambda x: known(x, axis=1), NAN)
    assert_agrees(lambda x: known(x), filled((5,), "int8"))


REDUCED = {
    "add": np.int8, "multiply": np.int8, "maximum": np.float32, "minimum": np.int32,
    "logical_and": np.int8, "logical_or": np.float32, "logaddexp": np.float32,
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCED)
def test_reduce_of_a_ufunc(name):
    ufunc, x = getattr(np, name), filled((2, 3, 5), REDUCED[name], 9)
    for axis in (0, 1, -1, (0, 1), None):
        assert_agrees(lambda x: ufunc.reduce(x, axis=axis), x)
        assert_agrees(lambda x: ufunc.reduce(x, axis=axis, keepdims=True), x)
    assert_agrees(lambda x: ufunc.reduce(x), x)


def test_logaddexp_of_infinities():
    x = np.float32([[-np.inf, -np.inf], [np.inf, 1], [1, -np.inf], [np.nan, 1], [80, 90]])
    assert_agrees(lambda x: np.logaddexp.reduce(x, axis=1), x)
    assert_agrees(lambda x: np.logaddexp.reduce(x, axis=1), x[:, :0])


def test_every_reduction_is_met():
    names = {name for name, f in numpy_names.FUNCTIONS.items() if f.__module__ == folds.__name__}
    assert names <= {*SUMS, *ONE_AXIS, *KNOWN, *CASES, *folds.NAN_FOLDS}
    assert set(numpy_names._REDUCED) == set(REDUCED)


def test_a_sum_of_what_a_mean_shifts_is_no_product_in_a_loop() -> None:
    def weights(x):
        centred = x - x.mean(axis=(0, 2), keepdims=True)
        y = (centred * centred).sum(axis=-1)
        return np.exp(y - y.max(axis=-1, keepdims=True)).sum(axis=-1)

    x = np.random.default_rng(0).random((3, 20, 4), np.float32)
    made = Function(weights, target="cpu")
    np.testing.assert_allclose(made(x), weights(x), rtol=1e-5)
    reasons = [kernel.reasons for kernel in made.explain(x).kernels]
    assert reasons[1] == ("it is no product of two tiles in the loop through x1",)


@pytest.mark.parametrize("first", range(5))
def test_folds_of_one_tile_meet_what_each_needs_beyond_its_end(first: int) -> None:
    """20 elements are two and a half blocks: maxima want -inf there, sums zeros, products ones."""
    names = ["max", "sum", "min", "mean", "prod"]
    names = [*names[first:], *names[:first]]
    x = np.random.default_rng(first).integers(1, 3, (5, 20)).astype("float32")

    def f(x):
        return tuple(getattr(x, name)(axis=-1) for name in names)

    found = Function(f, target="interpret", blocks=STREAMED)(x)
    for name, got in zip(names, found, strict=True):
        np.testing.assert_allclose(got, getattr(x, name)(axis=-1), rtol=1e-6, err_msg=name)
