"""Functions that make kernels as operators of torch."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import tile_api as tile
import tile_api.language as T
from tile_core.errors import ArgumentShapeError, TorchOpSignatureError

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:torch")  # its own
numbers = itertools.count()


def fresh() -> str:
    return f"tile_factories::op{next(numbers)}"


@pytest.fixture(autouse=True)
def clean_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch._dynamo.reset()


@tile.jit(out_idx=[-1], target="interpret")
def transposed(rows: int, columns: int, factor: float = 1.0):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((columns, rows), "float32")):
        with T.Kernel(rows) as i:
            for j in T.Parallel(columns):
                B[j, i] = A[i, j] * factor

    return main


@tile.jit(target="interpret")
def doubled(A, factor: float = 2.0):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), "float32")
    B = T.empty((N, M), "float32")
    with T.Kernel(M) as i:
        for j in T.Parallel(N):
            B[j, i] = A[i, j] * factor
    return B


@tile.jit(target="interpret")
def halves(A):
    M = T.const("M")
    A: T.Tensor((M,), "float32")
    assert M % 6 == 0, "six at a time"
    with T.Kernel(M // 6) as i:
        for j in T.Parallel(6):
            A[i * 6 + j] *= 0.5


def matrix(rows: int, columns: int) -> torch.Tensor:
    return torch.arange(rows * columns, dtype=torch.float32).reshape(rows, columns)


@pytest.fixture(scope="module")
def lazy() -> Any:
    return transposed.as_torch_op(fresh(), sizes=lambda A: A.shape, like=(8, 8), factor=3.0)


@pytest.fixture(scope="module")
def eager() -> Any:
    return doubled.as_torch_op(fresh(), factor=3.0)


@pytest.mark.parametrize("style", ["lazy", "eager"])
def test_each_shape_has_its_kernel(style: str, request: pytest.FixtureRequest) -> None:
    op = request.getfixturevalue(style)
    assert str(op._opoverload._schema).endswith("(Tensor A) -> Tensor")
    for shape in ((3, 5), (4, 2)):
        assert torch.equal(op(matrix(*shape)), matrix(*shape).T * 3)


@pytest.mark.parametrize("style", ["lazy", "eager"])
def test_it_is_compiled(style: str, request: pytest.FixtureRequest) -> None:
    op = request.getfixturevalue(style)
    function = torch.compile(lambda a: op(a + 1) - 1, fullgraph=True, backend="aot_eager")
    for shape in ((3, 5), (4, 2)):
        assert torch.equal(function(matrix(*shape)), (matrix(*shape) + 1).T * 3 - 1)


def test_torch_finds_nothing_to_complain_of(eager: Any) -> None:
    assert set(torch.library.opcheck(eager, (matrix(3, 5),)).values()) == {"SUCCESS"}


def test_it_changes_its_arguments() -> None:
    op = halves.as_torch_op(fresh(), like={"M": 12})
    a = torch.arange(18, dtype=torch.float32)
    assert op(a) is None
    assert torch.equal(a, torch.arange(18) / 2)
    function = torch.compile(lambda x: (op(x), x + 1)[1], fullgraph=True, backend="aot_eager")
    assert torch.equal(function(a), torch.arange(18) / 4 + 1)


def test_the_same_function_is_the_same_operator() -> None:
    name = fresh()
    assert doubled.as_torch_op(name) is doubled.as_torch_op(name)


def test_gradients() -> None:
    op = doubled.as_torch_op(fresh(), backward=lambda ctx, g: g.T * 2)
    a = matrix(3, 5).requires_grad_()
    op(a).sum().backward()
    assert torch.equal(a.grad, torch.full((3, 5), 2.0))


def test_wrong_arguments(lazy: Any) -> None:
    with pytest.raises(ArgumentShapeError):
        transposed.as_torch_op(fresh(), sizes=lambda A: (4, 4), like=(4, 4))(matrix(3, 5))


def test_lazy_functions_say_where_sizes_come_from() -> None:
    with pytest.raises(TorchOpSignatureError) as caught:
        transposed.as_torch_op(fresh())
    assert str(caught.value).startswith("[TL8202] transposed(rows: 'int', columns: 'int'")
    assert "sizes=lambda A, B: (A.shape[0], B.shape[1])" in str(caught.value)


def test_eager_functions_know_their_sizes() -> None:
    with pytest.raises(TorchOpSignatureError, match="where tensors tell all sizes"):
        doubled.as_torch_op(fresh(), sizes=lambda A: A.shape)
    with pytest.raises(TorchOpSignatureError, match="for M=128 it does not trace"):
        halves.as_torch_op(fresh())
    with pytest.raises(TorchOpSignatureError, match="names sizes, got tuple"):
        halves.as_torch_op(fresh(), like=(12,))
