"""Gradients of functions of arrays: beside torch in 64 bits, and how many kernels they take."""

from __future__ import annotations

import numpy as np
import pytest

from support.captured_arrays import outputs
from support.gradient_programs import CASES, Differentiated
from support.gradients import equations_of, gradients
from tile_api.arrays.function import Function, derive
from tile_api.arrays.gradients.residuals import passes
from tile_api.arrays.planning.plan import Blocks

# Loops without copies to shared memory, and row values that registers cannot be named for.
pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")
GPUS = ("cuda:sm_80@sim", "cuda:sm_90a@sim", "hip:gfx942@sim")
CPU = ("layer_norm", "linear_gelu", "causal", "grouped", "cross_entropy", "embedding", "heads")
EVERYWHERE = ("softmax", "layer_norm", "causal")


def named(names) -> list[Differentiated]:
    return [case for case in CASES if case.name in names]


def check(case: Differentiated, function: Function, tolerance: float = 3e-6):
    arrays = case.arguments()
    result, pull = function.vjp(*arrays)
    cotangent = np.random.default_rng(1).standard_normal(result.shape).astype("float32")
    found = pull(cotangent)
    found = found if isinstance(found, tuple) else (found,)
    for got, wanted in zip(found, case.expected(arrays, cotangent), strict=True):
        assert got.shape == wanted.shape
        assert np.abs(got - wanted).max() <= tolerance * (1 + np.abs(wanted).max())
    return pull


@pytest.mark.in_turn(7)
@pytest.mark.parametrize("case", named(CPU), ids=lambda case: case.name)
def test_on_the_cpu(case: Differentiated) -> None:
    check(case, Function(case.function, target="cpu"))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("resident", [16_384, 0], ids=["resident", "streamed"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernels(case: Differentiated, resident: int) -> None:
    equations = equations_of(case.function, *case.arguments())
    made = passes(equations, [p.name for p in equations.parameters if p.dtype.is_float])
    blocks = Blocks(resident=resident)
    found = [len(derive(x, blocks).kernels) for x in (made.forward, made.backward)]
    assert found == [case.forward, case.backward]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_equations_mean(case: Differentiated) -> None:
    arrays = [x.astype("float64") if x.dtype.kind == "f" else x for x in case.arguments()]
    (result,) = outputs(case.function, *arrays)
    cotangent = np.random.default_rng(1).standard_normal(result.shape)
    found = gradients(case.function, [cotangent], *arrays)
    for got, wanted in zip(found, case.expected(arrays, cotangent), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12 * (1 + np.abs(wanted).max()))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("case", "target"), [*zip(named(EVERYWHERE), GPUS, strict=True)], ids=EVERYWHERE
)
def test_on_gpus(case: Differentiated, target: str) -> None:
    check(case, Function(case.function, target=target, blocks=Blocks(resident=0)))


def test_products_of_a_matrix_and_its_diagonal() -> None:
    """In the loop over rows the diagonal is a vector, which no product of tiles takes."""

    def centred(a):
        x = np.einsum("ij,jj->i", a, a)
        return x - x.mean(axis=0, keepdims=True)

    a = np.array([[-3.0, -6.0], [4.0, 3.0]], "float32")
    _, pull = Function(centred, target="cpu").vjp(a)
    np.testing.assert_allclose(pull(np.array([1, 2], "float32")), [[5, -1.5], [-1.5, 6]])


def test_quotients_of_merged_indices() -> None:
    def shape(x):
        y = np.outer(x, x)
        return np.einsum("ii,ij->j", y, y)

    x = np.random.default_rng(0).standard_normal((2, 2, 2))
    result, pull = Function(shape, target="interpret").vjp(x)
    along, step = np.random.default_rng(1).standard_normal(x.shape), 1e-6
    change = (shape(x + step * along) - shape(x - step * along)).sum() / (2 * step)
    assert (pull(np.ones_like(result)) * along).sum() == pytest.approx(change, rel=1e-6)


def test_running_products_of_sorted_running_sums() -> None:
    """The places at which sums are read are computed of other sums."""

    def function(x):
        y = np.cumsum(x, axis=-1)
        order = np.argsort(y, axis=-1, kind="stable")
        return np.cumprod(np.take_along_axis(y, order, axis=-1), axis=1)

    x = np.random.default_rng(0).standard_normal((4, 8))
    result, pull = Function(function, target="interpret").vjp(x)
    np.testing.assert_allclose(result, function(x), rtol=1e-10)
    along, step = np.random.default_rng(1).standard_normal(x.shape), 1e-6
    change = (function(x + step * along) - function(x - step * along)).sum() / (2 * step)
    assert (pull(np.ones_like(result)) * along).sum() == pytest.approx(change, rel=1e-6)


def test_a_product_that_is_saved_is_read_by_the_one_of_which_it_is_a_factor() -> None:
    """Kernels of their own, as their rows are all that both have: one of them comes first."""

    def low_rank(x, matrix, down, up):
        return x @ matrix + (x @ down) @ up

    shapes = (37, 21), (21, 9), (21, 6), (6, 9)
    arrays = [np.random.default_rng(0).standard_normal(s).astype("float32") for s in shapes]
    result, pull = Function(low_rank, target="cpu").vjp(*arrays)
    np.testing.assert_allclose(result, low_rank(*arrays), rtol=1e-4, atol=1e-4)
    x, _, down, up = arrays
    weights = np.ones_like(result)
    wanted = x.T @ weights @ up.T, (x @ down).T @ weights
    for got, right in zip(pull(weights)[2:], wanted, strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("target", ["interpret", "cpu"])
def test_multiples_that_tiles_hold_are_not_taken_apart(target: str) -> None:
    """``a - 2 b`` of a tile of ``-2 b``: it is what is added, `b` is nowhere."""

    def centred(x):
        moments = np.cov(x, rowvar=False, bias=True)
        gates = moments * (1 + np.tanh(moments))
        return moments - np.sum(gates, axis=(0, 1), keepdims=True)

    x, weights = (np.random.default_rng(k).standard_normal((2, n)) for k, n in ((0, 16), (1, 16)))
    result, pull = Function(centred, target=target).vjp(x)
    np.testing.assert_allclose(result, centred(x), rtol=1e-12, atol=1e-12)
    given = np.random.default_rng(2).standard_normal(result.shape)
    slope = pull(given)
    step = 1e-6 * weights
    wanted = np.sum((centred(x + step) - centred(x - step)) / 2 * given)
    np.testing.assert_allclose(np.sum(slope * step), wanted, rtol=1e-6)


def test_sums_of_running_products_that_two_loops_read() -> None:
    """One of the loops goes through what the other one keeps: sums are a kernel before both."""

    def scaled(a):
        return np.cumprod(a / np.max(np.abs(a), axis=0, keepdims=True), axis=-1)

    a = np.array([[-4.0], [1.0]], "float32")
    _, pull = Function(scaled, target="cpu").vjp(a)
    np.testing.assert_allclose(pull(np.ones((2, 1), "float32")), [[0.0625], [0.25]])


def test_a_result_with_further_dimensions_is_read_at_one_of_their_elements() -> None:
    def stacked(a):
        product = a.T @ a
        return np.stack([product, product], axis=-1), product.max(axis=0) - product

    a = np.array([[2.0, 0.0], [1.0, 3.0]])
    _, pull = Function(stacked, target="interpret").vjp(a)
    found = pull(np.ones((2, 2, 2)), np.zeros((2, 2)))  # of (2 + 0)^2 + (1 + 3)^2, twice
    np.testing.assert_allclose(found, [[8, 8], [16, 16]])
    found = pull(np.zeros((2, 2, 2)), np.array([[0.0, 0.0], [1.0, 0.0]]))
    np.testing.assert_allclose(found, [[4, -2], [-1, -1]])  # of 2 2 + 1 1 - (0 2 + 3 1)


LARGEST = {
    "of quotients": lambda x: np.max(x / 49.0, axis=-1),
    "of shares of a row": lambda x: np.max(x / np.abs(x).sum(axis=-1, keepdims=True), axis=0),
    "in order": lambda x: np.sort(x / np.abs(x).sum(axis=-1, keepdims=True), axis=-1)[:, 1],
    "of products": lambda x: np.max(x.T @ x / 7, axis=0),
}


@pytest.mark.parametrize("name", LARGEST)
def test_a_backward_pass_finds_the_largest_elements_again(name: str) -> None:
    """They are rounded as they were when the largest one was found, or found once more."""
    function = LARGEST[name]
    x, d = np.random.default_rng(0).standard_normal((2, 9, 13))
    result, pull = Function(function, target="interpret").vjp(x)
    found = (pull(np.ones_like(result)) * d).sum()
    wanted = (function(x + 1e-6 * d) - function(x - 1e-6 * d)).sum() / 2e-6
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
