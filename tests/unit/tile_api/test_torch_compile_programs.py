"""`torch.compile(backend="tile")` on programs as they are: eager mode is the judge."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from tile_api.torch_compile.backend import Options, lowered, tile_backend
from tile_api.torch_compile.explanations import CompiledGraph, InKernels

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own
F = nn.functional


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, backend=tile_backend, options={"target": "cpu"}, **options)


def agree(found: Any, right: Any, error: float = 1e-4) -> None:
    torch.testing.assert_close(found, right, rtol=error, atol=error, equal_nan=True)


def test_batches_that_change() -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.LayerNorm(8))
    fast = compiled(model)
    for rows in (3, 0, 3):
        x = torch.randn(rows, 6, requires_grad=True)
        other = x.detach().clone().requires_grad_()
        (model(x).square().sum() + fast(other).square().sum()).backward()
        agree(fast(other), model(x))
        agree(other.grad, x.grad)


def test_marked_dimensions() -> None:
    fast = compiled(lambda x, w: torch.softmax(x @ w, -1), fullgraph=True)
    for rows in (4, 6):
        x, w = torch.randn(rows, 5), torch.randn(5, 3)
        torch._dynamo.mark_dynamic(x, 0)
        agree(fast(x, w), torch.softmax(x @ w, -1))


def test_modes_of_a_module_that_changes_its_buffers() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5))
    other = copy.deepcopy(model)
    fast = compiled(other)
    for mode in (True, False):
        model.train(mode)
        other.train(mode)
        x = torch.randn(2, 3, 6, 6)
        results = []
        for run in (model, fast):
            torch.manual_seed(1)
            results.append(run(x))
            results[-1].square().sum().backward()
        agree(*results)
        pairs = zip(model.parameters(), other.parameters(), strict=True)
        assert all(torch.allclose(p.grad, q.grad, 1e-3, 1e-3) for p, q in pairs)
    agree([*other.buffers()], [*model.buffers()])


def test_automatic_types() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 4))
    x = torch.randn(5, 8)
    with torch.autocast("cpu", torch.bfloat16):
        right, found = model(x), compiled(model)(x)
    assert found.dtype == right.dtype == torch.bfloat16
    agree(found, right, 3e-2)


def test_compiled_for_each_type() -> None:
    fast = compiled(lambda x: torch.softmax(x * 2, -1))
    for dtype in (torch.float64, torch.bfloat16, torch.float32):
        x = torch.randn(3, 4).to(dtype)
        agree(fast(x), torch.softmax(x * 2, -1), 2e-2 if dtype == torch.bfloat16 else 1e-6)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int64, torch.bool], ids=str)
def test_whole_numbers(dtype: torch.dtype) -> None:
    x = torch.randint(0, 2, (3, 5)).to(dtype)

    def counted(x: Tensor) -> tuple[Tensor, ...]:
        return x + 1, x.sum(), x == 1, x.float() / 2, (x * 10).to(torch.int8)

    agree(compiled(counted)(x), counted(x))


def test_results_are_views_of_each_other_as_in_eager_mode() -> None:
    def several(x: Tensor) -> tuple[Tensor, ...]:
        y = x * 2
        return y, y.t(), y[0], x.view(-1)

    x = torch.randn(3, 4)
    found = compiled(several)(x)
    agree(found, several(x))
    found[0].add_(1)
    agree((found[1], found[2]), (found[0].t(), found[0][0]))
    assert found[3].data_ptr() == x.data_ptr()


def test_arguments_that_are_views_of_each_other() -> None:
    def moved(x: Tensor, y: Tensor) -> Tensor:
        x.add_(1)
        return x * y

    one = torch.randn(4, 5)
    other = one.clone()
    agree(compiled(moved)(one, one[:]), moved(other, other[:]))
    agree(one, other)


def test_a_choice_between_graphs() -> None:
    def chosen(x: Tensor) -> Tensor:
        y = x * 2 + 1
        return (y.relu() if y.sum() > 0 else y.neg()).softmax(-1)

    fast = compiled(chosen)
    for sign in (1.0, -1.0):
        x = torch.full((3, 4), sign)
        agree(fast(x), chosen(x))


def test_a_step_of_an_optimizer() -> None:
    def step(values: list[Tensor], gradients: list[Tensor], moments: list[Tensor]) -> None:
        for x, g, m in zip(values, gradients, moments, strict=True):
            m.mul_(0.9).add_(g)
            x.sub_(m, alpha=0.1)

    one = [[torch.randn(3, 4), torch.randn(5)] for _ in range(3)]
    other = copy.deepcopy(one)
    compiled(step)(*one)
    step(*other)
    agree(one, other)


def _convolved(module: nn.Module) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    return lambda x: (module(x), module(x * 2).relu())


@pytest.mark.parametrize("groups", [1, 4])
def test_results_of_convolutions_lie_as_in_eager_mode(groups: int) -> None:
    function = _convolved(nn.Conv2d(4, 4, 3, padding=1, groups=groups))
    x = torch.randn(2, 6, 6, 4).movedim(-1, 1)
    found, right = compiled(function)(x), function(x)
    agree(found, right, 1e-3)
    assert [y.stride() for y in found] == [y.stride() for y in right]


def test_kernels_are_for_the_device_of_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(
        "tile_api.arrays.function.Function.kernels", lambda self, *like: asked.append(like)
    )
    with FakeTensorMode():
        x, cpu = torch.empty(3, 4, device="cuda"), torch.empty(3, 4)
        graphs = [make_fx(lambda x: x * 2 + 1)(y) for y in (x, cpu)]
    told: list[CompiledGraph] = []
    for graph in graphs:
        lowered(graph, "inference", Options("cuda:sm_90a", told))
    assert [isinstance(step, InKernels) for step in told[0].steps] == [True]
    assert [x.device.type for like in asked for x in like] == ["cuda"]
    assert {t.reason for t in told[1].in_torch} == {"a tensor is on cpu, kernels run on cuda"}
