"""Tensors in functions of arrays: methods, and functions that torch decomposes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tile_api as tile
from tile_core.errors import ImmutableArray, TileError, UnknownArrayFunction

F = torch.nn.functional
Case = Callable[..., Any]

X = torch.tensor(
    [[0.55, -1.25, 3.125, -0.3, 2.0, -0.75], [1.5, 0.25, -2.0, 0.7, 0.125, 1.05],
     [-3.5, 0.76, 0.375, 0.2, -1.1, 2.5], [2.25, -0.6, 1.75, -0.9, 4.0, -1.5]],
    dtype=torch.float64,
)  # fmt: skip
"""Numbers that no two are equal of, and none is a corner of a function."""
METHODS: dict[str, Case] = {
    "elements": lambda x: x.abs().clamp(min=0.5).sqrt().neg().exp(),
    "alpha": lambda x: x.add(x * x, alpha=2).sub(1).mul(3).div(4),
    "corrected": lambda x: x.std(dim=0, keepdim=True) + x.var(1, correction=2).sum(),
    "as NumPy's": lambda x: x.std(axis=0) + x.max(axis=0) if not isinstance(x, torch.Tensor)
    else x.std(0, correction=0) + x.amax(0),
    "largest": lambda x: x.max(dim=1).values + x.min(dim=1, keepdim=True)[0].sum(),
    "all": lambda x: x.max() + x.min() + x.mean() + x.sum(0).prod(),
    "kept": lambda x: x.sum(1, True) + x.mean(0, keepdim=True),
    "exchanged": lambda x: x.unsqueeze(0).transpose(0, 2).permute(1, 2, 0).squeeze(0),
    "sizes": lambda x: x * x.size(0) + x.size()[1] + x.numel() + x.dim(),
    "size as NumPy has it": lambda x: x * x.shape[0] * (x.numel() - 1),
    "views": lambda x: x.view(2, -1).flatten(0).reshape(3, 8).contiguous().view(-1)[1:],
    "flat from": lambda x: x[None].flatten(1) * 2,
    "expanded": lambda x: x.unsqueeze(0).expand(3, -1, -1).sum(0) + x.expand_as(x),
    "tiled": lambda x: x.repeat_interleave(2, dim=1).tile(2, 1),
    "masked": lambda x: x.masked_fill(x > 1, -1.0).where(x > -1, 0.5),
    "rows": lambda x: x.softmax(-1) + x.log_softmax(0) + x.logsumexp(1, keepdim=True),
    "norm": lambda x: x.norm(dim=0) + x.norm(3, 1).sum(),
    "norm of nothing": lambda x: (x - x.amax(0)).norm(dim=0) + x[:1].sub(x[:1]).norm(dim=0),
    "spread of nothing": lambda x: (x[:2] - x[:2]).std(dim=0) + x.std(dim=0),
    "chosen": lambda x: x.where(x > 0, 0.5) + (x > 1).where(x < 2, x > 0),
    "in order": lambda x: x.sort(dim=1, descending=True).values * x.argsort(1),
    "best": lambda x: x.topk(2, 1)[0] - x.topk(2, 1, largest=False).values,
    "middle": lambda x: x.median(1).values + x.median() + x.kthvalue(2, dim=1).values,
    "running": lambda x: x.cumsum(0) + x.cummax(1).values + x.cummin(0)[0] + x.logcumsumexp(1),
    "windows": lambda x: x.unfold(1, 3, 2).sum(-1),
    "gathered": lambda x: x.gather(1, x.argsort(1)[:, :2]).index_select(0, torch.tensor([2, 0])),
    "types": lambda x: x.float().double() * x.to(torch.float64) * x.type_as(x),
    "products": lambda x: x.matmul(x.t()).mm(x) + x.T.mT,
    "parts": lambda x: x.chunk(3, 1)[1] + x.split(2, 1)[0] + x.narrow(1, 0, 2) + x.select(1, 0)[0],
}  # fmt: skip
DECOMPOSED: dict[str, Case] = {
    "mish": F.mish, "hardswish": F.hardswish, "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "elu": F.elu, "celu": F.celu, "selu": F.selu, "log of sigmoid": F.logsigmoid, "glu": F.glu,
    "softmin": lambda x: F.softmin(x, 1), "threshold": lambda x: F.threshold(x, 0.1, 7.0),
    "normalize": lambda x: F.normalize(x, dim=0), "pad": lambda x: F.pad(x, (1, 2, 0, 1)),
    "reflect": lambda x: F.pad(x[None], (2, 1), mode="reflect"),
    "cosine": lambda x: F.cosine_similarity(x, x.flip(0), 1),
    "losses": lambda x: F.mse_loss(x, x.flip(0)) + F.l1_loss(x, x * 2, reduction="sum")
    + F.smooth_l1_loss(x, x.flip(1)) + F.huber_loss(x, x * 3),
    "entropy": lambda x: F.binary_cross_entropy_with_logits(x, torch.sigmoid(x * 2)),
    "pairs": lambda x: torch.cdist(x, x[:2]), "outer": lambda x: torch.outer(x[0], x[1]),
    "lerp": lambda x: torch.lerp(x, x.flip(0), 0.25), "addcmul": lambda x: torch.addcmul(x, x, x),
    "numbers": lambda x: torch.nan_to_num(1 / x), "diff": lambda x: torch.diff(x, dim=0),
    "averages": lambda x: F.avg_pool1d(x, 3, 2, 1) + F.avg_pool1d(x, 3, 2, 1, False, False),
    "pools": lambda x: F.avg_pool2d(x[None], 2) + F.max_pool2d(x[None], 2),
    "norms": lambda x: F.group_norm(x[None], 2) + F.instance_norm(x[None]),
    "einsum of three": lambda x: torch.einsum("ij,kj,kl->il", x, x, x),
}  # fmt: skip


@pytest.mark.parametrize("name", [*METHODS, *DECOMPOSED])
def test_values_and_gradients_are_those_of_torch(name: str) -> None:
    case = METHODS.get(name) or DECOMPOSED[name]
    x, y = X.clone().requires_grad_(), X.clone().requires_grad_()
    wanted, found = case(x), tile.function(lambda x: case(x), target="interpret")(y)
    torch.testing.assert_close(found, wanted)
    weights = torch.arange(1.0, 1 + wanted.numel(), dtype=torch.float64).reshape(wanted.shape)
    (right,), (got,) = (
        torch.autograd.grad((made * weights).sum(), of) for made, of in ((wanted, x), (found, y))
    )
    torch.testing.assert_close(got, right)


@pytest.mark.parametrize("name", ["sort", "median", "cummax"])
def test_positions_among_what_is_no_number(name: str) -> None:
    x = torch.tensor([[2.0, torch.nan, 1.0, 2.0, torch.inf], [1.0, 1.0, 0.0, -torch.inf, 3.0]])
    order = {"descending": True, "stable": True} if name == "sort" else {}
    wanted = getattr(x, name)(dim=1, **order)
    found = tile.function(lambda x: getattr(x, name)(dim=1, **order), target="interpret")(x)
    torch.testing.assert_close(found.values, wanted.values, equal_nan=True)
    if name != "median":  # its position is that of any of equal elements
        assert torch.equal(found.indices, wanted.indices)


UNCLEAR = {
    "std": (lambda x: x.std(), "NumPy divides by how many there are, torch by one less",
            "x.std(ddof=1), x.std(correction=1)"),
    "var": (lambda x: x.var(0), "NumPy divides by how many there are, torch by one less",
            "x.var(ddof=1), x.var(correction=1)"),
    "max": (lambda x: x.max(1), "NumPy gives the largest, torch its position, too",
            "x.max(axis=k), x.max(dim=k)"),
    "min": (lambda x: x.min(-1), "NumPy gives the least, torch its position, too",
            "x.min(axis=k), x.min(dim=k)"),
    "repeat": (lambda x: x.repeat(2), "NumPy repeats each element, torch the array",
               "np.repeat(x, n, axis), torch.tile(x, sizes)"),
    "transpose": (lambda x: x.transpose(0, 1), "NumPy is given the order of dimensions, torch two "
                  "that change places", "x.T"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNCLEAR)
def test_what_numpy_and_torch_mean_something_else_by_is_refused(name: str) -> None:
    case, why, hint = UNCLEAR[name]
    function = tile.function(case, target="interpret")
    with pytest.raises(UnknownArrayFunction) as found:
        function(X)
    assert found.value.message == f"{name} of a tensor may mean two things: {why}"
    assert found.value.hint == f"write {hint}"
    numpys = X.numpy()
    if name != "transpose":
        np.testing.assert_allclose(function(numpys), case(numpys))


REFUSED: dict[str, tuple[Case, str]] = {
    "more than all": (lambda x: x.topk(7), "torch.topk: 7 of 6 elements"),
    "fewer than none": (lambda x: x.topk(-1), "torch.topk: -1 of 6 elements"),
    "element before": (lambda x: x.kthvalue(0), "torch.kthvalue: element 0 of 6, counted from 1"),
    "element behind": (lambda x: x.kthvalue(7), "torch.kthvalue: element 7 of 6, counted from 1"),
    "the middle of nothing": (lambda x: x[:0].median(0), "torch.median of no elements"),
    "divided by 0": (
        lambda x: F.avg_pool2d(x[None], 2, divisor_override=0),
        "torch.avg_pool2d: windows of [2, 2] with [0, 0] around, divided by 0",
    ),
    "far around": (
        lambda x: F.avg_pool1d(x, 3, padding=2),
        "torch.avg_pool1d: windows of [3] with [2] around, divided by None",
    ),
    "pools of integers": (lambda x: F.avg_pool1d(x.int(), 2), "torch.avg_pool1d of int32"),
    "norms of integers": (
        lambda x: torch.linalg.vector_norm(x.int()), "torch.linalg.vector_norm of int32"
    ),
    "exponentials of integers": (
        lambda x: x.int().logcumsumexp(0), "torch.logcumsumexp of int32"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_torch_refuses_is_refused(name: str) -> None:
    case, told = REFUSED[name]
    with pytest.raises((RuntimeError, IndexError)):
        case(X)
    with pytest.raises(TileError) as found:
        tile.function(case, target="interpret")(X)
    assert found.value.message == told


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "any", "all"])
def test_folds_along_no_dimension_are_refused(name: str) -> None:
    with pytest.raises(UnknownArrayFunction) as found:
        tile.function(lambda x: getattr(x, name)(()), target="interpret")(X)
    why = "NumPy folds no dimension of none given, torch folds all"
    assert found.value.message == f"{name} of a tensor may mean two things: {why}"
    assert found.value.hint == f"write x.{name}(), or x"


def test_exchanged_dimensions_that_both_mean_are_taken() -> None:
    turned = tile.function(lambda x: x.transpose(1, 0) * 2, target="interpret")
    torch.testing.assert_close(turned(X), X.T * 2)
    np.testing.assert_array_equal(turned(X.numpy()), X.numpy().T * 2)


def test_what_writes_is_refused() -> None:
    with pytest.raises(ImmutableArray) as found:
        tile.function(lambda x: x.relu_() + x)(X)
    assert found.value.message == "torch.relu_ writes into an array: arrays are values here"
    assert found.value.hint == "torch.relu makes a new one, if there is such"


def test_devices_are_no_matter_of_a_function() -> None:
    with pytest.raises(UnknownArrayFunction) as found:
        tile.function(lambda x: x + torch.arange(6, device=x.device))(X)
    assert found.value.message == "arrays have no 'device' here"
    assert found.value.hint == (
        "leave it out: what a function makes is computed where its kernels run"
    )
    found = tile.function(lambda x: x + torch.arange(6), target="interpret")(X)
    torch.testing.assert_close(found, X + torch.arange(6))


def test_arrays_of_numpy_have_no_methods_of_torch() -> None:
    with pytest.raises(UnknownArrayFunction, match="arrays have no 'unsqueeze' here"):
        tile.function(lambda x: x.unsqueeze(0))(X.numpy())


def test_numbers_at_random_are_refused() -> None:
    with pytest.raises(
        UnknownArrayFunction, match=r"torch\.dropout cannot be captured: it is decomposed into"
    ):
        tile.function(lambda x: F.dropout(x, 0.5))(X)


def test_sizes_that_are_symbols_are_asked_for() -> None:
    function = tile.function(lambda x: x * x.size(0) + x.size()[1] + x.size, target="interpret")
    for rows in (2, 3, 4, 5):
        x = X[:1].expand(rows, 6).contiguous()
        torch.testing.assert_close(function(x), x * rows + 6 + x.numel())
    assert "symbols: " in str(function.explain(x))


def test_other_sizes_have_kernels_of_their_own() -> None:
    """What torch decomposes for numbers is for these."""
    function = tile.function(lambda x: F.mish(x).sum(-1), target="interpret")
    for rows in (2, 3, 4, 5):
        x = X[:1].expand(rows, 6).contiguous()
        torch.testing.assert_close(function(x), F.mish(x).sum(-1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_what_keeps_norms_from_0_is_that_of_the_type(dtype: torch.dtype) -> None:
    x = torch.tensor([1e-4, -2e-4, 3e-4]).to(dtype)
    found = tile.function(lambda x: F.rms_norm(x, (3,)), target="interpret")(x)
    torch.testing.assert_close(found, F.rms_norm(x, (3,)))


ROOTS: dict[str, tuple[Case, Case]] = {
    "std": (lambda x: np.std(x, axis=1), lambda x: torch.std(x, 1, correction=0)),
    "torch.std": (lambda x: torch.std(x, 1),) * 2,
    "norm": (lambda x: np.linalg.norm(x, axis=1), lambda x: torch.linalg.vector_norm(x, dim=1)),
    "norm of order 3": (lambda x: torch.linalg.vector_norm(x, 3, dim=1),) * 2,
    "normalize": (lambda x: F.normalize(x, dim=1, eps=0.5),) * 2,
}  # fmt: skip


@pytest.mark.parametrize("name", ROOTS)
def test_roots_of_sums_that_are_0_have_gradients_of_0(name: str) -> None:
    case, torchs = ROOTS[name]
    x = torch.tensor([[0.0, 0, 0], [2, 2, 2], [1, 2, 4]], dtype=torch.float64)
    x, y = x.clone().requires_grad_(), x.clone().requires_grad_()
    (wanted,) = torch.autograd.grad(torchs(x).sum(), x)
    (found,) = torch.autograd.grad(tile.function(case, target="interpret")(y).sum(), y)
    torch.testing.assert_close(found, wanted)
