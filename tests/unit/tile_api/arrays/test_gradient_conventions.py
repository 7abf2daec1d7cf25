"""Gradients where there is none, or where elements are no numbers: what torch gives, or a table."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tile_api as tile
from support.gradients import Backward, gradients

INF = np.inf


def by_torch(function, cotangent, *arrays):
    tensors = [torch.tensor(x, requires_grad=True) for x in arrays]
    return [x.numpy() for x in torch.autograd.grad(function(*tensors), tensors, cotangent)]


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


HOSTILE = {
    "ties": (lambda x: x.max(-1), lambda x: x.amax(-1), [[2.0, 1.0, 2.0], [0.0, 0.0, 0.0]]),
    "zeros": (
        lambda x: x.prod(-1), lambda x: x.prod(-1),
        [[2.0, 3.0, 4.0], [0.0, 3.0, 4.0], [0.0, 0.0, 4.0]],
    ),
    "root": (lambda x: np.sqrt(x).sum(-1), lambda x: x.sqrt().sum(-1), [[0.0, 4.0]]),
    "absolute": (lambda x: np.abs(x).sum(-1), lambda x: x.abs().sum(-1), [[0.0, -4.0, 2.0]]),
    "powers": (lambda x: (x**3).sum(-1), lambda x: (x**3).sum(-1), [[0.0, -2.0, 1.5]]),
    "masked rows": (
        lambda x: softmax(x), lambda x: torch.softmax(x, -1), [[1.0, -INF, 2.0], [-INF, 3.0, -INF]],
    ),
    "rows of nothing": (lambda x: softmax(x), lambda x: torch.softmax(x, -1), [[-INF, -INF]]),
    "logistic": (
        lambda x: x / (1 + np.exp(-x)), torch.nn.functional.silu,
        [[-INF, -2e3, -800.0, -40.0, 0.0, 40.0, 2e3]],
    ),
    "equal logarithms": (
        lambda x: np.logaddexp(x, x[:, ::-1]), lambda x: torch.logaddexp(x, x.flip(1)),
        [[2.0, 2.0, 3.0, 1.0, 2.0]],
    ),
    "no number": (lambda x: np.exp(x).sum(-1), lambda x: x.exp().sum(-1), [[np.nan, 1.0]]),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_as_in_torch(name: str) -> None:
    function, reference, rows = HOSTILE[name]
    x = np.array(rows)
    shape = function(np.abs(np.nan_to_num(x, neginf=0))).shape
    cotangent = np.random.default_rng(0).standard_normal(shape)
    (found,) = gradients(function, [cotangent], x)
    (wanted,) = by_torch(reference, torch.tensor(cotangent), x)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_what_is_not_chosen_has_no_gradient() -> None:
    """Torch gives NaN: 0 times the infinite slope of a root that nobody sees."""
    (found,) = gradients(
        lambda x: np.where(x > 0, np.sqrt(x), 0), [np.ones(2)], np.array([0.0, 4.0])
    )
    np.testing.assert_array_equal(found, [0, 0.25])


def test_an_infinite_extremum_has_no_gradient() -> None:
    x = np.array([[INF, 1.0, INF], [1.0, 3.0, 2.0]])
    (found,) = gradients(lambda x: x.max(-1), [np.ones(2)], x)
    np.testing.assert_array_equal(found, [[0, 0, 0], [0, 1, 0]])


def test_a_sum_of_nothing_has_no_gradient() -> None:
    """Torch gives NaN for the whole row."""
    x = np.array([[-INF, -INF], [1.0, 1.0]])
    (found,) = gradients(lambda x: np.logaddexp.reduce(x, axis=-1), [np.ones(2)], x)
    np.testing.assert_array_equal(found, [[0, 0], [0.5, 0.5]])


@tile.function
def product(x):
    return x.prod()


def test_products_have_second_derivatives_at_zeros() -> None:
    def slope(x, direction):
        return (product.grad(x) * direction).sum()

    x, direction = np.array([0.0, 0.0, 3.0]), np.array([1.0, 2.0, 5.0])
    found, first = gradients(slope, [np.ones(())], x, direction)
    np.testing.assert_array_equal(first, [0, 0, 0])
    np.testing.assert_array_equal(found, [6, 3, 0])


VIEWS = {
    "strided": lambda x: x[1::2, ::-3],
    "folded": lambda x: x.reshape(2, 2, 3, 2).transpose(3, 1, 0, 2).reshape(-1, 3),
    "unfolded": lambda x: x.reshape(-1)[3:19].reshape(4, 4),
    "repeated": lambda x: np.repeat(np.tile(x, (2, 3)), 2, axis=1),
    "rolled": lambda x: np.roll(x, (1, 2), (0, 1)),
    "diagonal": lambda x: np.diagonal(x, 1) + np.trace(x),
    "padded": lambda x: np.pad(x, 2, mode="reflect") + np.pad(x, 2, mode="wrap"),
    "windows": lambda x: x[np.arange(3)[:, None] + np.arange(2), :].sum(1),
    "stacked": lambda x: np.concatenate([x[:, :2], np.stack([x, 2 * x], 1)[:, 1]], 1),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_turned_round(name: str) -> None:
    """What a view is multiplied with comes back where the elements came from."""
    x = np.random.default_rng(0).integers(-9, 9, (4, 6)).astype("float64")
    Backward(VIEWS[name], x).check(1e-8)


def test_slopes_of_the_largest_product_stay_where_it_was() -> None:
    """What is compared with an extremum is added up as the extremum was."""

    def kept(x):
        s = x.T @ x
        return np.tril(np.where(s == s.max(axis=-1, keepdims=True), s, 0))

    x, cotangent = np.random.default_rng(0).standard_normal((2, 5, 5))
    x = x[:2]
    _, pull = tile.Function(kept, target="interpret").vjp(x)
    t = torch.tensor(x, requires_grad=True)
    s = t.T @ t
    result = torch.where(s == s.amax(-1, keepdim=True), s, 0).tril()
    (wanted,) = torch.autograd.grad(result, t, torch.tensor(cotangent))
    np.testing.assert_allclose(pull(cotangent), wanted.numpy(), rtol=1e-12)


def scaled(lib, x):
    return lib.exp(x) * lib.tanh(x) + lib.sqrt(lib.abs(x))


ROUNDED = {
    "elements": (lambda x: scaled(np, x).max(0), lambda x: scaled(torch, x).amax(0)),
    "sums": (lambda x: np.cumsum(x * x, -1).max(0), lambda x: torch.cumsum(x * x, -1).amax(0)),
    "least": (lambda x: (scaled(np, x)).min(0), lambda x: scaled(torch, x).amin(0)),
    "equal": (
        lambda x: np.where(scaled(np, x) == scaled(np, x).max(0), x, 0),
        lambda x: torch.where(scaled(torch, x) == scaled(torch, x).amax(0), x, 0),
    ),
    "no less": (
        lambda x: np.where(scaled(np, x) >= scaled(np, x).max(0), x, 0),
        lambda x: torch.where(scaled(torch, x) >= scaled(torch, x).amax(0), x, 0),
    ),
    "less": (
        lambda x: np.where(scaled(np, x) < scaled(np, x).max(0), x, 0),
        lambda x: torch.where(scaled(torch, x) < scaled(torch, x).amax(0), x, 0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROUNDED)
def test_the_largest_is_found_whose_elements_are_rounded_otherwise(name: str) -> None:
    function, reference = ROUNDED[name]
    x, cotangent = np.random.default_rng(0).standard_normal((2, 5, 40)).astype("float32")
    result, pull = tile.Function(function, target="cpu").vjp(x)
    cotangent = cotangent if result.ndim > 1 else cotangent[0]
    (wanted,) = by_torch(reference, torch.tensor(cotangent), x)
    np.testing.assert_allclose(pull(cotangent), wanted, rtol=1e-5, atol=1e-6)
