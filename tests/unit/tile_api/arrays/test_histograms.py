"""`np.histogram` and `np.histogram2d` count as NumPy does, between the same edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.captured_arrays import assert_agrees, filled, outputs
from support.gradients import Backward
from tile_api.arrays.function import Function
from tile_core.errors import ArrayShapeError, DataDependentShape, UnknownArrayFunction

RANDOM = np.random.default_rng(0)
ARRAYS = {
    "integers": filled((40,), "int32", 1, -9, 9),
    "float32": RANDOM.standard_normal((6, 7)).astype("float32"),
    "float64": RANDOM.standard_normal(50),
    "none": np.zeros(0, "float32"),
    "equal": np.full(5, 2.0),
    "on edges": np.array([-3, -2, 0, 0.25, 1, 2, 3, 3]),
}
PROGRAMS = """
np.histogram(x, range=(-2, 2))
np.histogram(x, 7, (0, 3))
np.histogram(x, [-2, 0, 1, 3])
np.histogram(x, np.array([-2, 0.25, 0.25, 3]), density=True)
np.histogram(x, 5, (-3, 3), weights=x * 2)
np.histogram(x, [0, 1, 2], weights=np.abs(x))
np.histogram(x, bins=4)
np.histogram(x, 4, density=True)
np.histogram(x, np.linspace(0, 1, 4) * 3)
np.histogram2d(x.ravel(), x.ravel() * 2, 4, [(-2, 2), (0, 3)])
np.histogram2d(x.ravel(), -x.ravel(), ([-1, 0, 1], 3), [None, (0, 3)], weights=x.ravel())
np.histogram2d(x.ravel(), x.ravel() * 2, (3, 4), density=True)
np.histogram2d(x.ravel(), x.ravel(), [-2, 0, 1, 4])
""".strip().splitlines()
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")


def written(line: str):
    """Return a function of one array."""
    names = {"np": np}
    exec(f"def f(x):\n    return {line}", names)
    return names["f"]


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("line", PROGRAMS)
def test_as_numpy(line, name) -> None:
    assert_agrees(written(line), ARRAYS[name])


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("target", ["cpu", "interpret"])
@pytest.mark.parametrize("line", [PROGRAMS[k] for k in (1, 4, 5, 9)])
def test_kernels_count_as_numpy(line, target) -> None:
    f, x = written(line), ARRAYS["integers"]
    for mine, numpys in zip(Function(f, target=target)(x), f(x), strict=True):
        np.testing.assert_allclose(mine, numpys, rtol=1e-15)


def test_what_is_no_number_is_in_no_bin() -> None:
    assert_agrees(written("np.histogram(x, 4, (0, 2))"), np.array([0, np.nan, 1.5, np.nan, 2]))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    x=st.lists(st.integers(-20, 20), max_size=30),
    dtype=st.sampled_from(["int8", "int32", "float32", "float64"]),
    edges=st.lists(st.integers(-20, 20), min_size=2, max_size=6).map(sorted),
    bins=st.integers(1, 9),
)
def test_random_elements(x, dtype, edges, bins) -> None:
    """Many stand on an edge."""
    x = (np.array(x) / (1 if "int" in dtype else 4)).astype(dtype)
    assert_agrees(lambda x: np.histogram(x, edges), x, exact=True)
    assert_agrees(lambda x: np.histogram(x, bins, (edges[0], edges[-1])), x, exact=True)


@pytest.mark.parametrize("target", ["cpu", "interpret"])
def test_elements_are_added_where_their_bins_are(target) -> None:
    def both(x, w):
        edges = np.linspace(-2, 2, 90, dtype="float32")
        return *np.histogram(x, 90, (-2, 2)), np.histogram(x, edges, weights=w)[0]

    x = RANDOM.standard_normal(1003).astype("float32")
    x[:6] = np.nan, np.inf, -np.inf, 2, -2, 1.9999999
    w = filled(1003, "float32", 3)
    function = Function(both, target=target)
    for got, right in zip(function(x, w), both(x, w), strict=True):
        np.testing.assert_array_equal(got, right)
    assert str(function.explain(x, w)).count("scatter: of 1003 indices") == 2


def test_gradients_of_weights() -> None:
    x, w = RANDOM.standard_normal(20), RANDOM.standard_normal(20)
    Backward(lambda x, w: np.histogram(x, 4, (-1, 1), weights=w)[0], x, w).check()


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("np.histogram(x, 'auto')", DataDependentShape, "how many bins np.histogram has"),
        ("np.histogram(x, 0)", UnknownArrayFunction, "must be positive"),
        ("np.histogram(x, [2, 1])", UnknownArrayFunction, "must increase monotonically"),
        ("np.histogram(x, 3, (2, 1))", UnknownArrayFunction, "max must be larger than min"),
        ("np.histogram(x, 3, weights=x[1:])", ArrayShapeError, "weights have the shape"),
        ("np.histogram2d(x, x[1:])", ArrayShapeError, "of x as many as of y"),
    ],
)
def test_what_is_refused(line, error, message) -> None:
    with pytest.raises(error, match=message):
        outputs(written(line), ARRAYS["float64"])


BYTES = np.random.default_rng(3).integers(0, 256, 40).astype("uint8")
COUNTED = {
    "bytes": lambda x, w: np.bincount(x, minlength=256),
    "beyond": lambda x, w: np.bincount(x, minlength=300),
    "weights": lambda x, w: np.bincount(x, w, 256),
    "whole weights": lambda x, w: np.bincount(x, x.astype(int), 256),
    "truths": lambda x, w: np.bincount(x > 99, minlength=2),
    "rests": lambda x, w: np.bincount(x.astype(int) % 7, minlength=7),
    "bounded": lambda x, w: np.bincount(np.clip(x.astype(int) - 99, 0, 4), w, minlength=5),
    "none": lambda x, w: np.bincount(x[:0], minlength=256),
}


@pytest.mark.parametrize("name", COUNTED)
def test_bins_of_whole_numbers_that_are_known_to_be_small(name):
    w = np.random.default_rng(4).standard_normal(40)
    found = Function(COUNTED[name], target="interpret")(BYTES, w)
    wanted = COUNTED[name](BYTES, w)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda x: np.bincount(x, minlength=255), DataDependentShape),
        (lambda x: np.bincount(x.astype(int), minlength=256), DataDependentShape),
        (lambda x: np.bincount(x.astype(int) % 7, minlength=6), DataDependentShape),
        (lambda x: np.bincount(x[None], minlength=256), ArrayShapeError),
        (lambda x: np.bincount(x * 0.5, minlength=256), ArrayShapeError),
        (lambda x: np.bincount(x, x[:3], minlength=256), ArrayShapeError),
    ],
)
def test_bins_that_are_not_known(function, error):
    with pytest.raises(error):
        Function(function).equations(BYTES)
