"""Medians, quantiles, covariances, convolutions and norms against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from support.captured_arrays import assert_agrees, filled, outputs
from tile_api.arrays.capturing import linear_algebra, numpy_names, statistics
from tile_api.arrays.function import Function
from tile_core.errors import ArrayShapeError, UnknownArrayFunction

DTYPES = ["int8", "int32", "float16", "float32", "float64"]
HOSTILE = np.float32(
    [[1, np.nan, 3, 2], [np.inf, np.inf, -np.inf, 5], [np.inf, np.inf, np.inf, np.inf],
     [-np.inf, 0, 0, np.inf]]
)  # fmt: skip
X = filled((3, 4, 5), "float32", 1)
M, N = filled((4, 6), "float32", 2), filled((2, 6), "float32", 3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (1, 0)])
def test_medians(axis, dtype):
    x = filled((3, 4, 5), dtype, 1)
    for keepdims in (False, True):
        assert_agrees(lambda x: np.median(x, axis=axis, keepdims=keepdims), x)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 65, 66])
def test_medians_of_what_is_a_number(size):
    x = filled((7, size), "float32", size)
    some = np.where(np.random.default_rng(1).random(x.shape) < 0.5, np.nan, x).astype("float32")
    for axis in (0, -1, None):
        assert_agrees(lambda x: np.nanmedian(x, axis=axis, keepdims=True), some)
        assert_agrees(lambda x: np.nanmedian(x, axis), x.astype("int32"))
    assert_agrees(lambda x: np.nanmedian(x, axis=1), HOSTILE)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 65, 66])
def test_medians_of_sizes(size):
    assert_agrees(lambda x: np.median(x, -1), filled((2, size), "float64", size))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint"])
@pytest.mark.parametrize("q", [0, 0.1, 0.25, 0.5, 0.77, 1, [0.2, 0.5], [[0.0, 1.0], [0.3, 0.6]]])
def test_quantiles(q, method):
    for x in (filled((3, 7), "float32", 4), filled((3, 8), "int32", 5), filled((3, 1), "float64")):
        assert_agrees(lambda x: np.quantile(x, q, axis=1, method=method), x)
    assert_agrees(lambda x: np.percentile(x, np.multiply(q, 100).tolist(), method=method), X)


def test_of_no_elements():
    for x in (np.zeros((2, 0, 3), "float32"), np.zeros((0, 2, 3), "int32")):
        for axis in (0, 1, 2):
            assert_agrees(lambda x: np.median(x, axis=axis), x)
    assert_agrees(lambda x: np.quantile(x, 0.3, axis=1), np.zeros((0, 2, 3), "float64"))


def test_of_hostile_numbers():
    assert_agrees(lambda x: np.median(x, axis=1), HOSTILE)
    assert_agrees(lambda x: np.median(x, axis=0), HOSTILE)
    assert_agrees(lambda x: np.quantile(x, 0.4, axis=1), HOSTILE[:1])
    assert_agrees(lambda x: np.quantile(x, 0.5, axis=1), HOSTILE[2:3])


COVARIANCES = {
    "rows": (lambda m: np.cov(m), M),
    "columns": (lambda m: np.cov(m, rowvar=False), M),
    "one": (lambda m: np.cov(m), M[0]),
    "two": (lambda m, n: np.cov(m, n), M, N),
    "biased": (lambda m: np.cov(m, bias=True), M),
    "ddof": (lambda m: np.cov(m, ddof=3), M),
    "float32": (lambda m: np.cov(m, dtype="float32"), M),
    "correlations": (lambda m: np.corrcoef(m), M + np.float32(0.25) * np.eye(4, 6, dtype="f4")),
    "correlations of columns": (lambda m: np.corrcoef(m, rowvar=False), filled((9, 2), "int8", 7)),
    "correlation of one": (lambda m: np.corrcoef(m), M[0]),
}


@pytest.mark.parametrize("name", COVARIANCES)
def test_covariances(name):
    function, *arrays = COVARIANCES[name]
    with np.errstate(all="ignore"):
        wanted = function(*arrays)
    (found,) = outputs(function, *arrays)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(found, wanted, rtol=1e-5 if found.dtype == "float32" else 1e-12)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("sizes", [(9, 3), (9, 4), (3, 9), (4, 9), (5, 5), (1, 1), (6, 1)], ids=str)
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_convolutions(dtype, sizes, mode):
    a, v = (filled((n,), dtype, n) for n in sizes)
    assert_agrees(lambda a, v: np.convolve(a, v, mode), a, v)
    assert_agrees(lambda a, v: np.correlate(a, v, mode), a, v)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("ord", [None, 0, 1, 2, 3, -1, np.inf, -np.inf])
def test_norms_of_vectors(ord, dtype):
    x = filled((2, 3, 5), dtype, 1, 1, 5)
    for keepdims in (False, True):
        assert_agrees(lambda x: np.linalg.norm(x, ord, axis=1, keepdims=keepdims), x)
    if ord is not None:
        assert_agrees(lambda x: np.linalg.vector_norm(x, ord=ord, axis=(0, 2)), x)


@pytest.mark.parametrize("ord", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_norms_of_matrices(ord):
    for axis in ((0, 1), (2, 0)):
        for keepdims in (False, True):
            assert_agrees(lambda x: np.linalg.norm(x, ord, axis=axis, keepdims=keepdims), X)
    assert_agrees(lambda x: np.linalg.norm(x[0], ord), X)
    if ord == np.inf:
        assert_agrees(lambda x: np.linalg.norm(x[0, :, :0], ord), X)
    if ord is not None:
        assert_agrees(lambda x: np.linalg.matrix_norm(x, ord=ord), X)


PRODUCTS = {
    "norm": lambda x: np.linalg.norm(x),
    "vector_norm": lambda x: np.linalg.vector_norm(x),
    "matrix_norm": lambda x: np.linalg.matrix_norm(x),
    "matmul": lambda x: np.linalg.matmul(x, np.linalg.matrix_transpose(x)),
    "outer": lambda x: np.linalg.outer(x[0, 0], x[1, 0]),
    "vecdot": lambda x: np.linalg.vecdot(x, x, axis=0),
    "tensordot": lambda x: np.linalg.tensordot(x, x, axes=([1, 2], [1, 2])),
    "matrix_transpose": lambda x: np.linalg.matrix_transpose(x),
    "diagonal": lambda x: np.linalg.diagonal(x, offset=1),
    "trace": lambda x: np.linalg.trace(x),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_names_of_linalg(name):
    if not hasattr(np.linalg, name):
        pytest.skip(f"this NumPy has no linalg.{name}")
    assert_agrees(PRODUCTS[name], X)


def test_every_function_is_met():
    others = {"cross", "matrix_power", "multi_dot"}  # of `decompositions`
    others |= {"solve", "inv", "det", "slogdet", "cholesky", "qr"}  # of `factorisations`
    others |= {"eigh", "eigvalsh", "svd", "svdvals", "pinv", "lstsq", "matrix_rank", "cond"}
    assert set(PRODUCTS) | others == set(linear_algebra.LINALG)
    mine = {n for n, f in numpy_names.FUNCTIONS.items() if f.__module__ == statistics.__name__}
    assert mine == {
        "median", "nanmedian", "quantile", "percentile", "cov", "corrcoef", "convolve", "correlate",
    }  # fmt: skip


def test_as_kernels():
    def summary(x, v):
        unit = x / np.linalg.norm(x, axis=-1, keepdims=True)
        smooth = np.convolve(x[0], v, "same")
        return np.median(unit, axis=-1), np.percentile(x, 90.0, axis=0), smooth, np.corrcoef(x)

    random = np.random.default_rng(0)
    x, v = random.random((5, 40), np.float32), random.random(3, np.float32)
    for target in ("cpu", "interpret"):
        for found, wanted in zip(
            Function(summary, target=target)(x, v), summary(x, v), strict=True
        ):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=2e-5)


WRONG = {
    "np.quantile has no method 'hazen' here\nhint: use one of linear, lower, higher, midpoint": (
        lambda x: np.quantile(x, 0.5, method="hazen")
    ),
    "quantiles are between 0 and 1, percentiles between 0 and 100": (
        lambda x: np.percentile(x, 101)
    ),
    "np.quantile of no elements": lambda x: np.quantile(x[:0], 0.5, axis=0),
    "np.convolve takes two sequences of one or more elements": lambda x: np.convolve(x, x[0]),
    "np.convolve has no mode 'circular'\nhint: use 'full', 'same' or 'valid'": (
        lambda x: np.convolve(x[0], x[1], "circular")
    ),
    "np.cov of 3 dimensions: there are two at most": lambda x: np.cov(x[None]),
    "np.linalg.norm: matrices have no norm 3\n"
    "hint: there are 'fro', 'nuc', 1, -1, 2, -2, np.inf and -np.inf": (
        lambda x: np.linalg.norm(x, 3)
    ),
    "np.linalg.norm: vectors have no norm 'fro'": lambda x: np.linalg.norm(x[0], "fro"),
    "np.linalg.norm is of vectors or matrices, not of 3 axes": (
        lambda x: np.linalg.norm(x[None], 1)
    ),
    "np.linalg.eigvals cannot be captured\n"
    "hint: np.linalg.eigvalsh(x), if the matrix is symmetric": lambda x: np.linalg.eigvals(x),
}


@pytest.mark.parametrize("message", WRONG, ids=lambda m: m[:24])
def test_what_makes_no_sense(message):
    with pytest.raises((ArrayShapeError, UnknownArrayFunction)) as caught:
        outputs(WRONG[message], M)
    text, _, hint = message.partition("\nhint: ")
    assert caught.value.message == text
    assert not hint or caught.value.hint == hint
