"""Contiguous bytes that the engine copies, on the emulator with all checks, and as text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.nvrtcs import NVRTCS, machine_code_of
from tile_core.errors import ArgumentLayoutError


def scaled(rounds: int, width: int, stages: int = 3) -> Any:
    """Return a sum of products, each with one of `width` addends for each row."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, rounds * 64), "float16"),
        B: T.Tensor((rounds * 64, 64), "float16"),
        S: T.Tensor((rounds * width,), "float32"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as bx:
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            s = T.alloc_shared((width,), "float32")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(rounds, num_stages=stages):
                T.copy(A[0, k * 64], a)
                T.copy(B[k * 64, 0], b)
                T.copy(S[k * width], s)
                T.gemm(a, b, c)
                for i, j in T.Parallel(64, 64):
                    c[i, j] += s[i % width]
            T.copy(c, C)

    return kernel


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("rounds", [1, 2, 5])
@pytest.mark.parametrize("width", [4, 64, 300])
def test_addends_of_rows_run_ahead(schedule: str, rounds: int, width: int) -> None:
    kernel = tile.compile(scaled(rounds, width), target="cuda:sm_90a@sim")
    text = kernel.get_kernel_source()
    if rounds > 1:
        assert f"tile::bulk_load(s + (a_filled_slot * {width}), S + (k * {width}), " in text
    assert "S_map" not in text
    rng = np.random.default_rng(rounds + width)
    a, b = (rng.integers(-2, 3, s).astype(np.float16) for s in ((64, rounds * 64),) * 2)
    b = np.ascontiguousarray(b.T)
    s = rng.integers(-9, 9, rounds * width).astype(np.float32)
    c = np.full((64, 64), np.nan, np.float32)
    kernel(a, b, s, c)
    addends = s.reshape(rounds, width)[:, np.arange(64) % width].sum(axis=0)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32) + addends[:, None])


def in_clusters(cluster: tuple[int, int, int]) -> Any:
    """Return products of four blocks with addends of rows, which all of them need alike."""

    @T.prim_func
    def kernel(
        A: T.Tensor((128, 320), "float16"),
        B: T.Tensor((320, 128), "float16"),
        S: T.Tensor((320,), "float32"),
        C: T.Tensor((128, 128), "float32"),
    ):
        with T.Kernel(2, 2, threads=128, cluster_dims=cluster) as (bx, by):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            s = T.alloc_shared((64,), "float32")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(5, num_stages=3):
                T.copy(A[by * 64, k * 64], a)
                T.copy(B[k * 64, bx * 64], b)
                T.copy(S[k * 64], s)
                T.gemm(a, b, c)
                for i, j in T.Parallel(64, 64):
                    c[i, j] += s[i]
            T.copy(c, C[by * 64, bx * 64])

    return kernel


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("cluster", [(2, 1, 1), (1, 2, 1), (2, 2, 1)])
def test_blocks_of_a_cluster_bring_a_part_of_a_row_each(
    schedule: str, cluster: tuple[int, int, int]
) -> None:
    kernel = tile.compile(in_clusters(cluster), target="cuda:sm_90a@sim")
    text = kernel.get_kernel_source()
    assert "tile::tma_load_multicast<1>(s + " in text
    assert "bulk_load" not in text
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-2, 3, s).astype(np.float16) for s in ((128, 320), (320, 128)))
    s = rng.integers(-9, 9, 320).astype(np.float32)
    c = np.full((128, 128), np.nan, np.float32)
    kernel(a, b, s, c)
    addends = np.tile(s.reshape(5, 64).sum(axis=0), 2)[:, None]
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32) + addends)


def through(rows: int, columns: int, *, adds: bool = False) -> Any:
    """Return a kernel that takes rows in, changes them and brings them out, all by the engine."""

    @T.prim_func
    def kernel(
        X: T.Tensor((4 * rows, columns), "float32"), Y: T.Tensor((4 * rows, columns), "float32")
    ):
        with T.Kernel(4, threads=64) as bx:
            x = T.alloc_shared((rows, columns), "float32")
            y = T.alloc_shared((rows, columns), "float32")
            T.copy(X[bx * rows, 0], x, prefer_instruction="tma")
            for i, j in T.Parallel(rows, columns):
                y[i, j] = x[i, j] * 2 + i
            if adds:
                T.atomic_add(Y[bx * rows, 0], y)
            else:
                T.copy(y, Y[bx * rows, 0])

    return kernel


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(8, 6), (4, 300), (1, 260), (2, 2)])
def test_rows_that_are_no_boxes(schedule: str, rows: int, columns: int, adds: bool) -> None:
    kernel = tile.compile(through(rows, columns, adds=adds), target="cuda:sm_90a@sim")
    text = kernel.get_kernel_source()
    nbytes = rows * columns * 4
    step = rows * columns
    assert f"tile::bulk_load(x, X + (bx * {step}), {nbytes}, x_here);" in text
    out = "bulk_reduce_add" if adds else "bulk_store"
    assert f"tile::{out}(Y + (bx * {step}), y, {nbytes});" in text
    assert "_map" not in text
    rng = np.random.default_rng(step)
    x = rng.integers(-99, 99, (4 * rows, columns)).astype(np.float32)
    y = rng.integers(-99, 99, (4 * rows, columns)).astype(np.float32)
    expected = x * 2 + np.arange(4 * rows)[:, None] % rows + (y if adds else 0)
    kernel(x, y)
    np.testing.assert_array_equal(y, expected)


def test_tensors_begin_at_multiples_of_16_bytes() -> None:
    kernel = tile.compile(through(8, 6), target="cuda:sm_90a@sim")
    memory = np.zeros(4 * 8 * 6 + 1, np.float32)
    x, y = memory[1:].reshape(32, 6), np.zeros((32, 6), np.float32)
    with pytest.raises(ArgumentLayoutError, match="multiple of 16 bytes"):
        kernel(x if memory.ctypes.data % 16 == 0 else memory[:-1].reshape(32, 6), y)


@pytest.mark.parametrize("nvrtc", NVRTCS[:1], ids=str)
def test_contiguous_copies_are_one_instruction_of_the_engine(nvrtc: Any) -> None:
    loaded = machine_code_of(tile.lower(scaled(5, 64), target="cuda:sm_90a").kernel_source, nvrtc)
    assert sum(n for o, n in loaded.counts.items() if o.startswith("UBLKCP")) == 1
    both = machine_code_of(tile.lower(through(8, 6), target="cuda:sm_90a").kernel_source, nvrtc)
    assert sum(n for o, n in both.counts.items() if o.startswith("UBLKCP")) == 2
    assert both.spills == 0
