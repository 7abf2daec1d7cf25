"""Eigenvalues, singular values and least squares are NumPy's, but for signs of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from support.gradients import Backward
from tile_api.arrays.function import Function
from tile_core.errors import ArrayShapeError, FrontendTypeError, UnknownArrayFunction

SIZES = {"one": (1, 1), "two": (2, 2), "seven": (7, 7), "a stack": (2, 3, 5, 5),
         "tall": (6, 3), "wide": (3, 5), "a column": (4, 1), "a row": (1, 4),
         "no matrices": (0, 3, 3)}  # fmt: skip


def matrices(shape: tuple[int, ...], dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def assert_close(found: Any, wanted: Any, size: float) -> None:
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    error = 100 * np.finfo(wanted.dtype).eps
    np.testing.assert_allclose(found, wanted, rtol=error, atol=error * size)


def assert_orthogonal(x: Any) -> None:
    unit = np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), (*x.shape[:-2], *x.shape[-1:] * 2))
    assert_close(np.swapaxes(x, -1, -2) @ x, unit, 1)


def check_eigh(function: Function, a: np.ndarray) -> None:
    values, vectors = function(a)
    size = np.abs(a).max(initial=0)
    assert_close(values, np.linalg.eigvalsh(a), size)
    assert_orthogonal(vectors)
    lower = np.tril(a) + np.swapaxes(np.tril(a, -1), -1, -2)
    assert_close((vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2), lower, size)


def check_svd(function: Function, a: np.ndarray, *, is_full: bool) -> None:
    u, s, vh = function(a)
    wanted = np.linalg.svd(a, full_matrices=is_full)
    assert (u.shape, vh.shape) == (wanted[0].shape, wanted[2].shape)
    size = np.abs(a).max(initial=0)
    assert_close(s, wanted[1], size)
    assert_orthogonal(u)
    assert_orthogonal(np.swapaxes(vh, -1, -2))
    k = s.shape[-1]
    assert_close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, size)


EIGH = Function(lambda a: np.linalg.eigh(a), target="interpret")
SVD = Function(lambda a: np.linalg.svd(a), target="interpret")
THIN = Function(lambda a: np.linalg.svd(a, full_matrices=False), target="interpret")


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", SIZES)
def test_as_in_numpy(size: str, dtype: str) -> None:
    a = matrices(SIZES[size], dtype)
    if a.shape[-1] == a.shape[-2]:
        check_eigh(EIGH, a)
    check_svd(SVD, a, is_full=True)
    check_svd(THIN, a, is_full=False)


DEGENERATE = {
    "nothing": np.zeros((4, 4)),
    "one value": 3 * np.eye(5),
    "two values": np.diag([2.0, -1, 2, -1, 2]),
    "of rank 1": np.outer(np.arange(5), np.arange(5.0)),
    "huge": 1e200 * (matrices((4, 4)) + matrices((4, 4)).T),
    "tiny": 1e-200 * (matrices((4, 4)) + matrices((4, 4)).T),
    "far apart": np.diag([1e8, 1, 1e-8]) + 1e-9,
    "exchanged": np.eye(4)[::-1],
}


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("name", DEGENERATE)
def test_values_that_are_equal_or_far_apart(name: str) -> None:
    a = DEGENERATE[name]
    check_eigh(EIGH, a)
    check_svd(SVD, a, is_full=True)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80@sim", "hip:gfx942@sim"])
def test_kernels(target: str) -> None:
    check_eigh(EIGH.on(target), matrices((3, 4, 4), "float32"))
    check_svd(THIN.on(target), matrices((5, 3), "float32"), is_full=False)


def test_the_other_triangle() -> None:
    a = matrices((4, 4))
    found = Function(lambda a: np.linalg.eigvalsh(a, "U"), target="interpret")(a)
    np.testing.assert_allclose(found, np.linalg.eigvalsh(a, "U"), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("shape", [(6, 3), (3, 6), (4, 4)])
def test_least_squares(shape: tuple[int, int]) -> None:
    a = matrices(shape)
    for b in (np.arange(float(shape[0])), matrices((shape[0], 2))):
        found = Function(lambda a, b: np.linalg.lstsq(a, b), target="interpret")(a, b)
        for mine, right in zip(found, np.linalg.lstsq(a, b), strict=True):
            assert np.asarray(mine).dtype == np.asarray(right).dtype
            np.testing.assert_allclose(mine, right, rtol=1e-10, atol=1e-12)


def of_a_matrix(a: Any) -> Any:
    """Return what singular values decide."""
    return np.linalg.pinv(a), np.linalg.matrix_rank(a), np.linalg.matrix_rank(a, tol=1.0)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_matrices_of_less_than_full_rank(rank: int) -> None:
    a = matrices((5, rank)) @ matrices((rank, 3)) if rank else np.zeros((5, 3))
    for mine, right in zip(
        Function(of_a_matrix, target="interpret")(a), of_a_matrix(a), strict=True
    ):
        np.testing.assert_allclose(mine, right, rtol=1e-10, atol=1e-12)
    x = Function(lambda a: np.linalg.lstsq(a, np.arange(5.0))[0], target="interpret")(a)
    np.testing.assert_allclose(x, np.linalg.lstsq(a, np.arange(5.0))[0], atol=1e-12)


@pytest.mark.parametrize("p", [None, 2, -2, 1, np.inf, "fro"])
def test_condition_numbers(p: Any) -> None:
    a = matrices((2, 4, 4))
    found = Function(lambda a: np.linalg.cond(a, p), target="interpret")(a)
    np.testing.assert_allclose(found, np.linalg.cond(a, p), rtol=1e-10)


def test_polynomials_are_fitted() -> None:
    x, y, w = np.linspace(-2, 3, 25), matrices((25, 2)), np.linspace(1, 2, 25)

    def function(x, y, w):
        found, *others = np.polyfit(x, y[:, 0], 2, full=True)
        of_one, of_two = np.polyfit(x, y[:, 0], 1, cov=True)[1], np.polyfit(x, y, 1, cov=True)[1]
        plain = np.polyfit(x, y[:, 0], 1, w=w, cov="unscaled")[1]
        return found, np.polyfit(x, y, 3, w=w), of_one, of_two, plain, *others[:3]

    for mine, right in zip(
        Function(function, target="interpret")(x, y, w), function(x, y, w), strict=True
    ):
        np.testing.assert_allclose(mine, right, rtol=1e-9, atol=1e-11)


SLOPES = {
    "eigh": lambda a: np.linalg.eigh(a + np.swapaxes(a, -1, -2)),
    "svd": lambda a: np.linalg.svd(a[..., :3], full_matrices=False),
    "pinv": lambda a: np.linalg.pinv(a[..., :3]),
    "lstsq": lambda a: np.linalg.lstsq(a[0, :, :3], a[1, :, 0])[0],
    "nuc": lambda a: np.linalg.norm(a, "nuc", (-2, -1)),
}


@pytest.mark.parametrize("name", SLOPES)
def test_gradients_are_slopes(name: str) -> None:
    Backward(SLOPES[name], np.random.default_rng(6).standard_normal((2, 4, 4))).check()


def test_names_of_torch() -> None:
    def function(a):
        values, vectors = torch.linalg.eigh(a @ a.mT)
        u, s, vh = torch.linalg.svd(a, full_matrices=False)
        rebuilt = (u * s[..., None, :]) @ vh
        return values, vectors * values @ vectors.mT, rebuilt, torch.linalg.pinv(a)

    a = torch.from_numpy(matrices((5, 3)))
    for mine, right in zip(Function(function, target="interpret")(a), function(a), strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda a: np.linalg.eigh(a[:2]), ArrayShapeError, "is of square matrices, not of 2 x 3"),
        (lambda a: np.linalg.eigh(a, "M"), UnknownArrayFunction, "UPLO is 'M'"),
        (lambda a: np.linalg.svd(a.astype("float16")), FrontendTypeError, "does not factorise"),
        (lambda a: np.linalg.lstsq(a, a[0, :2]), ArrayShapeError, "2 rows for a matrix of 3"),
        (lambda a: np.linalg.lstsq(a[:0], a[:0, 0]), ArrayShapeError, "without elements"),
        (lambda a: np.linalg.lstsq(a[None], a), ArrayShapeError, "is of one matrix"),
        (lambda a: np.polyfit(a[0], a[0], 2, cov=True), ArrayShapeError, "tell no covariance of 3"),
        (lambda a: np.polyfit(a[0], a[:2, 0], 1), ArrayShapeError, "takes a sequence x"),
    ],
)
def test_what_is_refused(function, error, message) -> None:
    with pytest.raises(error, match=message):
        Function(function).equations(np.ones((3, 3)))
