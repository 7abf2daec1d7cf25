"""Copies by the engine that fill or read rows and columns of a shared tile in part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import UnsupportedOnTarget
from tile_core.layout import boxed_operand, row_major
from tile_sim import checking

TARGETS = ("interpret", "cpu", "cuda:sm_90a@sim")


def there_and_back(
    shape: tuple[int, int],
    dtype: str,
    part: tuple[int, int],
    steps: tuple[int, int],
    layout: Any = None,
    loop: Any = T.serial,
) -> Any:
    """Return a kernel that copies part after part into a cleared tile, and out of it again."""
    (rows, columns), (m, n), (down, right) = shape, part, steps
    turns, across = (rows - m) // down + 1, (columns - n) // right + 1

    @T.prim_func
    def kernel(
        A: T.Tensor((rows, columns), dtype),
        whole: T.Tensor((turns, across, rows, columns), dtype),
        parts: T.Tensor((turns, across, m, n), dtype),
    ):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((rows, columns), dtype)
            full = T.alloc_barrier(64)
            if layout is not None:
                T.annotate_layout({S: layout})
            for i in loop(turns):
                for j in loop(across):
                    y, x = i * down, j * right
                    T.clear(S)
                    T.fence_proxy_async()
                    T.sync_threads()
                    T.tma_copy(A[y : y + m, x : x + n], S[y : y + m, x : x + n], barrier=full)
                    T.barrier_arrive(full)
                    T.barrier_wait(full, (i * across + j) % 2)
                    T.tma_copy(S[y : y + m, x : x + n], parts[i, j, :, :])
                    T.copy(S, whole[i, j, :, :], disable_tma=True)
                    T.tma_store_wait()
                    T.sync_threads()

    return kernel, (turns, across)


CASES: dict[str, tuple[Any, ...]] = {
    "columns": ((64, 64), "float16", (64, 32), (64, 32)),
    "two boxes": ((8, 192), "float16", (8, 128), (8, 64)),
    "groups of rows": ((64, 64), "float16", (16, 64), (8, 64)),
    "any rows": ((16, 64), "float16", (5, 64), (3, 64)),
    "single rows": ((7, 128), "float32", (1, 64), (1, 64)),
    "every second row": ((8, 32), "float16", (3, 32), (2, 32), boxed_operand((8, 32), 16)),
    "rows in order": ((5, 64), "float32", (3, 32), (1, 32), row_major((5, 64))),
    "all of few rows": ((13, 128), "float16", (3, 128), (2, 128)),
    "known at once": ((16, 64), "uint8", (4, 32), (4, 32), None, T.unroll),
    "swizzled by hand": ((16, 128), "bfloat16", (3, 64), (13, 64), boxed_operand((16, 128), 16)),
}


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_parts_arrive_and_leave(name: str, target: str) -> None:
    (rows, columns), dtype, (m, n), (down, right), *_ = CASES[name]
    kernel, (turns, across) = there_and_back(*CASES[name])
    kind = np.dtype("uint16") if dtype == "bfloat16" else np.dtype(dtype)
    a = np.random.default_rng(0).integers(1, 100, (rows, columns)).astype(kind)
    whole = np.full((turns, across, rows, columns), 101, kind)
    parts = np.full((turns, across, m, n), 101, kind)
    arrays = [x.view("bfloat16") if dtype == "bfloat16" else x for x in (a, whole, parts)]
    with checking("all"):
        tile.compile(kernel, target=target)(*arrays)
    for i in range(turns):
        for j in range(across):
            here = np.s_[i * down : i * down + m, j * right : j * right + n]
            expected = np.zeros_like(a)
            expected[here] = a[here]
            np.testing.assert_array_equal(whole[i, j], expected)
            np.testing.assert_array_equal(parts[i, j], a[here])


def lines_of(kernel: Any, word: str) -> list[str]:
    source = tile.compile(kernel, target="cuda:sm_90a@sim").get_kernel_source()
    return [line.split("//")[0].strip() for line in source.splitlines() if word in line]


def test_a_part_is_as_few_boxes_as_the_tile_allows() -> None:
    kernel, _ = there_and_back(*CASES["columns"])
    assert len(lines_of(kernel, "tma_load<")) == 1
    assert lines_of(kernel, "expect_tx") == ["tile::mbarrier_expect_tx(full, 4096);"]
    assert len(lines_of(there_and_back(*CASES["two boxes"])[0], "tma_load<")) == 2


def product(columns: int) -> Any:
    """Return a product of warpgroups whose factors arrive so many columns at a time."""
    depth = 128

    @T.prim_func
    def kernel(
        A: T.Tensor((64, depth), "float16"),
        B: T.Tensor((64, depth), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            A_s = T.alloc_shared((64, depth), "float16")
            B_s = T.alloc_shared((64, depth), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            full = T.alloc_barrier([128] * (depth // columns))
            for j in T.unroll(depth // columns):
                x = j * columns
                T.tma_copy(A[:, x : x + columns], A_s[:, x : x + columns], barrier=full[j])
                T.tma_copy(B[:, x : x + columns], B_s[:, x : x + columns], barrier=full[j])
                T.barrier_arrive(full[j])
            for j in T.unroll(depth // columns):
                T.barrier_wait(full[j], 0)
            T.wgmma_gemm(A_s, B_s, C_l, transpose_B=True, clear_accum=True)
            T.warpgroup_wait(0)
            T.copy(C_l, C)

    return kernel


@pytest.mark.parametrize("columns", [64, 32, 16, 8])
def test_products_read_what_arrives_in_parts(columns: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (64, 128)).astype(np.float16) for _ in "ab")
    c = np.full((64, 64), np.nan, np.float32)
    with checking("all"):
        tile.compile(product(columns), target="cuda:sm_90a@sim")(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


def test_a_copy_that_asks_for_the_engine_may_be_of_a_part() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "float16"), C: T.Tensor((32, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((32, 64), "float16")
            for j in T.unroll(2):
                here = j * 32
                T.copy(A[:, here : here + 32], S[:, here : here + 32], prefer_instruction="tma")
            T.copy(S[8:32, :], C[8:32, :], prefer_instruction="tma")
            T.copy(S[0:8, :], C[0:8, :])

    a, c = np.arange(2048, dtype=np.float16).reshape(32, 64), np.zeros((32, 64), np.float16)
    with checking("all"):
        tile.compile(kernel, target="cuda:sm_90a@sim")(a, c)
    np.testing.assert_array_equal(c, a)
    assert len(lines_of(kernel, "tma_load<")) >= 1
    assert len(lines_of(kernel, "tma_store<")) >= 1


REFUSED = {
    "chunks of a swizzle": (
        ((64, 64), "float16", (64, 32), (64, 32), boxed_operand((64, 64), 16)),
        "rows of 64 bytes are parts of the 128 in which chunks change places",
    ),
    "between 128 bytes": (
        ((16, 8), "float16", (5, 8), (3, 8)),
        "parts of it begin at no multiples of 128 bytes",
    ),
    "too many rows": (
        ((512, 128), "float16", (512, 64), (512, 64), row_major((512, 128))),
        "it takes 512 boxes of a row each, more than 256",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_engine_cannot_fill_has_a_reason(name: str) -> None:
    case, why = REFUSED[name]
    with pytest.raises(UnsupportedOnTarget) as raised:
        tile.compile(there_and_back(*case)[0], target="cuda:sm_90a@sim")
    assert raised.value.message == f"'S' cannot be copied in bulk: {why}"
