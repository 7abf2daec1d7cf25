"""Vectors times matrices: products of tiles with one row, one query in attention among them."""

from __future__ import annotations

import numpy as np
import pytest

from support.array_programs import attention
from tile_api.arrays.function import Function
from tile_api.arrays.planning.plan import Blocks

GPUS = ("cuda:sm_80@sim", "cuda:sm_90a@sim", "hip:gfx942@sim")
# Loops without copies to shared memory, and row values that registers cannot be named for.
pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")


def random(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    source = np.random.default_rng(0)
    return [source.standard_normal(shape).astype("float32") for shape in shapes]


def check(function: Function, arguments: list[np.ndarray], kernels: int, products: int) -> None:
    source = function.source(*arguments)
    assert source.count("@tile.jit") == kernels
    assert source.count("T.gemm") == products
    wanted = function.func(*(x.astype("float64") for x in arguments))
    found = function(*arguments)
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= 2e-6 * (1 + np.abs(wanted).max())


def layer(x, matrix, bias):
    return np.maximum(x @ matrix + bias, 0)


@pytest.mark.parametrize("shape", [(150,), (1, 150)])
def test_a_vector_times_a_matrix(shape: tuple[int, ...]) -> None:
    check(Function(layer, target="cpu"), random(shape, (150, 90), (90,)), 1, 1)


def test_a_matrix_times_a_vector_stays_a_fold() -> None:
    check(Function(times, target="cpu"), random((90, 150), (150,)), 1, 0)


def times(x, y):
    return x @ y


def test_beside_a_product_with_rows() -> None:
    def both(x, y, matrix):
        return x @ matrix + y @ matrix

    check(Function(both, target="cpu"), random((20, 96), (96,), (96, 50)), 2, 2)


ONE_QUERY = [
    ((1, 2, 1, 32), (1, 2, 300, 32), (1, 2, 300, 24)),
    ((1, 32), (300, 32), (300, 24)),
    ((32,), (300, 32), (300, 24)),
]


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("shapes", ONE_QUERY, ids=["heads", "row", "vector"])
def test_one_query(shapes: tuple[tuple[int, ...], ...], parts: int) -> None:
    function = Function(attention, target="cpu", blocks=Blocks(stream=32, parts=parts))
    check(function, random(*shapes), 1 + (parts > 1), 2)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("target", GPUS)
def test_one_query_on_gpus(target: str) -> None:
    function = Function(attention, target=target, blocks=Blocks(stream=32, parts=4))
    check(function, random(*ONE_QUERY[0]), 2, 2)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(("target", "queries"), [(GPUS[1], 1), (GPUS[2], 1), (GPUS[1], 3)])
def test_few_queries_take_whole_matrix_instructions(target: str, queries: int) -> None:
    shapes = (1, 2, queries, 32), *ONE_QUERY[0][1:]
    halves = [x.astype("float16") for x in random(*shapes)]
    function = Function(attention, target=target, blocks=Blocks(stream=32, parts=4, least_rows=16))
    text = function.kernels(*halves)[0].get_kernel_source()
    assert "mma_m16n8k16" in text or "mfma" in text
    wanted = attention(*(x.astype("float64") for x in halves))
    np.testing.assert_allclose(function(*halves), wanted, rtol=0, atol=2e-3)


def sums_beside(v, m):
    return v @ m, m.sum(axis=0)


def test_sums_along_columns_are_of_no_row() -> None:
    v, m = np.arange(30, dtype="float32"), np.ones((30, 20), "float32")
    function = Function(sums_beside, target="interpret")
    for got, wanted in zip(function(v, m), sums_beside(v, m), strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert [k.outputs for k in function.explain(v, m).kernels] == [("out0", "out1")]


def test_extrema_along_columns_are_of_no_row() -> None:
    def scaled(x, s):
        return (x / (x / s).max(axis=0)).T @ s

    x, s = np.random.default_rng(0).uniform(1, 2, (2, 3, 17))
    found = Function(scaled, target="interpret")(x, s[:, :1])
    np.testing.assert_allclose(found, scaled(x, s[:, :1]), rtol=1e-12)


def test_a_product_is_read_in_its_own_kernel_as_it_is_computed() -> None:
    def twice(x):
        product = np.einsum("ij,jk->k", x, x)
        return np.abs(product), x + 1, product

    x = np.random.default_rng(0).standard_normal((4, 4))
    for got, wanted in zip(Function(twice, target="interpret")(x), twice(x), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_factors_of_a_matrix_may_be_numbers() -> None:
    def scaled(x, matrix):
        return np.einsum("ij,jk->k", x, np.abs(matrix) * np.sign(matrix.sum(initial=2)))

    x, matrix = np.array([[-3.0, -6.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    _, pull = Function(scaled, target="interpret").vjp(x, matrix)
    dx, d_matrix = pull(np.ones(2))
    np.testing.assert_array_equal(dx, [[3, 7]])
    np.testing.assert_array_equal(d_matrix, [[-3, -3], [-6, -6]])
