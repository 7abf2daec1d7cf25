"""One operator of torch for several kinds of devices."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import tile_api as tile
import tile_api.language as T
from tile_api.integrations.torch_ops import registry
from tile_core.errors import ArgumentLayoutError, ArgumentShapeError, TorchOpNameError

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:torch")  # its own
numbers = itertools.count()
m = T.dynamic("m")
DEVICES = {"cpu": "cpu", "cuda": "cuda:sm_80"}


def fresh() -> str:
    return f"tile_tests_devices::op{next(numbers)}"


def doubled(kind: str, columns: int = 8, block: int = 4, dtype: str = "float32") -> Any:
    """Return ``B = 2 * A`` for a kind of device."""

    @T.prim_func
    def main(A: T.Tensor((m, columns), dtype), B: T.Tensor((m, columns), dtype)):
        with T.Kernel(T.ceildiv(m, block), threads=32) as b:
            for i, j in T.Parallel(block, columns):
                if b * block + i < m:
                    B[b * block + i, j] = A[b * block + i, j] * 2

    return tile.compile(main, out_idx=[1], target=DEVICES[kind])


def gradient(kind: str, factor: int = 2) -> Any:
    @T.prim_func
    def backward(dB: T.Tensor((m, 8), "float32"), dA: T.Tensor((m, 8), "float32")):
        with T.Kernel(m, threads=32) as b:
            for j in T.Parallel(8):
                dA[b, j] = dB[b, j] * factor

    return tile.compile(backward, out_idx=[1], target=DEVICES[kind])


def has_kernel(op: Any, key: str) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(op._qualname, key))


def on_fakes(op: Any, device: str, rows: int = 6, columns: int = 8) -> Any:
    with FakeTensorMode():
        return op(torch.empty(rows, columns, device=device))


@pytest.mark.parametrize("order", [("cpu", "cuda"), ("cuda", "cpu")])
def test_the_second_device_is_added(order: tuple[str, str]) -> None:
    name, kernels = fresh(), {kind: doubled(kind) for kind in order}
    op = kernels[order[0]].as_torch_op(name)
    assert kernels[order[1]].as_torch_op(name) is op
    for kind in order:  # and each of them again
        assert kernels[kind].as_torch_op(name) is op
    a = torch.arange(48, dtype=torch.float32).reshape(6, 8)
    assert torch.equal(op(a), a * 2)
    assert has_kernel(op, order[1].upper())
    for device in ("cpu", "cuda"):
        made = on_fakes(op, device)
        assert (made.device.type, made.shape) == (device, (6, 8))
        with pytest.raises(ArgumentShapeError, match=r"expected 8, got 9"):
            on_fakes(op, device, columns=9)


def test_a_device_without_a_kernel_is_refused_with_the_way_out() -> None:
    op = doubled("cpu").as_torch_op(fresh())
    told = r"main\.A\.device: the kernel runs on cpu, the tensor is on cuda:0"
    with pytest.raises(ArgumentLayoutError, match=told):
        on_fakes(op, "cuda")


def test_traces_go_to_the_kernel_of_the_device() -> None:
    name = fresh()
    op = doubled("cpu").as_torch_op(name)
    doubled("cuda").as_torch_op(name)
    for device in ("cpu", "cuda"):
        with FakeTensorMode():
            given = torch.empty(6, 8, device=device)
            program = torch.export.export(_Module(op), (given,))
        (call,) = [node for node in program.graph.nodes if node.op == "call_function"]
        assert call.target is getattr(torch.ops.tile_tests_devices, name.split("::")[1]).default
        assert call.meta["val"].device.type == device


class _Module(torch.nn.Module):
    def __init__(self, op: Any) -> None:
        super().__init__()
        self.op = op

    def forward(self, a: Any) -> Any:
        return self.op(a)


def test_kernels_of_devices_may_be_cut_differently() -> None:
    name = fresh()
    op = doubled("cpu", block=4).as_torch_op(name)
    assert doubled("cuda", block=16).as_torch_op(name) is op


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"columns": 16}, r"it has A: float32\[m, 8\], this one A: float32\[m, 16\]"),
        ({"dtype": "float16"}, r"it has A: float32\[m, 8\], this one A: float16\[m, 8\]"),
    ],
)
def test_kernels_of_devices_take_the_same(other: dict[str, Any], told: str) -> None:
    name = fresh()
    op = doubled("cpu").as_torch_op(name)
    with pytest.raises(TorchOpNameError, match=told):
        doubled("cuda", **other).as_torch_op(name)
    assert not has_kernel(op, "CUDA")


def test_one_kind_of_device_has_one_kernel() -> None:
    name = fresh()
    doubled("cpu", block=4).as_torch_op(name)
    with pytest.raises(TorchOpNameError, match="it runs another one on cpu already"):
        doubled("cpu", block=2).as_torch_op(name)


def test_gradients_are_kernels_of_each_device() -> None:
    name = fresh()
    op = doubled("cpu").as_torch_op(name, backward=gradient("cpu"))
    assert doubled("cuda").as_torch_op(name, backward=gradient("cuda")) is op
    a = torch.ones(6, 8, requires_grad=True)
    op(a).sum().backward()
    assert torch.equal(a.grad, torch.full((6, 8), 2.0))
    made = on_fakes(registry().ops[f"{name}_backward"].op, "cuda")  # torch asks a GPU for a tape
    assert (made.device.type, made.shape) == ("cuda", (6, 8))


@pytest.mark.parametrize("other", [{"factor": 3}, {}])
def test_another_gradient_on_the_same_device(other: dict[str, int]) -> None:
    name, forward = fresh(), doubled("cpu")
    op = forward.as_torch_op(name, backward=gradient("cpu"))
    again = gradient("cpu", **other)
    if not other:  # compiled anew, it is the same kernel
        assert forward.as_torch_op(name, backward=again) is op
        return
    with pytest.raises(TorchOpNameError, match="it runs another one on cpu already"):
        forward.as_torch_op(name, backward=again)


def test_gradients_by_functions_are_the_same_function() -> None:
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2

    name = fresh()
    op = doubled("cpu").as_torch_op(name, backward=backward)
    assert doubled("cuda").as_torch_op(name, backward=backward) is op
    for other in (None, lambda ctx, grad: grad):
        with pytest.raises(TorchOpNameError, match="its gradient is another one"):
            doubled("cuda").as_torch_op(name, backward=other)
