"""Second factors of products as panels: who gets them, and that results stay the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tile_api as tile
import tile_api.language as T
from tile_core.layout import Layout

M, N, K = 16, 128, 64


def _program(
    dtype: str,
    source: str,
    transposed: bool,
    *,
    rows: int = 0,
    twist: str = "",
) -> Any:
    """Return ``C = A B``, B of type `source` copied into a tile of `dtype`; `rows` of B exist."""
    shape = (N, K) if transposed else (K, N)
    extent = (rows or shape[0], shape[1])

    @T.prim_func
    def main(
        A: T.Tensor((2 * M, K), dtype),
        B: T.Tensor(extent, source),
        C: T.Tensor((2 * M, N), "float32"),
    ):
        with T.Kernel(1, threads=32):
            left = T.alloc_shared((M, K), dtype)
            right = T.alloc_shared(shape, dtype)
            total = T.alloc_fragment((M, N), "float32")
            T.copy(B if twist == "whole" else B[0, 0], right)
            if twist == "stored":
                right[3, 5] = T.cast(0, dtype)
            if twist == "part":
                T.copy(B[0:8, 0 : shape[1]], right[0:8, 0 : shape[1]])
            for half in T.serial(2):
                T.copy(A[half * M, 0], left)
                T.clear(total)
                T.gemm(left, right, total, transpose_B=transposed)
                if twist == "read":
                    for i, j in T.Parallel(M, N):
                        total[i, j] += T.cast(right[0, 0], "float32")
                T.copy(total, C[half * M, 0])

    return main


def _tensors(dtype: str, source: str, shape: tuple[int, int]) -> tuple[Any, ...]:
    torch.manual_seed(0)
    a = torch.randint(0, 4, (2 * M, K)).to(getattr(torch, dtype))
    b = torch.randint(-3, 4, shape).to(getattr(torch, source))
    return a, b, torch.full((2 * M, N), float("nan"))


def _is_panels(kernel: Any) -> bool:
    layout: Layout = kernel.layouts()["right"].layout
    return len(layout.output_shape) == 4


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("dtype", "source"),
    [
        ("float32", "float16"),
        ("float32", "int8"),
        ("bfloat16", "float32"),
        ("bfloat16", "float16"),
        ("float64", "float32"),
        ("float16", "float32"),
    ],
)
def test_products_of_converted_factors(dtype: str, source: str, transposed: bool) -> None:
    kernel = tile.compile(_program(dtype, source, transposed), target="cpu")
    a, b, c = _tensors(dtype, source, (N, K) if transposed else (K, N))
    kernel(a, b, c)
    wide = b.float()
    assert torch.equal(c, a.float() @ (wide.T if transposed else wide))
    if dtype == "float32":
        assert _is_panels(kernel) == transposed


def test_the_product_that_asks_is_named() -> None:
    kernel = tile.compile(_program("float32", "float16", True), target="cpu")
    found = kernel.layouts()["right"]
    assert found.reason.who == "gemm"
    assert found.reason.span is not None
    assert found.reason.span.file == __file__
    panel, width = found.layout.output_shape[0], found.layout.output_shape[2]
    assert panel * width == N
    assert found.layout.address(1, 0) == 1
    assert found.layout.address(0, 1) == width


@pytest.mark.parametrize("rows", [N - 1, 3])
def test_what_does_not_exist_is_zero_in_panels(rows: int) -> None:
    kernel = tile.compile(_program("float32", "float16", True, rows=rows), target="cpu")
    assert _is_panels(kernel)
    a, b, c = _tensors("float32", "float16", (rows, K))
    kernel(a, b, c)
    expected = torch.zeros(2 * M, N)
    expected[:, :rows] = a @ b.float().T
    assert torch.equal(c, expected)


@pytest.mark.parametrize("source", ["float16", "int8"])
def test_what_surely_exists_is_packed_from_where_it_lies(source: str) -> None:
    kernel = tile.compile(_program("float32", source, True, twist="whole"), target="cpu")
    assert _is_panels(kernel)
    assert ("right_rows" in kernel.get_kernel_source()) == (source == "int8")
    a, b, c = _tensors("float32", source, (N, K))
    kernel(a, b, c)
    assert torch.equal(c, a @ b.float().T)


@pytest.mark.parametrize("twist", ["stored", "part", "read"])
def test_other_uses_keep_rows(twist: str) -> None:
    kernel = tile.compile(_program("float32", "float16", True, twist=twist), target="cpu")
    assert not _is_panels(kernel)
    a, b, c = _tensors("float32", "float16", (N, K))
    kernel(a, b, c)
    wide = b.float()
    if twist == "stored":
        wide[3, 5] = 0
    expected = a @ wide.T + (wide[0, 0] if twist == "read" else 0)
    assert torch.equal(c, expected)


def test_groups_are_interleaved_where_the_machine_multiplies_pairs() -> None:
    """Only lowered: the machine that runs the tests may not have the instruction."""
    lowered = tile.lower(_program("bfloat16", "float32", False), target="cpu:sapphirerapids")
    shape = lowered.layouts()["right"].layout.output_shape
    assert shape[1] == K // 2
    assert shape[3] == 2


def test_annotated_rows_win() -> None:
    @T.prim_func
    def main(B: T.Tensor((N, K), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, threads=32):
            left = T.alloc_shared((M, K), "float32")
            right = T.alloc_shared((N, K), "float32")
            total = T.alloc_fragment((M, N), "float32")
            T.annotate_layout({right: T.Layout((N, K), lambda i, j: (i * (K + 16) + j,))})
            T.fill(left, 1)
            T.copy(B, right)
            T.clear(total)
            T.gemm(left, right, total, transpose_B=True)
            T.copy(total, C)

    kernel = tile.compile(main, target="cpu")
    assert kernel.layouts()["right"].layout.affine() == (0, (K + 16, 1))
    b = torch.randint(-3, 4, (N, K)).half()
    c = torch.full((M, N), float("nan"))
    kernel(b, c)
    assert torch.equal(c, b.float().sum(1).expand(M, N))
