"""Boxes of shared tiles: as wide as all products of warpgroups that read them can live with."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.products import Product, check
from support.remarked import remarked
from tile_core.errors import TileWarning
from tile_core.layout import Layout, boxed_operand, operand_tile
from tile_core.ops.gemm import GemmWarpPolicy

SQUARE = Product("sm_90a", 64, 64, 64, threads=256)
NO_PRODUCERS = "no producer warps: no loop asks for two stages or more"
WIDE = replace(SQUARE, m=128, policy=GemmWarpPolicy.FullCol)


def spans(program: Any) -> dict[str, int]:
    """Return the bytes of a row of a box for each tile in shared memory."""
    found = {}
    for stored in program.layouts.report().tiles:
        buffer, layout = stored.buffer, stored.layout
        if isinstance(layout, Layout) and buffer.name in ("A_shared", "B_shared"):
            found[buffer.name] = operand_tile(layout, buffer.dtype.bits).span
    return found


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("product", "a", "b"),
    [
        (SQUARE, 128, 64),  # two groups, 32 columns each
        (replace(SQUARE, n=32), 128, 32),
        (replace(SQUARE, n=16), 128, 16),  # boxes of 8 columns have no chunks to exchange
        (replace(SQUARE, n=48), 128, 16),  # 24 columns each
        (replace(SQUARE, n=80, k=32), 64, 16),
        (replace(SQUARE, n=96), 128, 32),
        (replace(SQUARE, n=128, threads=512), 128, 64),
        (replace(SQUARE, transposes=(True, False)), 128, 64),
        (replace(SQUARE, transposes=(False, True)), 128, 128),  # rows of B are columns of sums
        (WIDE, 128, 64),
        (replace(WIDE, n=32), 128, 32),
        (replace(WIDE, n=16), 128, 32),  # rows are shared out instead: the swizzle is kept
        (replace(WIDE, policy=GemmWarpPolicy.Square), 128, 128),
        (replace(SQUARE, n=320, threads=128), 128, 64),  # 160 columns at once, not 64
        (replace(SQUARE, factor="int8", total="int32", transposes=(False, True)), 64, 64),
    ],
    ids=str,
)
def test_boxes_are_as_wide_as_a_product_can_use_them(product: Product, a: int, b: int) -> None:
    program, said = remarked(product.program)
    assert "wgmma_ss" in product.printed().text
    assert spans(program) == {"A_shared": a, "B_shared": b}
    assert [note.message for note in said] == [NO_PRODUCERS]


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(
    "product",
    [
        SQUARE,
        replace(SQUARE, n=16, k=32),
        replace(SQUARE, n=48, k=16, transposes=(True, False)),
        replace(SQUARE, n=128, threads=512, factor="bfloat16"),
        replace(WIDE, n=32),
        replace(SQUARE, scopes=("fragment", "shared")),
        replace(SQUARE, k=256, steps=4),
    ],
    ids=str,
)
def test_groups_find_their_columns(product: Product) -> None:
    assert "wgmma" in product.printed().text
    check(product)


def two_products(*, first: bool, threads: int = 256, annotated: Any = None) -> Any:
    """Return ``S = Q @ K.T`` and ``D = W.T @ K``, in one order or the other."""

    @T.prim_func
    def main(
        Q: T.Tensor((128, 64), "float16"),
        K: T.Tensor((128, 64), "float16"),
        W: T.Tensor((128, 64), "float16"),
        S: T.Tensor((128, 128), "float32"),
        D: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=threads) as _:
            q = T.alloc_shared((128, 64), "float16")
            k = T.alloc_shared((128, 64), "float16")
            w = T.alloc_shared((128, 64), "float16")
            s = T.alloc_fragment((128, 128), "float32")
            d = T.alloc_fragment((64, 64), "float32")
            if annotated is not None:
                T.annotate_layout({k: annotated})
            T.copy(Q, q)
            T.copy(K, k)
            T.copy(W, w)
            if first:
                T.gemm(q, k, s, transpose_B=True, clear_accum=True)
                T.gemm(w, k, d, transpose_A=True, clear_accum=True)
            else:
                T.gemm(w, k, d, transpose_A=True, clear_accum=True)
                T.gemm(q, k, s, transpose_B=True, clear_accum=True)
            T.copy(s, S)
            T.copy(d, D)

    return main


def operands(source: str, name: str) -> set[int]:
    """Return with which swizzles products read a tile."""
    return {int(n) for n in re.findall(rf"wgmma_operand<(\d+),[^>]*>\({name}\b", source)}


@pytest.mark.parametrize("first", [True, False])
def test_who_needs_the_narrowest_boxes_decides_for_all(first: bool) -> None:
    """The factor of one product is along K, that of the other along columns of two groups."""
    kernel = tile.compile(two_products(first=first), target="cuda:sm_90a@sim")
    source = kernel.get_kernel_source()
    assert "mma_m16" not in source
    assert operands(source, "k") == {64}
    assert operands(source, "q") == operands(source, "w") == {128}
    rng = np.random.default_rng(0)
    q, k, w = (rng.integers(-3, 4, (128, 64)).astype(np.float16) for _ in range(3))
    s, d = np.full((128, 128), np.nan, np.float32), np.full((64, 64), np.nan, np.float32)
    kernel(q, k, w, s, d)
    np.testing.assert_array_equal(s, q.astype(np.float32) @ k.T)
    np.testing.assert_array_equal(d, w.T.astype(np.float32) @ k)


def test_one_group_has_no_need_of_narrow_boxes() -> None:
    source = tile.lower(two_products(first=True, threads=128), target="cuda:sm_90a").kernel_source
    assert operands(source, "k") == {128}


@pytest.mark.parametrize("first", [True, False])
def test_products_into_the_same_sums_share_them_out_alike(first: bool) -> None:
    """The one would keep its swizzle by sharing rows, and the other one shares columns."""
    policy = T.GemmWarpPolicy.FullCol

    @T.prim_func
    def main(
        A: T.Tensor((128, 64), "float16"),
        B: T.Tensor((64, 16), "float16"),
        D: T.Tensor((16, 64), "float16"),
        C: T.Tensor((128, 16), "float32"),
    ):
        with T.Kernel(1, threads=256) as _:
            a = T.alloc_shared((128, 64), "float16")
            b = T.alloc_shared((64, 16), "float16")
            d = T.alloc_shared((16, 64), "float16")
            c = T.alloc_fragment((128, 16), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.copy(D, d)
            T.clear(c)
            if first:
                T.gemm(a, b, c, policy=policy)
            T.gemm(a, d, c, transpose_B=True, policy=policy)
            if not first:
                T.gemm(a, b, c, policy=policy)
            T.copy(c, C)

    kernel = tile.compile(main, target="cuda:sm_90a@sim")
    source = kernel.get_kernel_source()
    assert operands(source, "b") == {32 if first else 0}
    assert operands(source, "d") == {128}
    rng = np.random.default_rng(0)
    shapes = ((128, 64), (64, 16), (16, 64))
    x, y, z = (rng.integers(-3, 4, shape).astype(np.float16) for shape in shapes)
    result = np.full((128, 16), np.nan, np.float32)
    kernel(x, y, z, result)
    np.testing.assert_array_equal(result, x.astype(np.float32) @ (y + z.T))


def test_tiles_may_be_seen_in_another_shape_or_type_whose_rows_are_the_same() -> None:
    @T.prim_func
    def main(
        A: T.Tensor((64, 128), "float16"),
        B: T.Tensor((128, 128), "uint8"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=256) as _:
            a = T.alloc_shared((1, 64, 128), "float16")
            b = T.alloc_shared((128, 128), "uint8")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a[0, :, :])
            T.copy(B, b)
            flat, halves = T.reshape(a, (64, 128)), T.view(b, (128, 64), "float16")
            T.gemm(flat, halves, c, clear_accum=True)
            T.copy(c, C)

    kernel = tile.compile(main, target="cuda:sm_90a@sim")
    swizzles = re.findall(r"wgmma_operand<(\d+),", kernel.get_kernel_source())
    assert swizzles == ["128", "64"]
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((64, 128), (128, 64)))
    result = np.full((64, 64), np.nan, np.float32)
    kernel(x, y.view(np.uint8), result)
    np.testing.assert_array_equal(result, x.astype(np.float32) @ y)


def test_rows_that_are_others_for_a_view_are_in_order() -> None:
    @T.prim_func
    def main(
        A: T.Tensor((128, 32), "float16"),
        B: T.Tensor((64, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((128, 32), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(T.reshape(a, (64, 64)), b, c, clear_accum=True)
            T.copy(c, C)

    copies, note = tile.lower(main, target="cuda:sm_90a").remarks("missed")
    assert copies.message == NO_PRODUCERS
    assert note.message.endswith("is seen in another shape")


def test_it_is_said_who_is_in_the_way() -> None:
    program = two_products(first=True, annotated=boxed_operand((128, 64), 16))
    copies, note = tile.lower(program, target="cuda:sm_90a").remarks("missed")
    assert copies.message == NO_PRODUCERS
    said = (
        r"this matrix product uses no warpgroup MMA: a part of 'k' is out of place: it begins at "
        r"column 32,"
        r" inside of a box of 64 columns; 'k' is stored as T.annotate_layout demands in line \d+"
    )
    assert re.fullmatch(said, note.message)


def test_layouts_are_not_to_blame_for_what_nobody_can_share() -> None:
    """The tiles are stored for those who compute the product instead."""
    with pytest.warns(TileWarning, match="12 warps cannot partition a matrix product of 64 x 40"):
        copies, note = remarked(replace(SQUARE, n=40, threads=384).program).notes
    assert copies.message == NO_PRODUCERS
    assert note.message.startswith(
        "this matrix product uses no warpgroup MMA: 3 warpgroups cannot share 64 x 40 accumulators"
    )


def test_threads_are_those_of_each_product() -> None:
    """One warpgroup computes one product, two compute the other one of the same tile."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"),
        B: T.Tensor((64, 64), "float16"),
        C: T.Tensor((2, 64, 64), "float32"),
    ):
        with T.Kernel(1, threads=256) as _:
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            one = T.alloc_fragment((64, 64), "float32")
            both = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            with T.ws(0):
                T.gemm(a, b, one, clear_accum=True)
                T.copy(one, C[0, :, :])
            T.gemm(a, b, both, transpose_A=True, clear_accum=True)
            T.copy(both, C[1, :, :])

    kernel = tile.compile(main, target="cuda:sm_90a@sim")
    assert operands(kernel.get_kernel_source(), "b") == {64}
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (64, 64)).astype(np.float16) for _ in range(2))
    c = np.full((2, 64, 64), np.nan, np.float32)
    kernel(a, b, c)
    np.testing.assert_array_equal(
        c, np.stack([a.astype(np.float32) @ b, a.T.astype(np.float32) @ b])
    )


PARTS = [
    # the part of A, columns of the part of B, threads, and the boxes that these need
    ((slice(0, 64), slice(16, 80)), False, slice(0, 64), False, 128, (128, 128)),
    ((slice(0, 64), slice(8, 72)), False, slice(0, 64), False, 128, (16, 128)),
    ((slice(0, 64), slice(16, 80)), True, slice(0, 64), False, 128, (32, 128)),
    ((slice(8, 72), slice(64, 128)), True, slice(96, 128), False, 128, (128, 64)),
    ((slice(0, 64), slice(0, 64)), False, slice(0, 32), False, 128, (128, 64)),
    ((slice(0, 64), slice(0, 64)), False, slice(8, 32), False, 128, (128, 16)),
    ((slice(0, 64), slice(0, 64)), False, slice(16, 80), False, 256, (128, 32)),
    ((slice(0, 64), slice(0, 64)), False, slice(8, 72), True, 256, (128, 128)),
]


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(("part_a", "turned_a", "columns", "turned_b", "threads", "boxes"), PARTS)
def test_parts_begin_at_the_borders_of_boxes(
    part_a: Any, turned_a: bool, columns: slice, turned_b: bool, threads: int, boxes: Any
) -> None:
    n = columns.stop - columns.start
    rows, depth = part_a

    @T.prim_func
    def main(
        A: T.Tensor((128, 128), "float16"),
        B: T.Tensor((128, 128), "float16"),
        C: T.Tensor((64, n), "float32"),
    ):
        with T.Kernel(1, threads=threads) as _:
            a = T.alloc_shared((128, 128), "float16")
            b = T.alloc_shared((128, 128), "float16")
            c = T.alloc_fragment((64, n), "float32")
            T.copy(A, a)
            T.copy(B, b)
            if turned_b:
                T.gemm(a[rows, depth], b[columns, 0:64], c, turned_a, True, clear_accum=True)
            else:
                T.gemm(a[rows, depth], b[0:64, columns], c, turned_a, clear_accum=True)
            T.copy(c, C)

    kernel = tile.compile(main, target="cuda:sm_90a@sim")
    source = kernel.get_kernel_source()
    found = [operands(source, name) for name in "ab"]
    assert found == [{0 if span == 16 else span} for span in boxes]
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, (128, 128)).astype(np.float16) for _ in range(2))
    result = np.full((64, n), np.nan, np.float32)
    kernel(x, y, result)
    left, right = x[rows, depth].astype(np.float32), y.astype(np.float32)
    left = left.T if turned_a else left
    right = right[columns, 0:64].T if turned_b else right[0:64, columns]
    np.testing.assert_array_equal(result, left @ right)


@pytest.mark.parametrize(("depth", "at_once"), [(16, 1), (32, 2), (48, 1), (64, 4), (96, 2)])
def test_parts_along_k_of_tiles_that_stay(depth: int, at_once: int) -> None:
    """Parts of 48 begin at four places in boxes of 64; those of 96 at two, 32 apart."""
    count, half = 192 // depth, "float16"

    @T.prim_func
    def main(
        A: T.Tensor((64, 192), half), B: T.Tensor((64, 192), half), C: T.Tensor((64, 64), "float32")
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 192), half)
            b = T.alloc_shared((64, 192), half)
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            for k in T.serial(count):
                part = slice(k * depth, (k + 1) * depth)
                T.gemm(a[:, part], b[:, part], c, transpose_B=True)
            T.copy(c, C)

    kernel = tile.compile(main, target="cuda:sm_90a@sim")
    source = kernel.get_kernel_source()
    assert operands(source, "a") == operands(source, "b") == {128}
    steps = f", {at_once}>" if at_once > 1 else ">"
    assert f"tile::wgmma_ss<64, 0, 0{steps}" in source
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, (64, 192)).astype(np.float16) for _ in range(2))
    result = np.full((64, 64), np.nan, np.float32)
    kernel(x, y, result)
    np.testing.assert_array_equal(result, x.astype(np.float32) @ y.T)


def test_parts_of_rows_and_columns_that_vary() -> None:
    """Rows of A by 64 and columns of B by 32, each part in its turn."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 64), "float16"),
        B: T.Tensor((64, 128), "float16"),
        C: T.Tensor((128, 128), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((128, 64), "float16")
            b = T.alloc_shared((64, 128), "float16")
            c = T.alloc_fragment((64, 32), "float32")
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.grid(2, 4):
                T.gemm(a[i * 64 : i * 64 + 64, :], b[:, j * 32 : j * 32 + 32], c, clear_accum=True)
                T.copy(c, C[i * 64 : i * 64 + 64, j * 32 : j * 32 + 32])

    kernel = tile.compile(main, target="cuda:sm_90a@sim")
    source = kernel.get_kernel_source()
    assert [operands(source, name) for name in "ab"] == [{128}, {64}]
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, (128, 64)).astype(np.float16)
    y = rng.integers(-3, 4, (64, 128)).astype(np.float16)
    result = np.full((128, 128), np.nan, np.float32)
    kernel(x, y, result)
    np.testing.assert_array_equal(result, x.astype(np.float32) @ y)
