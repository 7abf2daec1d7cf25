"""Interpolation, bins, finite differences, integrals and polynomials against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from support.captured_arrays import assert_agrees, filled
from tile_api.arrays.capturing import interpolation, numpy_names
from tile_api.arrays.function import Function
from tile_core.errors import ArrayShapeError, UnknownArrayFunction

X = filled((4, 6), "float32", 1)
EDGES = np.sort(filled((5,), "float32", 2))
TIED = np.float32([0, 1, 1, 1, 3])
ASKED = np.float32([-np.inf, -1, 0, 0.5, 1, 2, 3, 4, np.inf, np.nan])
trapezoid = getattr(np, "trapezoid", None) or np.trapz


@pytest.mark.parametrize("side", ["left", "right"])
def test_places_among_sorted(side):
    assert_agrees(lambda a, v: np.searchsorted(a, v, side), EDGES, X)
    assert_agrees(lambda a, v: np.searchsorted(a, v, side=side), TIED, ASKED)
    with_nan = np.float32([0, 1, np.inf, np.nan, np.nan])
    assert_agrees(lambda a, v: np.searchsorted(a, v, side), with_nan, ASKED)
    assert_agrees(lambda a, v: np.searchsorted(a, v, side), np.int32([1, 1, 5]), np.int32(range(7)))


@pytest.mark.parametrize("right", [False, True])
def test_bins(right):
    assert_agrees(lambda x: np.digitize(x, [0.0, 1.0, 1.0, 3.0], right), ASKED)
    assert_agrees(lambda x: np.digitize(x, np.float32([3, 1, 1, 0]), right=right), ASKED[1:-1])
    for edges in (EDGES, EDGES[::-1].copy(), EDGES[:1]):
        assert_agrees(lambda x, bins: np.digitize(x, bins, right), X, edges)


def test_interpolated():
    assert_agrees(lambda x, xp, fp: np.interp(x, xp, fp), ASKED, np.float32([0, 1, 3]), EDGES[:3])
    assert_agrees(lambda x: np.interp(x, [0, 1, 2], [5, 7, 4], left=-1.0, right=np.nan), ASKED)
    assert_agrees(lambda x: np.interp(x, [1.5], [2.0], 0.0), ASKED)


def test_integrals():
    assert_agrees(lambda y: trapezoid(y), X)
    assert_agrees(lambda y: trapezoid(y, dx=0.5, axis=0), X)
    assert_agrees(lambda y, x: trapezoid(y, x), X, filled((6,), "float32", 3))
    assert_agrees(lambda y, x: trapezoid(y, x, axis=0), X, filled((4, 6), "float32", 3))
    assert_agrees(lambda y: trapezoid(y), X[:, :1])
    assert_agrees(lambda y: trapezoid(y), filled((3, 5), "int32"))


@pytest.mark.parametrize("edge_order", [1, 2])
def test_derivatives(edge_order):
    assert_agrees(lambda f: np.gradient(f, edge_order=edge_order), X)
    assert_agrees(lambda f: np.gradient(f, 0.5, axis=1, edge_order=edge_order), X)
    places = np.float32([0, 1, 1.5, 3, 3.25, 9])
    assert_agrees(lambda f, x: np.gradient(f, x, axis=1, edge_order=edge_order), X, places)
    assert_agrees(lambda f: np.gradient(f, 2.0, places, edge_order=edge_order), X)
    assert_agrees(lambda f: np.gradient(f, edge_order=edge_order), X[:3, 0])
    assert_agrees(lambda f: np.gradient(f, axis=-1, edge_order=edge_order), filled((2, 5), "int32"))


def test_slopes_have_the_type_of_samples():
    assert_agrees(lambda f, x: np.gradient(f, x), filled((6,), "float16"), X[0].cumsum())


def test_polynomials_and_pieces():
    assert_agrees(lambda x: np.polyval([2.0, -1.0, 3.0], x), X)
    assert_agrees(lambda x: np.polyval(np.float32([1, 2]), x), X)
    assert_agrees(lambda x: np.polyval([4], x), X)
    assert_agrees(lambda x: np.polyval([], x), X)
    assert_agrees(lambda p, x: np.polyval(p, x), EDGES, X)
    assert_agrees(lambda p, x: np.polyval(p, x), np.tile(EDGES[:, None], 6), X)
    assert_agrees(lambda x: np.piecewise(x, [x < 0, x > 1], [np.negative, 1, np.sqrt]), np.abs(X))
    assert_agrees(lambda x: np.piecewise(x, [x < 1, x < 0], [lambda y: y + 2, 7.0]), X)
    assert_agrees(lambda x: np.piecewise(x, [x < 1], [lambda y, k: y * k, 0], 3), X)


REFUSED = {
    "side": (lambda x: np.searchsorted(x[0], x, "up"), "np.searchsorted has no side 'up'"),
    "matrix": (lambda x: np.searchsorted(x, x), "np.searchsorted takes a sequence, and got 2"),
    "lengths": (lambda x: np.interp(x, x[0], x[0, 1:]), "np.interp: 6 places, 5 values"),
    "samples": (lambda x: np.gradient(x[:, :1], axis=1), "np.gradient: 1 samples"),
    "places": (lambda x: np.gradient(x, x[0, 1:], axis=1), "np.gradient: 6 places of 6"),
    "distances": (lambda x: np.gradient(x, 1.0, 2.0, 3.0), "3 distances for 2 dimensions"),
    "edges": (lambda x: np.digitize(x, [0, 2, 1]), "edges neither ascend nor descend"),
    "order": (lambda x: np.gradient(x, edge_order=3), "edge_order is 1 or 2, not 3"),
    "pieces": (lambda x: np.piecewise(x, [x < 0], [1, 2, 3]), "1 conditions, 3 functions"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    function, told = REFUSED[name]
    with pytest.raises((ArrayShapeError, UnknownArrayFunction)) as error:
        Function(function).equations(X)
    assert told in str(error.value)


def test_every_function_is_met():
    mine = {
        f.__name__ for f in numpy_names.FUNCTIONS.values() if f.__module__ == interpolation.__name__
    }
    assert mine == {
        "searchsorted", "digitize", "interp", "trapezoid", "gradient", "polyval", "polyfit",
        "piecewise",
    }  # fmt: skip


def test_as_kernels():
    def curve(x, xp, fp):
        return np.interp(x, xp, fp), np.digitize(x, xp), np.gradient(x, axis=1)

    places = np.linspace(-1, 1, 9, dtype=np.float32)
    for target in ("cpu", "interpret"):
        found = Function(curve, target=target)(X, places, places**2)
        for got, wanted in zip(found, curve(X, places, places**2), strict=True):
            assert got.dtype == wanted.dtype
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", ["cpu", "interpret", "cuda:sm_80@sim"])
@pytest.mark.parametrize("size", [65, 100, 128])
def test_long_sequences_are_searched_in_halves(size, target):
    def both(a, v):
        return np.searchsorted(a, v), np.searchsorted(a, v, side="right")

    a = np.sort(np.random.default_rng(0).integers(-9, 9, size)).astype("float32")
    a[-3:] = np.inf, np.nan, np.nan
    a[0] = -np.inf
    v = np.array([[-10, -9, -0.0, 3, 3.5, 8, 9, np.nan, np.inf, -np.inf]], "float32")
    for got, right in zip(Function(both, target=target)(a, v), both(a, v), strict=True):
        np.testing.assert_array_equal(got, right)


def test_places_in_what_is_computed():
    def places(a, b, v):
        running = np.cumsum(np.abs(a))
        known = np.sort(a), running / running[-1], np.sort(a @ b)
        return [np.searchsorted(x, v) for x in known]

    random = np.random.default_rng(1)
    a, b, v = (random.random(shape).astype("float32") for shape in [(300,), (300, 200), (20,)])
    assert_agrees(places, a, b.round(1), v.round(2))
    for got, right in zip(Function(places, target="cpu")(a, b, v), places(a, b, v), strict=True):
        assert np.abs(got - right).max() <= 1  # roundings of sums


def test_checks_of_places_that_are_searched_for_are_short():
    """In a kernel whose blocks have one place each: they were written out as often as read."""

    def places(a, v, s, p, q):
        return np.searchsorted(a, v, sorter=s), ((p @ q) < v[:, None]).sum(1)

    random = np.random.default_rng(2)
    a, v = random.random(80), random.random(20)
    s = np.argsort(a)
    p, q = random.random(300), random.random((300, 200)) / 150
    function = Function(places, target="cpu")
    assert len(function.source(a, v, s, p, q).splitlines()) < 700
    for got, right in zip(function(a, v, s, p, q), places(a, v, s, p, q), strict=True):
        np.testing.assert_array_equal(got, right)
