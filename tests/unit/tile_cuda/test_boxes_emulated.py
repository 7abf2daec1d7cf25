"""Tiles of three and more dimensions, on the emulator with all checks, and as machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.nvrtcs import NVRTCS, machine_code_of

SIM = "cuda:sm_90a@sim"


def numbers(*shape: int, dtype: str = "float16", seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(dtype)


def calls(text: str, name: str) -> int:
    return text.count(f"tile::{name}<")


def through(box: tuple[int, ...], dtype: str, update: str = "store") -> Any:
    """Return a kernel that takes tiles of `box` in and out, which overhang the tensors."""
    shape = tuple(2 * n - 1 for n in box[:-1]) + (box[-1] + 128 // np.dtype(dtype).itemsize,)
    *outer, rows, columns = box
    lead = (1,) * (3 - len(outer)) + tuple(outer)
    full = (1,) * (5 - len(shape)) + shape

    @T.prim_func
    def kernel(X: T.Tensor(full, dtype), Y: T.Tensor(full, dtype)):
        with T.Kernel(2, 2, 2, threads=64) as (bx, by, bz):
            x = T.alloc_shared((*lead, rows, columns), dtype)
            y = T.alloc_shared((*lead, rows, columns), dtype)
            place = (0, 0, bz * lead[2], by * rows, bx * columns)
            a, b, c, d, e = place
            T.copy(X[a, b, c, d, e], x, prefer_instruction="tma")
            for g, h, i, j, k in T.Parallel(*lead, rows, columns):
                y[g, h, i, j, k] = x[g, h, i, j, k] * 2
            if update == "store":
                T.copy(y, Y[a, b, c, d, e])
            elif update == "add":
                T.atomic_add(Y[a, b, c, d, e], y)
            else:
                T.atomic_max(Y[a, b, c, d, e], y)

    return kernel, full


UPDATES = {
    "store": ("tma_store", lambda old, new: new),
    "add": ("tma_reduce_add", lambda old, new: old + new),
    "max": ("tma_reduce_max", np.maximum),
}


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("box", "dtype", "update"),
    [
        ((4, 8, 64), "float16", "store"),
        ((4, 8, 64), "float16", "add"),
        ((3, 8, 32), "int32", "max"),
        ((8, 6, 64), "float16", "store"),
        ((3, 5, 4), "float32", "store"),
        ((2, 3, 4, 16), "float16", "add"),
        ((2, 3, 2, 4, 32), "int8", "store"),
    ],
)
def test_tiles_are_one_box(schedule: str, box: tuple[int, ...], dtype: str, update: str) -> None:
    made, shape = through(box, dtype, update)
    kernel = tile.compile(made, target=SIM)
    text = kernel.get_kernel_source()
    name, combined = UPDATES[update]
    assert (calls(text, "tma_load"), calls(text, name)) == (1, 1)
    x, y = numbers(*shape, dtype=dtype), numbers(*shape, dtype=dtype, seed=1)
    blocks = (1, 1, 2, 2, 2)
    whole = (1,) * (5 - len(box)) + box
    inside = tuple(slice(n * size) for n, size in zip(blocks, whole, strict=True))
    expected = y.copy()
    expected[inside] = combined(y, x * 2)[inside]
    kernel(x, y)
    np.testing.assert_array_equal(y, expected)


def by_parts(images: int, rows: int, columns: int) -> Any:
    """Return a kernel that brings all images at once, and takes them away one by one."""

    @T.prim_func
    def kernel(
        X: T.Tensor((2 * images, rows, columns), "float16"),
        Y: T.Tensor((2 * images, rows, columns), "float16"),
    ):
        with T.Kernel(2, threads=64) as bx:
            x = T.alloc_shared((images, rows, columns), "float16")
            T.copy(X[bx * images, 0, 0], x, prefer_instruction="tma")
            for i in T.serial(images):
                T.copy(x[i, :, :], Y[bx * images + images - 1 - i, 0:rows, 0:columns])

    return kernel


@pytest.mark.parametrize(("rows", "columns", "boxes"), [(14, 64, 1), (16, 128, 2), (8, 32, 1)])
def test_copies_of_one_tile_differ_in_size(
    schedule: str, rows: int, columns: int, boxes: int
) -> None:
    kernel = tile.compile(by_parts(3, rows, columns), target=SIM)
    text = kernel.get_kernel_source()
    assert (calls(text, "tma_load"), calls(text, "tma_store")) == (boxes, boxes)
    x, y = numbers(6, rows, columns), np.full((6, rows, columns), np.nan, np.float16)
    kernel(x, y)
    expected = x.reshape(2, 3, rows, columns)[:, ::-1].reshape(y.shape)
    np.testing.assert_array_equal(y, expected)


def convolution(height: int, width: int, channels: int, stages: int = 3) -> Any:
    """Return 3 x 3 products of patches, `height` rows of `width` at a time, with 64 filters."""
    pixels = height * width

    @T.prim_func
    def kernel(
        X: T.Tensor((2, 2 * height, 2 * width, channels), "float16"),
        W: T.Tensor((9 * channels, 64), "float16"),
        Y: T.Tensor((2, 2 * height, 2 * width, 64), "float32"),
    ):
        with T.Kernel(2, 2, 2, threads=128) as (bx, by, bz):
            x = T.alloc_shared((height, width, 64), "float16")
            w = T.alloc_shared((64, 64), "float16")
            sums = T.alloc_fragment((pixels, 64), "float32")
            rows = T.reshape(x, (pixels, 64))
            T.clear(sums)
            for k in T.Pipelined(9 * channels // 64, num_stages=stages):
                tap = k // (channels // 64)
                c = k % (channels // 64) * 64
                T.copy(X[bz, by * height + tap // 3 - 1, bx * width + tap % 3 - 1, c], x)
                T.copy(W[k * 64, 0], w)
                T.gemm(rows, w, sums)
            for i, j in T.Parallel(pixels, 64):
                Y[bz, by * height + i // width, bx * width + i % width, j] = sums[i, j]

    return kernel


def convolved(x: Any, w: Any) -> Any:
    n, height, width, channels = x.shape
    padded = np.zeros((n, height + 2, width + 2, channels), np.float32)
    padded[:, 1:-1, 1:-1] = x
    taps = [
        padded[:, i : i + height, j : j + width] @ w[k : k + channels].astype(np.float32)
        for k, (i, j) in zip(range(0, 9 * channels, channels), np.ndindex(3, 3), strict=True)
    ]
    return np.sum(taps, axis=0)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(("height", "width"), [(8, 8), (4, 16), (16, 4)])
def test_patches_of_images_are_boxes_of_four_dimensions(
    schedule: str, height: int, width: int
) -> None:
    kernel = tile.compile(convolution(height, width, 128), target=SIM)
    text = kernel.get_kernel_source()
    assert (calls(text, "tma_load"), text.count("tma_load<4>")) == (2, 1)
    assert ("tile::wgmma_ss<" in text) == (width % 8 == 0)
    x, w = numbers(2, 2 * height, 2 * width, 128), numbers(9 * 128, 64, seed=1)
    y = np.full((2, 2 * height, 2 * width, 64), np.nan, np.float32)
    kernel(x, w, y)
    np.testing.assert_array_equal(y, convolved(x, w))


def one_by_one(images: int, rows: int) -> Any:
    """Return a product of images that are brought one by one."""

    @T.prim_func
    def kernel(
        X: T.Tensor((images, rows, 64), "float16"),
        W: T.Tensor((64, 64), "float16"),
        Y: T.Tensor((images * rows, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            x = T.alloc_shared((images, rows, 64), "float16")
            w = T.alloc_shared((64, 64), "float16")
            sums = T.alloc_fragment((images * rows, 64), "float32")
            for i in T.serial(images):
                T.copy(X[i, 0:rows, 0:64], x[i, :, :], prefer_instruction="tma")
            T.copy(W, w, prefer_instruction="tma")
            T.clear(sums)
            T.gemm(T.reshape(x, (images * rows, 64)), w, sums)
            T.copy(sums, Y)

    return kernel


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(("images", "rows"), [(8, 8), (4, 16), (16, 4), (2, 32)])
def test_parts_of_tiles_that_are_multiplied_as_a_whole(
    schedule: str, images: int, rows: int
) -> None:
    kernel = tile.compile(one_by_one(images, rows), target=SIM)
    assert ("tile::wgmma_ss" in kernel.get_kernel_source()) == (rows % 8 == 0)
    x, w = numbers(images, rows, 64), numbers(64, 64, seed=1)
    y = np.full((images * rows, 64), np.nan, np.float32)
    kernel(x, w, y)
    np.testing.assert_array_equal(y, x.reshape(-1, 64).astype(np.float32) @ w)


def in_clusters(images: int, rows: int) -> Any:
    """Return products of images, which two blocks share, with columns of their own."""

    @T.prim_func
    def kernel(
        A: T.Tensor((2 * images, rows, 320), "float16"),
        B: T.Tensor((320, 128), "float16"),
        C: T.Tensor((2 * images * rows, 128), "float32"),
    ):
        with T.Kernel(2, 2, threads=128, cluster_dims=(2, 1, 1)) as (bx, by):
            a = T.alloc_shared((images, rows, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((images * rows, 64), "float32")
            flat = T.reshape(a, (images * rows, 64))
            T.clear(c)
            for k in T.Pipelined(5, num_stages=3):
                T.copy(A[by * images, 0, k * 64], a)
                T.copy(B[k * 64, bx * 64], b)
                T.gemm(flat, b, c)
            T.copy(c, C[by * images * rows, bx * 64])

    return kernel


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(
    ("images", "rows", "boxes"), [(4, 16, 1), (2, 32, 2), (1, 64, 1), (3, 64, 3)]
)
def test_blocks_of_a_cluster_bring_images_or_rows_each(
    schedule: str, images: int, rows: int, boxes: int
) -> None:
    kernel = tile.compile(in_clusters(images, rows), target=SIM)
    text = kernel.get_kernel_source()
    assert (calls(text, "tma_load_multicast"), calls(text, "tma_load")) == (boxes, 1)
    a, b = numbers(2 * images, rows, 320), numbers(320, 128, seed=1)
    c = np.full((2 * images * rows, 128), np.nan, np.float32)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.reshape(-1, 320).astype(np.float32) @ b)


@pytest.mark.parametrize("nvrtc", NVRTCS[:1], ids=str)
def test_a_round_is_one_instruction_for_each_operand(nvrtc: Any) -> None:
    made = tile.lower(convolution(8, 8, 128), target="cuda:sm_90a")
    loaded = machine_code_of(made.kernel_source, nvrtc)
    assert {o: n for o, n in loaded.counts.items() if o.startswith("UTMALDG")} == {
        "UTMALDG.2D": 1, "UTMALDG.4D": 1,
    }  # fmt: skip
    assert loaded.counts["HGMMA.64x64x16.F32"] == 4
    assert loaded.spills == 0
