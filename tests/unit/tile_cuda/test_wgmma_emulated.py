"""Products of warpgroups on the emulator, all checks on: types, layouts, grids, waits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.products import Product, check, lowered
from tile_core.codegen import print_program
from tile_core.ir.build_expr import binary
from tile_core.ir.expr import BinaryOp
from tile_core.ir.stmt import Kernel
from tile_core.ops.gemm import GemmWarpPolicy, WaitProducts
from tile_core.plugins.host import installed_plugins
from tile_core.testing import build_ir as ir
from tile_core.testing.oracle import numbers, poison, runner

HALF = Product("sm_90a", 64, 64, 64)
ALONG_K = replace(HALF, transposes=(False, True))
BYTES = replace(ALONG_K, factor="int8", total="int32")
EIGHT = replace(ALONG_K, factor="float8_e4m3fn")

TYPES = [
    HALF,
    replace(HALF, factor="bfloat16"),
    replace(HALF, total="float16", k=32),
    replace(ALONG_K, factor="tfloat32"),
    BYTES,
    replace(BYTES, factor="uint8"),
    replace(BYTES, factor="uint8", second="int8"),
    replace(BYTES, second="uint8", n=24),
    EIGHT,
    replace(EIGHT, second="float8_e5m2"),
    replace(EIGHT, factor="float8_e5m2", second="float8_e4m3fn"),
    replace(EIGHT, factor="float8_e5m2"),
]
SHAPES = [
    replace(HALF, n=8, k=16),
    replace(HALF, n=24),  # boxes of 16 bytes
    replace(HALF, n=80, k=48),  # of 32
    replace(HALF, n=96, k=32),  # of 64
    replace(HALF, n=320),  # several instructions
    replace(ALONG_K, n=264),
    replace(HALF, m=192),
    replace(ALONG_K, m=128, k=192),
]
GRIDS = [
    replace(HALF, m=128, threads=256),
    replace(HALF, m=256, threads=256),
    replace(HALF, n=256, threads=256),
    replace(ALONG_K, threads=256),
    replace(HALF, m=128, n=128, threads=256, policy=GemmWarpPolicy.FullCol),
    replace(HALF, m=128, n=128, threads=512),
    replace(HALF, m=192, n=48, k=32, threads=384),
]


def by_warpgroups(product: Product) -> None:
    """Refuse a product that is computed otherwise, and check it."""
    assert "wgmma" in product.printed().text
    check(product)


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("product", TYPES, ids=str)
def test_types(product: Product) -> None:
    by_warpgroups(product)
    by_warpgroups(replace(product, scopes=("fragment", "shared"), clear=True))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("scopes", [("shared", "shared"), ("fragment", "shared")])
@pytest.mark.parametrize("letters", ["NN", "NT", "TN", "TT"])
def test_both_majors(letters: str, scopes: tuple[str, str]) -> None:
    factor = "bfloat16" if letters == "TT" else "float16"
    turned = (letters[0] == "T", letters[1] == "T")
    by_warpgroups(replace(HALF, m=128, n=72, k=48, factor=factor, transposes=turned, scopes=scopes))


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("product", SHAPES, ids=str)
def test_shapes(product: Product) -> None:
    by_warpgroups(replace(product, clear=product.m > 64 or product.n > 96))


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("product", GRIDS, ids=str)
def test_grids(product: Product) -> None:
    by_warpgroups(product)
    by_warpgroups(replace(product, scopes=("fragment", "shared")))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("threads", [128, 256])
@pytest.mark.parametrize("product", [HALF, BYTES, EIGHT], ids=str)
def test_pipelines(product: Product, threads: int) -> None:
    by_warpgroups(replace(product, m=128, k=256, steps=4, threads=threads))


def run(kernel: Kernel, *arguments: Any) -> None:
    assert "wgmma" in print_program(lowered(kernel, "sm_90a")).text
    runner("cuda:sm_90a@sim", installed_plugins())(kernel, list(arguments))


def test_parts_of_tiles_and_of_fragments() -> None:
    """Rows and columns in the middle of tiles; sums that are one of several."""
    a, b = ir.tensor("A", (128, 128), "float16"), ir.tensor("B", (64, 256), "float16")
    c = ir.tensor("C", (2, 64, 128))
    sa, sb = ir.shared("sa", (128, 128), "float16"), ir.shared("sb", (64, 256), "float16")
    acc = ir.fragment("acc", (2, 64, 128))
    whole = (64, 128)
    body = [
        *(ir.alloc(sa, sb, acc), ir.copy(a, sa), ir.copy(b, sb), ir.fill(acc, 0)),
        *(
            ir.gemm(
                ir.region(sa, (64 * v, 64 - 32 * v), (64, 32)),
                ir.region(sb, (32 * v, 128 - 64 * v), (32, 128)),
                ir.region(acc, (v, 0, 0), (1, *whole)),
            )
            for v in (0, 1)
        ),
        ir.copy(acc, c),
    ]
    rng = np.random.default_rng(3)
    x, y = numbers(rng, (128, 128), "float16"), numbers(rng, (64, 256), "float16")
    z = poison((2, 64, 128), "float32")
    run(ir.kernel([a, b, c], 1, lambda bx: body, threads=128), x, y, z)
    left, right = x.astype(np.float32), y.astype(np.float32)
    np.testing.assert_array_equal(z[0], left[:64, 64:96] @ right[:32, 128:])
    np.testing.assert_array_equal(z[1], left[64:, 32:64] @ right[32:, 64:192])


def chained(threads: int, policy: GemmWarpPolicy) -> Kernel:
    """Return ``half(A @ B.T) @ D``: the sums of one product are a factor of the next."""
    shapes = {"A": (128, 32), "B": (64, 32), "D": (64, 64)}
    tensors = [ir.tensor(name, shape, "float16") for name, shape in shapes.items()]
    tiles = [ir.shared(f"{name}_s", shape, "float16") for name, shape in shapes.items()]
    first, second = ir.fragment("first", (128, 64)), ir.fragment("second", (128, 64))
    rounded, c = ir.fragment("rounded", (128, 64), "float16"), ir.tensor("C", (128, 64))
    body = [
        *(ir.alloc(*tiles, first, rounded, second), *map(ir.copy, tensors, tiles)),
        ir.gemm(tiles[0], tiles[1], first, transpose_b=True, clear=True, policy=policy),
        *(ir.copy(first, rounded), ir.gemm(rounded, tiles[2], second, clear=True)),
        ir.copy(second, c),
    ]
    return ir.kernel([*tensors, c], 1, lambda bx: body, threads=threads)


@pytest.mark.parametrize(
    ("threads", "policy"),
    [
        (128, GemmWarpPolicy.Square),
        (256, GemmWarpPolicy.Square),
        (256, GemmWarpPolicy.FullCol),  # sums are spread otherwise than the next needs them
    ],
)
def test_sums_are_the_factor_of_the_next_product(threads: int, policy: GemmWarpPolicy) -> None:
    rng = np.random.default_rng(4)
    a, b, d = (rng.integers(-1, 2, s).astype(np.float16) for s in ((128, 32), (64, 32), (64, 64)))
    c = poison((128, 64), "float32")
    run(chained(threads, policy), a, b, d, c)
    x, y, z = (v.astype(np.float32) for v in (a, b, d))
    np.testing.assert_array_equal(c, x @ y.T @ z)


def test_sums_are_dropped_where_a_condition_holds() -> None:
    a, b = ir.tensor("A", (64, 64), "float16"), ir.tensor("B", (64, 64), "float16")
    c, acc = ir.tensor("C", (64, 64)), ir.fragment("acc", (64, 64))
    sa, sb = ir.shared("sa", (64, 64), "float16"), ir.shared("sb", (64, 64), "float16")
    body = [
        *(ir.alloc(sa, sb, acc), ir.copy(a, sa), ir.copy(b, sb), ir.fill(acc, 7)),
        ir.serial(3, lambda k: [ir.gemm(sa, sb, acc, clear=binary(BinaryOp.EQ, k, 1))]),
        ir.copy(acc, c),
    ]
    rng = np.random.default_rng(5)
    x, y = numbers(rng, (64, 64), "float16"), numbers(rng, (64, 64), "float16")
    z = poison((64, 64), "float32")
    run(ir.kernel([a, b, c], 1, lambda bx: body, threads=128), x, y, z)
    np.testing.assert_array_equal(z, 2 * (x.astype(np.float32) @ y.astype(np.float32)))


def under_way(pending: int) -> Kernel:
    """Return two products that are left in flight, and awaited one after the other."""
    a, b = ir.tensor("A", (64, 64), "float16"), ir.tensor("B", (64, 64), "float16")
    c, d = ir.tensor("C", (64, 64)), ir.tensor("D", (64, 64))
    sa, sb = ir.shared("sa", (64, 64), "float16"), ir.shared("sb", (64, 64), "float16")
    one, two = ir.fragment("one", (64, 64)), ir.fragment("two", (64, 64))
    left = {"wg_wait": -1}
    body = [
        *(ir.alloc(sa, sb, one, two), ir.copy(a, sa), ir.copy(b, sb)),
        replace(ir.gemm(sa, sb, one, clear=True), **left),
        replace(ir.gemm(sa, sb, two, transpose_b=True, clear=True), **left),
        *(WaitProducts(pending), ir.copy(one, c), WaitProducts(0), ir.copy(two, d)),
    ]
    return ir.kernel([a, b, c, d], 1, lambda bx: body, threads=128)


def test_products_end_in_their_order() -> None:
    rng = np.random.default_rng(6)
    x, y = numbers(rng, (64, 64), "float16"), numbers(rng, (64, 64), "float16")
    c, d = poison((64, 64), "float32"), poison((64, 64), "float32")
    run(under_way(1), x, y, c, d)
    left, right = x.astype(np.float32), y.astype(np.float32)
    np.testing.assert_array_equal(c, left @ right)
    np.testing.assert_array_equal(d, left @ right.T)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("total", ["float32", "float16"])
@pytest.mark.parametrize(
    ("arch", "m", "n"), [("sm_90a", 64, 40), ("sm_90a", 128, 8), ("sm_90", 32, 64)]
)
def test_sums_are_stored_as_matrices(arch: str, m: int, n: int, total: str) -> None:
    a, b = ir.tensor("A", (m, 32), "float16"), ir.tensor("B", (32, n), "float16")
    c, rows = ir.tensor("C", (m, n), "float16"), ir.shared("rows", (m, n), "float16")
    sa, sb = ir.shared("sa", (m, 32), "float16"), ir.shared("sb", (32, n), "float16")
    acc = ir.fragment("acc", (m, n), total)
    body = [
        *(ir.alloc(sa, sb, acc, rows), ir.copy(a, sa), ir.copy(b, sb)),
        *(ir.gemm(sa, sb, acc, clear=True), ir.copy(acc, rows), ir.copy(rows, c)),
    ]
    kernel = ir.kernel([a, b, c], 1, lambda bx: body, threads=128)
    assert "stmatrix" in print_program(lowered(kernel, arch)).text
    rng = np.random.default_rng(7)
    x, y = numbers(rng, (m, 32), "float16"), numbers(rng, (32, n), "float16")
    z = poison((m, n), "float16")
    runner(f"cuda:{arch}@sim", installed_plugins())(kernel, [x, y, z])
    np.testing.assert_array_equal(z, (x.astype(np.float32) @ y.astype(np.float32)).astype(z.dtype))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("first", "k"), [(16, 64), (48, 32), (64, 128), (16, 176), (112, 16), (32, 128)]
)
@pytest.mark.parametrize("along_k", [True, False])
def test_parts_of_tiles_that_begin_inside_of_a_box(first: int, k: int, along_k: bool) -> None:
    """64 columns are a box: steps of a part lie in several of them."""
    size, n = 192, 64
    shape = (n, size) if along_k else (size, n)
    a, b, c = (
        ir.tensor("A", (64, size), "float16"),
        ir.tensor("B", shape, "float16"),
        ir.tensor("C", (64, n)),
    )
    a_tile, b_tile = ir.shared("A_s", (64, size), "float16"), ir.shared("B_s", shape, "float16")
    sums = ir.fragment("sums", (64, n))
    starts = (0, first) if along_k else (first, 0)
    factors = (
        ir.region(a_tile, (0, first), (64, k)),
        ir.region(b_tile, starts, (n, k) if along_k else (k, n)),
    )
    body = [
        *(ir.alloc(a_tile, b_tile, sums), ir.copy(a, a_tile), ir.copy(b, b_tile)),
        ir.gemm(*factors, sums, transpose_b=along_k, clear=True),
        ir.copy(sums, c),
    ]
    kernel = ir.kernel([a, b, c], 1, lambda bx: body, threads=128)
    assert "wgmma_ss" in print_program(lowered(kernel, "sm_90a")).text
    rng = np.random.default_rng(first + k)
    left, right = (rng.integers(-3, 4, s).astype(np.float16) for s in ((64, size), shape))
    got = np.full((64, n), np.nan, np.float32)
    runner("cuda:sm_90a@sim", installed_plugins())(kernel, [left, right, got])
    part = right[:, first : first + k].T if along_k else right[first : first + k]
    expected = left[:, first : first + k].astype(np.float32) @ part.astype(np.float32)
    np.testing.assert_array_equal(got, expected)
