"""torch's functions on captured arrays mean what they mean on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tile_api as tile
from tile_core.errors import TileError

F = torch.nn.functional
Case = Callable[..., Any]


def tensors(dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    return torch.randn(4, 6).to(dtype), torch.randn(4, 6).to(dtype)


def agree(function: Case, *inputs: torch.Tensor) -> None:
    """Compare values, shapes and types of what equations mean with what torch computes."""
    if len(inputs) == 1:
        captured = tile.function(lambda x: function(x))
    else:
        captured = tile.function(lambda x, y: function(x, y))
    wanted = function(*inputs)
    found = captured.interpret(*(x.numpy() for x in inputs))
    several = isinstance(wanted, (tuple, list))
    assert several == isinstance(found, (tuple, list))
    for right, got in zip(*((wanted, found) if several else ([wanted], [found])), strict=True):
        assert str(right.dtype) == f"torch.{got.dtype}"
        assert tuple(right.shape) == got.shape
        np.testing.assert_allclose(got, right.numpy(), rtol=2e-5, atol=2e-5)


ONE: dict[str, Case] = {
    "exp": torch.exp, "sigmoid": torch.sigmoid, "rsqrt": lambda x: torch.rsqrt(x.abs() + 1)
    if isinstance(x, torch.Tensor) else torch.rsqrt(torch.abs(x) + 1),
    "relu": F.relu, "silu": F.silu, "gelu": F.gelu, "softplus": F.softplus,
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softplus of large": lambda x: F.softplus(torch.mul(x, 30), beta=2, threshold=15),
    "clamp": lambda x: torch.clamp(x, -0.5, 0.5), "clamp below": lambda x: torch.clamp(x, min=0.1),
    "alpha": lambda x: torch.add(x, x, alpha=3), "rsub": lambda x: torch.rsub(x, 1),
    "floor": lambda x: torch.div(x, 0.3, rounding_mode="floor"),
    "trunc": lambda x: torch.div(x, 0.3, rounding_mode="trunc"),
    "sum": torch.sum, "sum of rows": lambda x: torch.sum(x, 1),
    "sum kept": lambda x: torch.sum(x, (0, 1), keepdim=True),
    "sum in 64": lambda x: torch.sum(x, 0, dtype=torch.float64),
    "mean": lambda x: torch.mean(x, -1, keepdim=True), "prod": lambda x: torch.prod(x, 1),
    "amax": lambda x: torch.amax(x, 0), "amin of all": lambda x: torch.amin(x),
    "max": lambda x: torch.max(x), "max with positions": lambda x: tuple(torch.max(x, 1)),
    "min kept": lambda x: tuple(torch.min(x, 0, keepdim=True)),
    "argmax": lambda x: torch.argmax(x, 1), "argmin of all": torch.argmin,
    "cross": lambda x: torch.cross(x[:3], x[1:4], dim=0),
    "cross of rows": lambda x: torch.linalg.cross(x[:, :3], x[:1, 3:]),
    "any": lambda x: torch.any(torch.gt(x, 1), 1), "all": lambda x: torch.all(torch.gt(x, -9)),
    "var": torch.var, "var of rows": lambda x: torch.var(x, 1),
    "biased": lambda x: torch.var(x, 1, correction=0), "std": lambda x: torch.std(x, 1),
    "var and mean": lambda x: tuple(torch.var_mean(x, 1, correction=0)),
    "cumsum": lambda x: torch.cumsum(x, 1), "cumprod": lambda x: torch.cumprod(x, 0),
    "logsumexp": lambda x: torch.logsumexp(x, 1), "softmax": lambda x: torch.softmax(x, 0),
    "softmax in 64": lambda x: torch.softmax(x, 1, dtype=torch.float64),
    "log softmax": lambda x: F.log_softmax(x, 1), "layer norm": lambda x: F.layer_norm(x, (6,)),
    "rms norm": lambda x: F.rms_norm(x, (6,)),
    "reshape": lambda x: torch.reshape(x, (2, -1)), "permute": lambda x: torch.permute(x, (1, 0)),
    "transpose": lambda x: torch.transpose(x, 0, 1), "t": torch.t,
    "unsqueeze": lambda x: torch.unsqueeze(x, 1), "flatten": lambda x: torch.flatten(x),
    "squeeze": lambda x: torch.squeeze(torch.unsqueeze(x, 0)),
    "squeeze nothing": lambda x: torch.squeeze(x, 0),
    "select": lambda x: torch.select(x, 0, -1), "narrow": lambda x: torch.narrow(x, 1, 2, 3),
    "split": lambda x: tuple(torch.split(x, 4, 1)),
    "split to sizes": lambda x: tuple(torch.split(x, [1, 5], 1)),
    "chunk": lambda x: tuple(torch.chunk(x, 4, 1)), "unbind": lambda x: tuple(torch.unbind(x)),
    "cat": lambda x: torch.cat([x, x], 1), "stack": lambda x: torch.stack([x, x], 1),
    "flip": lambda x: torch.flip(x, (0,)), "roll": lambda x: torch.roll(x, 2, 1),
    "tril": torch.tril, "triu": lambda x: torch.triu(x, 1), "diagonal": torch.diagonal,
    "slice_scatter": lambda x: torch.slice_scatter(x, torch.zeros_like(torch.narrow(x, 1, 0, 2)),
                                                   1, 1, 5, 2),
    "select_scatter": lambda x: torch.select_scatter(x, torch.select(x, 0, 0), 0, -1),
    "pad": lambda x: torch.constant_pad_nd(x, (1, -2, 0, 3), 0.5),
    "full_like": lambda x: torch.full_like(x, 2),
    "ones": lambda x: torch.ones_like(x, dtype=torch.int32),
    "masked": lambda x: torch.masked_fill(x, torch.gt(x, 0), -1.0),
    "where": lambda x: torch.where(torch.gt(x, 0), x, 0),
}  # fmt: skip
TWO: dict[str, Case] = {
    "matmul": lambda x, y: torch.matmul(x, torch.t(y)), "linear": F.linear,
    "einsum": lambda x, y: torch.einsum("ij,kj->ik", x, y),
    "addmm": lambda x, y: torch.addmm(torch.zeros_like(torch.matmul(x, torch.t(y))), x, torch.t(y),
                                      beta=0.5, alpha=2),
    "maximum": torch.maximum, "max of two": torch.max, "atan2": torch.atan2, "pow": lambda x, y:
    torch.pow(torch.abs(x), y), "copysign": torch.copysign, "eq": torch.eq,
}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_of_one_array(name: str) -> None:
    agree(ONE[name], tensors()[0])


@pytest.mark.parametrize("name", TWO)
def test_of_two_arrays(name: str) -> None:
    agree(TWO[name], *tensors())


_TYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.float32,
    torch.float64,
]  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("one", _TYPES, ids=str)
def test_types_of_results_are_those_of_torch(one: torch.dtype) -> None:
    x = torch.arange(1, 5).to(one)
    for other in _TYPES:
        for y in (torch.arange(1, 5).to(other), torch.tensor(2).to(other)):
            agree(torch.mul, x, y)
            agree(torch.true_divide, x, y)
            agree(lambda x, y: torch.where(torch.eq(x, x), x, y), x, y)
    for number in (True, 2, 2.5):
        agree(lambda x, number=number: torch.mul(x, number), x)
        agree(lambda x, number=number: torch.ge(x, number), x)
    if one is not torch.bool:
        agree(lambda x: torch.sum(x, 0), x)


def test_convolutions_by_channel() -> None:
    torch.manual_seed(0)
    x, w = torch.randn(2, 3, 9), torch.randn(3, 1, 4)
    agree(lambda x, y: F.conv1d(x, y, stride=2, padding=3, dilation=2, groups=3), x, w)
    x, w = torch.randn(2, 3, 5, 6), torch.randn(3, 1, 3, 2)
    agree(lambda x, y: F.conv2d(x, y, stride=(1, 2), padding=(1, 0), groups=3), x, w)


def test_attention() -> None:
    def attended(x: Any, y: Any) -> Any:
        return F.scaled_dot_product_attention(x, y, y, is_causal=True)

    torch.manual_seed(0)
    agree(attended, torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4))


@pytest.mark.parametrize("shape", [(5, 7), (2, 1, 5, 7)])
def test_a_mask_of_all_heads_leaves_attention_one_kernel(shape: tuple[int, ...]) -> None:
    def attended(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, mask)

    q, k, v = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 7, 4), torch.randn(2, 3, 7, 6)
    made = tile.function(attended, target="cpu").explain(q, k, v, torch.randn(shape))
    assert len(made.kernels) == 1


def test_dimensions_that_stay_in_a_reshape_are_the_same() -> None:
    def attended(x: Any, y: Any) -> Any:
        weights = torch.softmax(torch.reshape(x, (2, 3, 5, 5)), -1)
        return torch.matmul(torch.reshape(weights, (6, 5, 5)), y)

    made = tile.function(attended, target="cpu").explain(torch.randn(6, 5, 5), torch.randn(6, 5, 4))
    assert len(made.kernels) == 1


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda x: torch.matrix_exp(torch.true_divide(x, 2)),
         "torch.matrix_exp cannot be captured: it is decomposed into linalg_matrix_exp, which "
         "cannot, and others"),
        (lambda x: F.conv1d(torch.reshape(x, (1, 4, 4)), torch.reshape(x, (4, 2, 2))),
         "a convolution of 4 channels by weights for 2, 4 results, 1 groups"),
        (lambda x: F.conv1d(torch.reshape(x, (1, 4, 4)), torch.reshape(x, (2, 1, 8)), groups=4),
         "a convolution of 4 channels by weights for 4, 2 results, 4 groups"),
        (lambda x: F.conv1d(torch.reshape(x, (1, 4, 4)), torch.reshape(x, (1, 4, 4)), stride=2,
                            padding="same"),
         'padding "same" of a convolution in steps'),
        (lambda x: F.conv1d(torch.reshape(x, (1, 2, 8)), torch.reshape(x, (1, 2, 8)), dilation=2),
         "a window of [15] in [8] elements"),
        (lambda x: F.conv_transpose1d(torch.reshape(x, (1, 4, 4)), torch.reshape(x, (4, 4, 1)),
                                      padding=3),
         "a transposed convolution of [-2] elements"),
        (lambda x: F.relu(x, inplace=True),
         "torch.relu: got an unexpected keyword argument 'inplace'"),
        (lambda x: torch.div(x, x, rounding_mode="trunc"),
         "torch.div of integers, rounded to zero"),
        (lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5),
         "attention that drops elements out"),
    ],
)  # fmt: skip
def test_what_is_refused(function: Case, told: str) -> None:
    with pytest.raises(TileError) as found:
        tile.function(lambda x: function(x)).equations(torch.ones(4, 4, dtype=torch.int64))
    assert found.value.message == told
