"""Factorisations of matrices, and what they solve, are as NumPy's and torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tile_api as tile
from support.gradients import Backward
from tile_api.arrays.function import Function
from tile_core.errors import ArrayShapeError, FrontendTypeError, UnknownArrayFunction

SIZES = {"none": (0, 0), "one": (1, 1), "two": (2, 2), "seven": (7, 7), "a stack": (2, 3, 5, 5),
         "no matrices": (0, 3, 3)}  # fmt: skip


def definite(a: np.ndarray) -> np.ndarray:
    return np.asarray(a @ np.swapaxes(a, -1, -2) + a.shape[-1] * np.eye(a.shape[-1], dtype=a.dtype))


OF_MATRICES: dict[str, Callable[[Any], Any]] = {
    "inv": lambda a: np.linalg.inv(a),
    "det": lambda a: np.linalg.det(a),
    "slogdet": lambda a: np.linalg.slogdet(a),
    "solve": lambda a: np.linalg.solve(a, a[..., ::-1] * 2),
    "solve a vector": lambda a: np.linalg.solve(a, np.arange(a.shape[-1])),
    "power": lambda a: np.linalg.matrix_power(a, -3),
    "cholesky": lambda a: np.linalg.cholesky(a),
    "upper cholesky": lambda a: np.linalg.cholesky(a, upper=True),
    "qr": lambda a: np.linalg.qr(a),
    "tall": lambda a: np.linalg.qr(a[..., : a.shape[-1] // 2]),
    "wide": lambda a: np.linalg.qr(a[..., : a.shape[-1] // 2, :]),
    "complete": lambda a: np.linalg.qr(a[..., : a.shape[-1] // 2], mode="complete"),
    "r": lambda a: np.linalg.qr(a, mode="r"),
}


def check(name: str, a: np.ndarray, run: Callable[..., Any]) -> None:
    wanted, found = OF_MATRICES[name](a), run(a)
    if not isinstance(wanted, tuple):
        wanted, found = (wanted,), (found,)
    assert len(found) == len(wanted)
    error = 100 * np.finfo(wanted[0].dtype).eps
    for got, exact in zip(found, wanted, strict=True):
        assert (got.shape, got.dtype) == (exact.shape, exact.dtype)
        np.testing.assert_allclose(got, exact, rtol=error, atol=error * np.abs(a).max(initial=1))


def matrices(*shape: int, dtype: str = "float64") -> np.ndarray:
    """Return positive definite matrices that need changes of rows where these are not asked for."""
    return definite(np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", OF_MATRICES)
def test_as_in_numpy(name: str, size: str, dtype: str) -> None:
    a = matrices(*SIZES[size], dtype=dtype)
    if "cholesky" not in name:
        a = np.roll(a, 1, -2)  # the largest elements stand beside the diagonal
    check(name, a, Function(OF_MATRICES[name]).interpret)


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80@sim"])
@pytest.mark.parametrize("name", ["solve", "slogdet", "cholesky", "qr"])
def test_kernels(name: str, target: str) -> None:
    a = matrices(2, 5, 5)
    check(
        name,
        a if name == "cholesky" else np.roll(a, 1, -2),
        Function(OF_MATRICES[name], target=target),
    )


@pytest.mark.parametrize("seed", range(8))
def test_elements_that_change_places_are_exact(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 12))
    order, scales = random.permutation(n), 2.0 ** random.integers(-9, 9, n)
    a = np.zeros((n, n))
    a[np.arange(n), order] = scales * random.choice([-1, 1], n)
    inverse, determinant = Function(lambda a: (np.linalg.inv(a), np.linalg.det(a))).interpret(a)
    np.testing.assert_array_equal(inverse @ a, np.eye(n))
    moved = round(float(np.linalg.det(np.eye(n)[order])))
    assert determinant == moved * np.prod(a.sum(1))


@pytest.mark.parametrize("kind", ["int64", "bool"])
def test_integers_are_numbers_of_64_bits(kind: str) -> None:
    a = np.array([[0, 1], [1, 1]], kind)
    found = Function(lambda a: np.linalg.inv(a)).interpret(a)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [[-1, 1], [1, 0]])


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_reflections_are_of_any_size(scale: float) -> None:
    a = np.random.default_rng(8).standard_normal((4, 4))
    for found, wanted in zip(
        Function(OF_MATRICES["qr"]).interpret(a * scale), np.linalg.qr(a * scale), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14 * np.abs(wanted).max())


def test_what_has_no_inverse_is_not_finite() -> None:
    a = np.array([[1.0, 2.0], [2.0, 4.0]])
    inverse = Function(lambda a: np.linalg.inv(a)).interpret(a)
    assert not np.isfinite(inverse).any()
    sign, size = Function(lambda a: np.linalg.slogdet(a)).interpret(a)
    assert (sign, size) == (0, -np.inf)
    assert Function(lambda a: np.linalg.det(a)).interpret(a) == 0
    root = Function(lambda a: np.linalg.cholesky(a)).interpret(-a)
    assert np.isnan(root[0, 0])


SLOPES: dict[str, Callable[[Any], Any]] = {
    "solve": lambda a: np.linalg.solve(a, a[::-1, :, :2]) + np.linalg.solve(a[0], a[..., :1]),
    "what is solved": lambda a: np.linalg.solve(np.eye(4) * 3 + np.tri(4), a),
    "inv": lambda a: np.linalg.inv(a),
    "det": lambda a: np.linalg.det(a),
    "slogdet": lambda a: np.linalg.slogdet(a)[1],
    "cholesky": lambda a: np.linalg.cholesky(a @ np.swapaxes(a, -1, -2) + 4 * np.eye(4)),
    "qr": lambda a: np.linalg.qr(a),
}


@pytest.mark.parametrize("name", SLOPES)
def test_gradients_are_slopes(name: str) -> None:
    Backward(SLOPES[name], np.random.default_rng(6).standard_normal((2, 4, 4))).check()


@pytest.mark.parametrize("name", ["solve", "det"])
def test_kernels_of_gradients(name: str) -> None:
    a = np.random.default_rng(7).standard_normal((3, 3))
    right = np.ones((3, 1))

    def of(a: Any) -> Any:
        return np.linalg.det(a) if name == "det" else np.linalg.solve(a, right)

    y, pull = Function(of, target="cpu").vjp(a)
    inverse = np.linalg.inv(a)
    wanted = inverse.T * y if name == "det" else -inverse.T @ np.ones((3, 1)) @ y.T
    np.testing.assert_allclose(pull(np.ones_like(y)), wanted, rtol=1e-11)


OF_TORCH: dict[str, Callable[[Any], Any]] = {
    "solve": lambda a: torch.linalg.solve(a, a[:, :, :2]),
    "from the right": lambda a: torch.linalg.solve(a, a[:, :2], left=False),
    "vectors": lambda a: torch.linalg.solve(a, a[:, 0]),
    "inverse": lambda a: torch.linalg.inv(a) + torch.inverse(a) + a.inverse(),
    "determinants": lambda a: (a.det(), *torch.linalg.slogdet(a)),
    "cholesky": lambda a: torch.linalg.cholesky(a),
    "qr": lambda a: tuple(torch.linalg.qr(a)),
    "power": lambda a: torch.linalg.matrix_power(a, -2),
}


@pytest.mark.parametrize("name", OF_TORCH)
def test_as_in_torch(name: str) -> None:
    a = torch.tensor(matrices(3, 3, 3))
    wanted, found = OF_TORCH[name](a), tile.function(OF_TORCH[name])(a)
    pairs = zip(wanted, found, strict=True) if isinstance(wanted, tuple) else [(wanted, found)]
    for exact, got in pairs:
        torch.testing.assert_close(got, exact, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("function", "shape", "dtype", "kind", "text"),
    [
        (lambda a: np.linalg.inv(a), (2, 3), "float64", ArrayShapeError,
         "np.linalg.inv is of square matrices, not of 2 x 3"),
        (lambda a: np.linalg.det(a), (3,), "float64", ArrayShapeError,
         "np.linalg.det is of matrices, not of 1 dimensions"),
        (lambda a: np.linalg.solve(a, np.ones((2, 2))), (3, 3), "float64", ArrayShapeError,
         "np.linalg.solve: 2 rows on the right of a matrix of 3"),
        (lambda a: np.linalg.qr(a, mode="raw"), (3, 3), "float64", UnknownArrayFunction,
         "np.linalg.qr: no mode 'raw' here"),
        (lambda a: np.linalg.cholesky(a), (3, 3), "float16", FrontendTypeError,
         "np.linalg.cholesky of float16, which NumPy does not factorise"),
    ],
)  # fmt: skip
def test_refused(function: Any, shape: Any, dtype: str, kind: Any, text: str) -> None:
    with pytest.raises(kind) as caught:
        Function(function)(np.ones(shape, dtype))
    assert caught.value.message == text
