"""Kernels that are called in a program under `torch.compile`: Dynamo follows none of our code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

import tile_api as tile
import tile_api.language as T
import tile_launch

torch = pytest.importorskip("torch")

PACKAGES = Path(__file__).parents[3] / "packages"
WIDTH = 16
m = T.dynamic("m")


@T.prim_func
def doubled(A: T.Tensor((m, WIDTH), "float32"), B: T.Tensor((m, WIDTH), "float32")):
    with T.Kernel(m) as i:
        for j in T.Parallel(WIDTH):
            B[i, j] = A[i, j] * 2


@tile.jit(target="cpu")
def eager(A):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), "float32")
    B = T.empty((M, N), "float32")
    with T.Kernel(M) as i:
        for j in T.Parallel(N):
            B[i, j] = A[i, j] * 2
    return B


@tile.jit(out_idx=[-1], target="cpu")
def lazy(rows):
    @T.prim_func
    def traced(A: T.Tensor((rows, WIDTH), "float32"), B: T.Tensor((rows, WIDTH), "float32")):
        with T.Kernel(rows) as i:
            for j in T.Parallel(WIDTH):
                B[i, j] = A[i, j] * 2

    return traced


@tile.function(target="cpu")
def whole(x):
    return x * 2


@pytest.fixture
def seen() -> Iterator[list[CodeType]]:
    """Return the code that Dynamo makes graphs of during the test."""
    found: list[CodeType] = []
    torch._dynamo.reset()
    hook = torch._dynamo.convert_frame.register_bytecode_hook(lambda old, _: found.append(old))
    yield found
    hook.remove()


def _saved(path: Path) -> Any:
    tile.compile(doubled, out_idx=[-1], target="cpu").save(path / "doubled.tile")
    return tile_launch.load(path / "doubled.tile")


WAYS: dict[str, Callable[[Path], Callable[[Any], Any]]] = {
    "kernel": lambda _: tile.compile(doubled, out_idx=[-1], target="cpu"),
    "compiled there": lambda _: lambda x: tile.compile(doubled, out_idx=[-1], target="cpu")(x),
    "eager": lambda _: eager,
    "lazy": lambda _: lambda x: lazy(x.shape[0])(x),
    "function": lambda _: whole,
    "bundle": _saved,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_call_is_a_break_between_graphs(way: str, seen: list[CodeType], tmp_path: Path) -> None:
    call = WAYS[way](tmp_path)
    step = torch.compile(lambda x: call(x.sin()) + 1, backend="eager")
    for rows in (3, 5):
        x = torch.randn(rows, WIDTH)
        assert torch.equal(step(x), x.sin() * 2 + 1)
    assert seen
    assert not [code for code in seen if Path(code.co_filename).is_relative_to(PACKAGES)]
    assert not {code.co_name for code in seen} & {"doubled", "traced", "eager", "lazy", "whole"}


@pytest.mark.parametrize("call", [doubled, eager], ids=["kernel", "eager"])
def test_a_graph_without_breaks_says_what_to_do(call: Any) -> None:
    if call is doubled:
        call = tile.compile(doubled, out_idx=[-1], target="cpu")
    torch._dynamo.reset()
    step = torch.compile(lambda x: call(x) + 1, backend="eager", fullgraph=True)
    with pytest.raises(
        torch._dynamo.exc.Unsupported, match=r"kernel\.as_torch_op\('mylib::name'\)"
    ):
        step(torch.ones(3, WIDTH))
