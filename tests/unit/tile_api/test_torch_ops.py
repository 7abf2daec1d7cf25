"""Kernels as operators of torch: eager, traced, compiled, exported and differentiated."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import tile_api as tile
import tile_api.language as T
from tile_core.errors import (
    ArgumentShapeError,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:torch")  # its own
numbers = itertools.count()


def fresh() -> str:
    return f"tile_tests::op{next(numbers)}"


def sum_of(rows: Any, columns: int = 8) -> Any:
    @T.prim_func
    def total(
        A: T.Tensor((rows, columns), "float32"),
        B: T.Tensor((rows, columns), "float32"),
        C: T.Tensor((rows, columns), "float32"),
    ):
        with T.Kernel(T.ceildiv(rows, 4)) as b:
            for i, j in T.Parallel(4, columns):
                if b * 4 + i < rows:
                    C[b * 4 + i, j] = A[b * 4 + i, j] + B[b * 4 + i, j]

    return total


@pytest.fixture(scope="module")
def total() -> Any:
    return tile.compile(sum_of(T.dynamic("m")), out_idx=[-1], target="cpu")


@pytest.fixture(scope="module")
def add(total: Any) -> Any:
    return total.as_torch_op(fresh(), backward=lambda ctx, g: (g, g))


@pytest.fixture(autouse=True)
def clean_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch._dynamo.reset()


def rows(count: int, start: int = 0) -> torch.Tensor:
    return torch.arange(start, start + count * 8, dtype=torch.float32).reshape(count, 8)


def compiled(function: Callable[..., Any], dynamic: bool | None = None) -> Any:
    return torch.compile(function, fullgraph=True, backend="aot_eager", dynamic=dynamic)


# What it computes --------------------------------------------------------------------------


def test_it_is_called_as_the_kernel_is(add: Any) -> None:
    assert torch.equal(add(rows(5), rows(5, 3)), rows(5) + rows(5, 3))


def test_torch_knows_it_by_its_name(total: Any) -> None:
    total.as_torch_op("tile_tests::known")
    found = torch.ops.tile_tests.known
    assert torch.equal(found(rows(2), rows(2)), rows(2) * 2)
    schema = "tile_tests::known(Tensor A, Tensor B) -> Tensor"
    assert str(found.default._schema) == schema


def test_wrong_arguments_are_told_as_by_the_kernel(add: Any) -> None:
    with pytest.raises(ArgumentShapeError, match=r"total.B.shape\[0\]: expected m = 5, got 4"):
        add(rows(5), rows(4))


def test_torch_finds_nothing_to_complain_of(add: Any) -> None:
    found = torch.library.opcheck(add, (rows(5).requires_grad_(), rows(5, 1)))
    assert set(found.values()) == {"SUCCESS"}


# Traces ------------------------------------------------------------------------------------


def test_it_is_compiled_without_breaks(add: Any) -> None:
    function = compiled(lambda x, y: add(x * 2, y) - 1)
    assert torch.equal(function(rows(5), rows(5, 1)), rows(5) * 2 + rows(5, 1) - 1)


def test_inductor_calls_it(add: Any) -> None:
    function = torch.compile(lambda x, y: add(add(x, y), y), fullgraph=True)
    assert torch.equal(function(rows(5), rows(5, 1)), rows(5) + 2 * rows(5, 1))


def test_sizes_stay_symbols(add: Any) -> None:
    function = compiled(lambda x, y: add(x, y).shape[0] + add(x, y), dynamic=True)
    for count in (5, 9, 13):
        assert torch.equal(function(rows(count), rows(count)), rows(count) * 2 + count)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_sizes_that_are_compiled_in_are_guarded() -> None:
    op = tile.compile(sum_of(6), out_idx=[-1], target="cpu").as_torch_op(fresh())
    function = compiled(lambda x, y: op(x[:6], y[:6]), dynamic=True)
    assert torch.equal(function(rows(9), rows(7)), rows(6) * 2)


def test_wrong_sizes_are_told_while_tracing(add: Any) -> None:
    with pytest.raises(Exception, match=r"total.B.shape\[0\]: expected m = 5, got"):
        compiled(lambda x, y: add(x, y))(rows(5), rows(4))


def test_it_is_exported_for_any_size(add: Any) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
            return add(x, y)

    any_rows = {0: torch.export.Dim.DYNAMIC}
    program = torch.export.export(Module(), (rows(5), rows(5)), dynamic_shapes=(any_rows, any_rows))
    assert torch.equal(program.module()(rows(7), rows(7)), rows(7) * 2)


def test_sizes_may_depend_on_data(add: Any) -> None:
    function = compiled(
        lambda x, table: add(table[torch.nonzero(x)[:, 0]], table[torch.nonzero(x)[:, 0]])
    )
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        found = function(torch.tensor([1, 0, 0, 1, 0, 1]), rows(6))
    assert torch.equal(found, rows(6)[[0, 3, 5]] * 2)


def test_meta_tensors_have_shapes_alone(add: Any) -> None:
    made = add(rows(5).to("meta"), rows(5).to("meta"))
    assert (made.device.type, made.shape, made.dtype) == ("meta", (5, 8), torch.float32)


def test_vmap_calls_it_for_each_entry(add: Any) -> None:
    batch = torch.arange(3 * 5 * 8, dtype=torch.float32).reshape(5, 3, 8)
    found = torch.vmap(add, in_dims=(1, None))(batch, rows(5))
    assert torch.equal(found, torch.stack([batch[:, k] + rows(5) for k in range(3)]))
