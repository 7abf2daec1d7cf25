"""Tensors of torch that ask for gradients, and gradients of gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tile_api as tile
from support.array_programs import softmax
from tile_api.arrays.function import Function

# Loops without copies to shared memory, and row values that registers cannot be named for.
pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")


@tile.function(target="cpu")
def scores(x, w):
    z = np.tanh(x @ w)
    return z, z.argmax(axis=-1)


def tensors(*shapes, dtype=torch.float32):
    torch.manual_seed(0)
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def test_results_know_their_gradients() -> None:
    x, w = tensors((5, 8), (8, 3))
    z, best = scores(x, w)
    assert z.requires_grad
    assert not best.requires_grad
    torch.testing.assert_close(best, torch.tanh(x @ w).argmax(-1))
    found = torch.autograd.grad((z * z).sum(), (x, w))
    wanted = torch.autograd.grad((torch.tanh(x @ w) ** 2).sum(), (x, w))
    torch.testing.assert_close(found, wanted)


def test_only_what_asks_has_a_gradient() -> None:
    x, w = tensors((5, 8), (8, 3))
    z, _ = scores(x.detach(), w)
    z.sum().backward()
    assert x.grad is None
    assert w.grad is not None
    with torch.no_grad():
        assert not scores(x, w)[0].requires_grad
    assert not scores(x.detach(), w.detach())[0].requires_grad


def test_torch_frees_and_guards_what_is_saved() -> None:
    x, w = tensors((5, 8), (8, 3))
    z, _ = scores(x, w)
    z.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        z.sum().backward()
    z, _ = scores(x, w)
    with torch.no_grad():
        w.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_first_and_second_derivatives() -> None:
    function = Function(softmax, target="cpu")
    (x,) = tensors((3, 5), dtype=torch.float64)
    assert torch.autograd.gradcheck(function, (x,))
    assert torch.autograd.gradgradcheck(function, (x,))


@tile.function(target="cpu")
def quartic(x):
    return (x**4).sum()


@tile.function(target="cpu")
def curvature(x, direction):
    return (quartic.grad(x) * direction).sum()


def test_gradients_in_functions_are_parts_of_them() -> None:
    x, direction = np.arange(6.0).reshape(2, 3), np.full((2, 3), 2.0)
    np.testing.assert_allclose(curvature(x, direction), 8 * (x**3).sum())
    np.testing.assert_allclose(curvature.grad(x, direction, wrt="x"), 24 * x * x)
    assert curvature.source(x, direction).count("@tile.jit") == 1


def test_half_precision_keeps_its_type() -> None:
    (x,) = tensors((4, 6), dtype=torch.bfloat16)
    Function(softmax, target="cpu")(x)[:, 0].sum().backward()
    assert x.grad.dtype == torch.bfloat16
    exact = x.detach().double().requires_grad_()
    torch.softmax(exact, -1)[:, 0].sum().backward()
    torch.testing.assert_close(x.grad.double(), exact.grad, rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize("target", ["cpu", "interpret"])
@pytest.mark.parametrize("shape", [(3, 4), (0, 4), ()])
def test_gradients_that_nothing_is_read_for_are_tensors(target, shape) -> None:
    """Kernels that take nothing make NumPy's arrays, also where torch asks for tensors."""
    unread = Function(lambda a, b: np.zeros_like(a) + b.sum(), target=target)
    a, b = tensors(shape, (3,), dtype=torch.float64)
    found = torch.autograd.grad(unread(a, b).sum(), (a, b))
    torch.testing.assert_close(found[0], torch.zeros_like(a))
    constant = Function(lambda a: a * 0 + 1, target=target)
    (found,) = torch.autograd.grad(constant(a).sum(), a)
    torch.testing.assert_close(found, torch.zeros_like(a))
    _, pull = constant.vjp(a.detach())
    torch.testing.assert_close(pull(torch.ones_like(a)), torch.zeros_like(a))
    _, pull = constant.vjp(a.detach().numpy())
    assert isinstance(pull(np.ones(shape)), np.ndarray)
