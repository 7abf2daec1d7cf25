"""The kernels as operators of torch: traced, differentiated, compiled."""

from __future__ import annotations

import pytest
import torch

import tile_nn.torch_ops
from support.nn_operators import examples, normal
from tile_core.errors import TorchOpNameError


def test_each_kernel_is_an_operator():
    kernels = {getattr(tile_nn, n) for n in set(tile_nn.__all__) - set(tile_nn._OF_TORCH)}
    assert {function for function, *_ in tile_nn.torch_ops.TABLE.values()} == kernels
    assert set(examples()) == set(tile_nn.torch_ops.OPERATORS)


@pytest.mark.parametrize("name", tile_nn.torch_ops.OPERATORS)
def test_torch_finds_no_fault(name):
    op = getattr(torch.ops.tile_nn, name).default
    checks = "test_schema", "test_autograd_registration", "test_faketensor"
    torch.library.opcheck(op, examples()[name], test_utils=checks)


def test_gradients_are_those_of_the_kernel():
    x, weight = normal(5, 8), normal(8)
    for run in (tile_nn.rms_norm, torch.ops.tile_nn.rms_norm):
        x.grad = weight.grad = None
        run(x, weight, eps=1e-3).square().sum().backward()
        found = x.grad, weight.grad
        if run is tile_nn.rms_norm:
            wanted = found
    assert all(map(torch.equal, found, wanted))


def test_compiled_for_any_number_of_rows():
    # It loads torch's compiler: 3 s, which collecting need not take.
    from torch._dynamo.testing import CompileCounterWithBackend

    counted = CompileCounterWithBackend("aot_eager")

    @torch.compile(fullgraph=True, dynamic=True, backend=counted)
    def gated(x, weight):
        return torch.ops.tile_nn.silu_and_mul(torch.ops.tile_nn.rms_norm(x, weight))

    for rows in (3, 5, 7):
        x, weight = normal(rows, 8), normal(8)
        gated(x, weight).sum().backward()
        wanted = tile_nn.silu_and_mul(tile_nn.rms_norm(x, weight))
        torch.testing.assert_close(gated(x, weight), wanted)
        assert x.grad.shape == x.shape
    assert counted.frame_count == 1


def test_exported():
    class Block(torch.nn.Module):
        def forward(self, x):
            return torch.ops.tile_nn.silu_and_mul(x)

    x = torch.randn(4, 6)
    program = torch.export.export(Block(), (x,), dynamic_shapes={"x": {0: torch.export.Dim.AUTO}})
    assert torch.ops.tile_nn.silu_and_mul.default in [n.target for n in program.graph.nodes]
    y = torch.randn(9, 6)
    assert torch.equal(program.module()(y), tile_nn.silu_and_mul(y))


def test_a_name_that_is_taken():
    from tile_api.integrations.array_ops import array_op

    with pytest.raises(TorchOpNameError, match=r"tile_nn::swiglu.* was made of another kernel"):
        array_op(
            tile_nn.geglu, "tile_nn::swiglu", "(Tensor gate, Tensor up) -> Tensor", lambda x: x
        )
