"""Products of tiles on the emulator, all checks on: instructions, types, layouts, warps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.products import Product, check, lowered
from tile_core.codegen import print_program
from tile_core.errors import TileWarning
from tile_core.layout import Fragment
from tile_core.ops.gemm import GemmWarpPolicy
from tile_core.plugins.host import installed_plugins
from tile_core.testing import build_ir as ir
from tile_core.testing.oracle import numbers, poison, runner
from tile_sim import checking, last_report

HALF = Product("sm_80", 64, 64, 32)
TRANSPOSES = [(a, b) for a in (False, True) for b in (False, True)]
BYTES = replace(HALF, k=64, factor="int8", total="int32")

# One product for each instruction of the table that tiles reach, in both orders of memory.
INSTRUCTIONS = [
    HALF,
    replace(HALF, total="float16"),
    replace(HALF, factor="bfloat16"),
    replace(HALF, k=24),  # m16n8k8
    replace(HALF, factor="bfloat16", k=8),
    replace(HALF, factor="tfloat32"),
    replace(HALF, factor="tfloat32", k=12),  # m16n8k4
    replace(HALF, factor="float64", total="float64", k=8),
    BYTES,
    replace(BYTES, k=16),
    replace(BYTES, factor="uint8", second="int8"),
    replace(BYTES, factor="int4"),
    replace(BYTES, factor="uint4", second="int8"),
    replace(BYTES, arch="sm_75"),
    replace(HALF, arch="sm_75"),
    replace(HALF, arch="sm_75", total="float16"),
    replace(HALF, arch="sm_70"),
    replace(HALF, arch="sm_70", total="float16"),
    replace(HALF, arch="sm_89", k=32, factor="float8_e4m3fn", second="float8_e5m2"),
    replace(HALF, factor="float8_e4m3fn"),  # widened to float16
    replace(HALF, arch="sm_90", factor="float4_e2m1fn"),
    replace(HALF, factor="float16", second="float8_e5m2"),
]


@pytest.mark.in_turn(7)
@pytest.mark.parametrize("product", INSTRUCTIONS, ids=str)
def test_instructions(product: Product) -> None:
    check(product)
    check(replace(product, transposes=(True, False)))


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("scopes", ["fs", "sf", "ff"])
@pytest.mark.parametrize(
    ("arch", "letters"),
    [*((arch, x + y) for arch in ("sm_70", "sm_80") for x in "NT" for y in "NT"), ("sm_75", "TN")],
)
def test_factors_in_registers(arch: str, letters: str, scopes: str) -> None:
    names = {"f": "fragment", "s": "shared"}
    first, second = (names[s] for s in scopes)
    turned = (letters[0] == "T", letters[1] == "T")
    check(replace(HALF, arch=arch, scopes=(first, second), transposes=turned))


def test_factors_in_registers_are_converted_there() -> None:
    product = replace(HALF, k=64, factor="float8_e4m3fn", scopes=("fragment", "shared"))
    assert "tile::mma_m16n8k16(C_local" in product.printed().text
    check(product)
    check(replace(product, arch="sm_70", transposes=(False, True)))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("m", "n", "k", "threads"),
    [
        (48, 80, 16, 96),  # three warps
        (192, 48, 16, 192),
        (16, 8, 16, 32),
        (64, 192, 48, 128),
        (32, 576, 16, 128),
        (80, 80, 40, 160),
        (16, 16, 16, 128),  # more warps than atoms: ordinary arithmetic
        (24, 20, 18, 128),
        (13, 17, 11, 64),
        (1, 1, 1, 32),
        (5, 64, 3, 100),  # threads that are no whole warps
    ],
)
def test_shapes_and_threads(m: int, n: int, k: int, threads: int) -> None:
    product = Product("sm_80", m, n, k, threads=threads)
    check(product)
    check(replace(product, transposes=(True, True), clear=True))


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(
    "product",
    [
        Product("sm_70", 32, 48, 16, "int8", "int32"),  # dp4a
        Product("sm_70", 32, 48, 16, "uint8", "int32", transposes=(False, True)),
        Product("sm_70", 24, 20, 6, "int8", "int32", "uint8"),
        Product("sm_75", 64, 64, 16, "float32", "float32"),
        Product("sm_80", 16, 24, 8, "int16", "int64", transposes=(False, True)),
        Product("sm_80", 16, 24, 8, "float16", "float64"),
        Product("sm_70", 16, 24, 8, "bfloat16", "float32", transposes=(True, True)),
        Product("sm_70", 16, 24, 8, "int4", "int32", transposes=(False, True)),
        Product("sm_80", 16, 16, 16, "float32", "float32", scopes=("fragment", "fragment")),
        Product("sm_80", 16, 16, 16, "float32", "float32", scopes=("fragment", "shared")),
    ],
    ids=str,
)
def test_ordinary_arithmetic(product: Product) -> None:
    check(product)


def test_a_number_of_warps_that_costs_the_matrix_instructions_is_told() -> None:
    with pytest.warns(TileWarning, match=r"4 warps cannot .* 3 x 6 .*use threads=64 or 96"):
        check(Product("sm_80", 48, 48, 16))


@pytest.mark.parametrize("arch", ["sm_75", "sm_80"])
def test_pipelined_rounds_read_their_own_version(arch: str) -> None:
    check(Product(arch, 64, 64, 160, steps=5, transposes=(False, True)))
    check(Product(arch, 64, 64, 160, steps=5, scopes=("fragment", "shared")))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    "product",
    [
        *(Product("sm_80", 128, 128, k, transposes=t) for k in (32, 64) for t in TRANSPOSES),
        Product("sm_80", 64, 64, 32, "tfloat32", transposes=(True, False)),
        Product("sm_80", 64, 64, 16, "float64", "float64", transposes=(False, True)),
        Product("sm_80", 64, 64, 8, "float64", "float64", transposes=(True, False)),
        Product("sm_80", 64, 64, 64, "int8", "int32", transposes=(True, False)),
        Product("sm_70", 64, 64, 32, transposes=(False, True)),
        Product("sm_75", 64, 64, 16, "float32", transposes=(False, True)),
    ],
    ids=str,
)
def test_no_banks_collide_in_the_factors(product: Product) -> None:
    with checking("all,counters"):
        check(product)
    report = last_report()
    assert report is not None
    assert report.conflicts == 0, str(report)


@pytest.mark.parametrize("policy", GemmWarpPolicy)
def test_policies_share_differently_and_mean_the_same(policy: GemmWarpPolicy) -> None:
    product = Product("sm_80", 64, 64, 32, policy=policy, clear=True)
    check(product)
    grids = {"Square": (32, 32), "FullRow": (16, 64), "FullCol": (64, 16)}
    (c,) = (t for t in product.program().layouts.report().tiles if t.buffer.name == "C_local")
    assert isinstance(c.layout, Fragment)
    of_first_warp = np.argwhere(c.layout.thread_table()[..., 0] < 32)
    assert tuple(of_first_warp.max(axis=0) + 1) == grids[policy.name]


@pytest.mark.parametrize("factor", ["float16", "float32"])
def test_sums_are_dropped_where_a_run_time_condition_holds(factor: str) -> None:
    a, b = ir.tensor("A", (32, 96), factor), ir.tensor("B", (96, 32), factor)
    c, acc = ir.tensor("C", (32, 32)), ir.fragment("acc", (32, 32))
    sa, sb = ir.shared("sa", (32, 16), factor), ir.shared("sb", (16, 32), factor)

    def round_of(ko: Any) -> list[Any]:
        return [
            ir.copy(ir.region(a, (0, ko * 16), (32, 16)), sa),
            ir.copy(ir.region(b, (ko * 16, 0), (16, 32)), sb),
            ir.gemm(sa, sb, acc, clear=ko % 3 == 0),
        ]

    body = [ir.alloc(sa, sb, acc), ir.pipelined(6, round_of), ir.copy(acc, c)]
    kernel = ir.kernel([a, b, c], 1, lambda bx: body, threads=64)
    rng = np.random.default_rng(8)
    x, y = numbers(rng, (32, 96), factor), numbers(rng, (96, 32), factor)
    z = poison((32, 32), "float32")
    runner("cuda:sm_80@sim", installed_plugins())(kernel, [x, y, z])
    np.testing.assert_array_equal(z, x[:, 48:].astype(np.float32) @ y[48:].astype(np.float32))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("schedule", ["reverse", "random:1", "random:2"])
@pytest.mark.parametrize(
    "product",
    [
        Product("sm_80", 64, 64, 160, steps=5, transposes=(False, True)),
        Product("sm_80", 16, 16, 32, "float32", steps=2, scopes=("fragment", "fragment")),
        Product("sm_80", 64, 64, 64, scopes=("fragment", "shared"), steps=2),
    ],
    ids=str,
)
def test_any_order_of_threads_gives_the_same(product: Product, schedule: str) -> None:
    with checking("all", schedule=schedule, async_mode="random"):
        check(product)


def test_a_tile_that_is_both_factors_is_moved_for_the_second() -> None:
    a, c = ir.tensor("A", (64, 64), "float16"), ir.tensor("C", (64, 64), "float32")
    tile, acc = ir.fragment("A_local", (64, 64), "float16"), ir.fragment("acc", (64, 64))
    body = [ir.alloc(tile, acc), ir.fill(acc, 0), ir.copy(a, tile), ir.gemm(tile, tile, acc),
            ir.copy(acc, c)]  # fmt: skip
    kernel = ir.kernel([a, c], 1, lambda bx: body, threads=128)
    x, y = numbers(np.random.default_rng(3), (64, 64), "float16"), poison((64, 64), "float32")
    runner("cuda:sm_80@sim", installed_plugins())(kernel, [x, y])
    np.testing.assert_array_equal(y, x.astype(np.float32) @ x.astype(np.float32))


def test_parts_of_tiles_and_leading_indices() -> None:
    a, b = ir.tensor("A", (64, 64), "float16"), ir.tensor("B", (64, 32), "float16")
    c = ir.tensor("C", (64, 32))
    sa, sb = ir.shared("sa", (2, 64, 64), "float16"), ir.shared("sb", (2, 64, 32), "float16")
    held, acc = ir.fragment("held", (64, 64), "float16"), ir.fragment("acc", (64, 32))

    def body(bx: object) -> list[object]:
        return [
            ir.alloc(sa, sb, held, acc), ir.fill(acc, 0), ir.fill(sa, 9), ir.fill(sb, 9),
            ir.copy(a, ir.region(sa, (1, 0, 0), (1, 64, 64))),
            ir.copy(b, ir.region(sb, (1, 0, 0), (1, 64, 32))),
            ir.copy(ir.region(sa, (1, 0, 0), (1, 64, 64)), held),
            # Two k-steps from shared memory at a place known at run time, two from registers.
            ir.serial(2, lambda s: ir.gemm(
                ir.region(sa, (1, 0, s * 16), (1, 64, 16)),
                ir.region(sb, (1, s * 16, 0), (1, 16, 32)), acc)),
            ir.gemm(ir.region(held, (0, 32), (64, 32)),
                    ir.region(sb, (1, 32, 0), (1, 32, 32)), acc),
            ir.copy(acc, c),
        ]  # fmt: skip

    kernel = ir.kernel([a, b, c], 1, body, threads=128)
    rng = np.random.default_rng(5)
    x, y = numbers(rng, (64, 64), "float16"), numbers(rng, (64, 32), "float16")
    z = poison((64, 32), "float32")
    runner("cuda:sm_80@sim", installed_plugins())(kernel, [x, y, z])
    np.testing.assert_array_equal(z, x.astype(np.float32) @ y.astype(np.float32))


def test_parts_of_c_and_c_in_shared_memory() -> None:
    a, b = ir.tensor("A", (32, 16), "float16"), ir.tensor("B", (16, 32), "float16")
    c = ir.tensor("C", (32, 32))
    sa, sb = ir.shared("sa", (32, 16), "float16"), ir.shared("sb", (16, 32), "float16")
    sums, acc = ir.shared("sums", (32, 32)), ir.fragment("acc", (32, 32))
    upper, lower = ((0, 0), (16, 32)), ((16, 0), (16, 32))

    def body(bx: object) -> list[object]:
        return [
            ir.alloc(sa, sb, sums, acc), ir.copy(a, sa), ir.copy(b, sb), ir.fill(acc, 1),
            ir.gemm(ir.region(sa, (16, 0), (16, 16)), sb, ir.region(acc, *lower)),
            ir.copy(acc, sums),
            ir.gemm(ir.region(sa, (0, 0), (16, 16)), sb, ir.region(sums, *upper), clear=True),
            ir.copy(sums, c),
        ]  # fmt: skip

    rng = np.random.default_rng(6)
    x, y = numbers(rng, (32, 16), "float16"), numbers(rng, (16, 32), "float16")
    z = poison((32, 32), "float32")
    kernel = ir.kernel([a, b, c], 1, body, threads=64)
    runner("cuda:sm_80@sim", installed_plugins())(kernel, [x, y, z])
    product = x.astype(np.float32) @ y.astype(np.float32)
    np.testing.assert_array_equal(z, product + np.repeat([0.0, 1.0], 16)[:, None])


def test_attention_keeps_scores_in_registers() -> None:
    q, k = ir.tensor("Q", (64, 32), "float16"), ir.tensor("K", (64, 32), "float16")
    v, o = ir.tensor("V", (64, 64), "float16"), ir.tensor("O", (64, 64))
    sq, sk = ir.shared("sq", (64, 32), "float16"), ir.shared("sk", (64, 32), "float16")
    sv, p = ir.shared("sv", (64, 64), "float16"), ir.fragment("p", (64, 64), "float16")
    s, acc = ir.fragment("s", (64, 64)), ir.fragment("acc", (64, 64))
    rows = GemmWarpPolicy.FullRow

    def body(bx: object) -> list[object]:
        return [
            ir.alloc(sq, sk, sv, p, s, acc), ir.copy(q, sq), ir.copy(k, sk), ir.copy(v, sv),
            ir.gemm(sq, sk, s, transpose_b=True, policy=rows, clear=True),
            ir.copy(s, p),
            ir.gemm(p, sv, acc, policy=rows, clear=True),
            ir.copy(acc, o),
        ]  # fmt: skip

    kernel = ir.kernel([q, k, v, o], 1, body, threads=128)
    text = print_program(lowered(kernel, "sm_80")).text
    assert text.count("sync();") == 1  # the copies have arrived; scores stay where they are
    rng = np.random.default_rng(7)
    x, y = (numbers(rng, (64, 32), "float16", -1, 2) for _ in range(2))
    w, z = numbers(rng, (64, 64), "float16"), poison((64, 64), "float32")
    runner("cuda:sm_80@sim", installed_plugins())(kernel, [x, y, w, z])
    wide = [t.astype(np.float32) for t in (x, y, w)]
    np.testing.assert_array_equal(z, wide[0] @ wide[1].T @ wide[2])
