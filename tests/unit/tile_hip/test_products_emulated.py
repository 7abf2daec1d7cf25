"""Products of tiles on emulated AMD GPUs, all checks on: instructions, types, layouts, waves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support.products import Product, check, emulated, lowered
from tile_core.codegen import print_program
from tile_core.errors import TileWarning
from tile_core.layout import Fragment
from tile_core.ops.gemm import GemmWarpPolicy
from tile_core.plugins.host import installed_plugins
from tile_core.testing import build_ir as ir
from tile_core.testing.oracle import numbers, poison, runner
from tile_sim import checking, last_report

HALF = Product("gfx942", 64, 64, 32)
BYTES = replace(HALF, k=64, factor="int8", total="int32")
TRANSPOSES = [(a, b) for a in (False, True) for b in (False, True)]

# One product for each kind of instruction of the table, and for types that are converted.
INSTRUCTIONS = [
    HALF,
    replace(HALF, k=24),  # no two instructions at a time
    replace(HALF, arch="gfx90a"),
    replace(HALF, arch="gfx950"),
    replace(HALF, arch="gfx950", k=8),  # the narrower instruction
    replace(HALF, factor="bfloat16"),
    replace(HALF, arch="gfx90a", factor="bfloat16"),
    replace(HALF, factor="float32"),
    replace(HALF, factor="float32", k=6),
    replace(HALF, factor="tfloat32"),
    replace(HALF, arch="gfx90a", factor="tfloat32"),
    replace(HALF, factor="float64", total="float64"),
    replace(HALF, arch="gfx90a", factor="float64", total="float64", k=12),
    BYTES,
    replace(BYTES, arch="gfx90a"),
    replace(BYTES, arch="gfx950"),
    replace(BYTES, k=16),
    replace(BYTES, factor="int4"),
    replace(BYTES, factor="uint4", second="int8"),
    replace(BYTES, factor="float8_e4m3fnuz", second="float8_e5m2fnuz", total="float32"),
    replace(BYTES, arch="gfx950", factor="float8_e4m3fn", total="float32"),
    replace(HALF, factor="float8_e4m3fn"),  # becomes float16
    replace(HALF, arch="gfx90a", factor="float8_e4m3fnuz"),
    replace(HALF, factor="float4_e2m1fn", second="bfloat16"),
    replace(HALF, factor="float16", second="float32"),
    replace(HALF, total="float16"),  # summed in float32
    replace(HALF, factor="bfloat16", total="bfloat16", clear=True),
]


@pytest.mark.in_turn(12)
@pytest.mark.parametrize("product", INSTRUCTIONS, ids=str)
def test_instructions(product: Product) -> None:
    """Each factor as it is and turned, for the first product in all four ways."""
    for transposes in TRANSPOSES if product == HALF else TRANSPOSES[::3]:
        turned = replace(product, transposes=transposes)
        assert "tile::mfma_" in emulated(turned).text("source")
        check(turned)


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("scopes", ["fs", "sf", "ff"])
@pytest.mark.parametrize("letters", ["NN", "NT", "TN", "TT"])
@pytest.mark.parametrize("arch", ["gfx90a", "gfx950"])
def test_factors_in_registers(arch: str, letters: str, scopes: str) -> None:
    names = {"f": "fragment", "s": "shared"}
    first, second = (names[s] for s in scopes)
    turned = (letters[0] == "T", letters[1] == "T")
    check(replace(HALF, arch=arch, scopes=(first, second), transposes=turned))


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("factor", ["float32", "float64", "int8"])
def test_factors_of_other_types_in_registers(factor: str) -> None:
    total = "int32" if factor == "int8" else factor
    product = replace(HALF, factor=factor, total=total, k=64, scopes=("fragment", "shared"))
    assert "tile::mfma_" in product.printed().text
    check(product)
    check(replace(product, transposes=(False, True)))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("m", "n", "k", "threads", "matrix"),
    [
        (48, 80, 16, 192, True),  # three waves
        (16, 16, 16, 64, True),
        (96, 32, 40, 192, True),
        (32, 576, 16, 256, True),
        (16, 16, 16, 256, False),  # more waves than squares
        (64, 64, 32, 96, False),  # threads that are no whole waves
        (13, 17, 11, 64, False),
        (1, 1, 1, 32, False),
    ],
)
@pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")
def test_shapes_and_threads(m: int, n: int, k: int, threads: int, matrix: bool) -> None:
    product = Product("gfx942", m, n, k, threads=threads)
    assert ("tile::mfma_" in product.printed().text) is matrix
    check(product)
    check(replace(product, transposes=(True, True), clear=True))


def test_a_number_of_waves_that_costs_the_matrix_instructions_is_told() -> None:
    with pytest.warns(TileWarning, match=r"4 warps cannot .* 3 x 3 .*use threads=64 or 192"):
        check(Product("gfx942", 48, 48, 16, threads=256))


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
def test_pipelined_rounds_read_their_own_version(arch: str) -> None:
    check(Product(arch, 64, 64, 160, steps=5, transposes=(False, True)))
    check(Product(arch, 64, 64, 160, steps=5, scopes=("fragment", "shared")))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    "product",
    [
        *(Product("gfx942", 128, 128, k, transposes=t) for k in (32, 64) for t in TRANSPOSES),
        *(Product("gfx950", 128, 128, k, transposes=(False, True)) for k in (32, 64, 256)),
        *(replace(BYTES, arch=arch, transposes=(False, True)) for arch in ("gfx90a", "gfx942")),
        replace(BYTES, transposes=(True, False)),
        replace(BYTES, factor="float8_e4m3fn", total="float32", transposes=(False, True)),
        replace(HALF, factor="float32", transposes=(False, True)),
        replace(HALF, factor="float64", total="float64", transposes=(False, True)),
        replace(HALF, transposes=(False, True), scopes=("fragment", "shared")),
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
    product = Product("gfx942", 64, 64, 32, policy=policy, clear=True, threads=256)
    check(product)
    grids = {"Square": (32, 32), "FullRow": (16, 64), "FullCol": (64, 16)}
    (c,) = (t for t in product.program().layouts.report().tiles if t.buffer.name == "C_local")
    assert isinstance(c.layout, Fragment)
    of_first_wave = np.argwhere(c.layout.thread_table()[..., 0] < 64)
    assert tuple(of_first_wave.max(axis=0) + 1) == grids[policy.name]


@pytest.mark.parametrize("k_pack", [1, 2])
def test_a_kernel_says_how_many_instructions_share_a_read(k_pack: int) -> None:
    product = replace(BYTES, arch="gfx90a", transposes=(False, True), k_pack=k_pack)
    text = product.printed().text
    packs = {1: "mfma_32x32x8<4>", 2: "mfma_32x32x8<2>"}  # one leaves it to the compiler
    assert f"tile::{packs[k_pack]}(" in text
    check(product)


def test_factors_are_read_by_sixteen_bytes_and_sums_stored_so() -> None:
    product = Product("gfx942", 128, 128, 64, steps=2, transposes=(False, True), threads=256)
    text = print_program(product.program()).text
    assert "tile::load<8>(a_frag" in text
    assert "tile::load<8>(b_frag" in text
    assert "tile::mfma_32x32x8<2>(C_local" in text
    assert "tile::store<4>(C + " in text


@pytest.mark.parametrize("schedule", ["reverse", "random:1"])
def test_any_order_of_threads_gives_the_same(schedule: str) -> None:
    product = Product("gfx942", 64, 64, 160, steps=5, transposes=(False, True))
    with checking("all", schedule=schedule, async_mode="random"):
        check(product)
        check(replace(product, scopes=("fragment", "shared"), steps=1))


@pytest.mark.parametrize("first", [False, True])
def test_products_that_read_differently_share_their_sums(first: bool) -> None:
    """The second product spreads its sums as the first one does: nothing is moved."""
    a, b = ir.tensor("A", (64, 64), "float16"), ir.tensor("B", (64, 64), "float16")
    c, acc = ir.tensor("C", (64, 64)), ir.fragment("acc", (64, 64))
    sa, sb = ir.shared("sa", (64, 64), "float16"), ir.shared("sb", (64, 64), "float16")
    body = [
        ir.alloc(sa, sb, acc), ir.fill(acc, 0), ir.copy(a, sa), ir.copy(b, sb),
        ir.gemm(sa, sb, acc, transpose_a=first, transpose_b=first),
        ir.gemm(sa, sb, acc, transpose_b=not first, policy=GemmWarpPolicy.FullRow),
        ir.copy(acc, c),
    ]  # fmt: skip
    kernel = ir.kernel([a, b, c], 1, lambda bx: body, threads=256)
    text = print_program(lowered(kernel, "gfx942")).text
    assert text.count("tile::mfma_") >= 2
    assert text.count("tile::sync()") == 1
    rng = np.random.default_rng(5)
    x, y = numbers(rng, (64, 64), "float16"), numbers(rng, (64, 64), "float16")
    z = poison((64, 64), "float32")
    runner("hip:gfx942@sim", installed_plugins())(kernel, [x, y, z])
    p, q = x.astype(np.float32), y.astype(np.float32)
    one = p.T @ q.T if first else p @ q
    np.testing.assert_array_equal(z, one + p @ (q if first else q.T))


def test_neighbouring_columns_are_read_and_stored_together() -> None:
    text = Product("gfx942", 128, 128, 32, threads=256).printed().text
    assert "tile::load<8>(a_frag" in text  # along K
    assert "tile::load<2>(b_frag" in text  # across: two columns, of two products
    assert "tile::mfma_32x32x8<2, 2, 1, 2>(C_local" in text
    narrow = Product("gfx942", 128, 128, 32, total="float16", threads=256).printed().text
    assert "tile::store<8>(C" in narrow


@pytest.mark.parametrize("total", ["float16", "float32"])
def test_rows_on_their_way_to_tensors_collide_nowhere(total: str) -> None:
    for transposes in TRANSPOSES[:2]:
        product = Product("gfx942", 128, 128, 32, total=total, threads=256, transposes=transposes)
        with checking("all,counters"):
            check(product)
        report = last_report()
        assert report is not None
        assert report.conflicts == 0, str(report)


def test_a_step_is_read_while_the_one_before_is_multiplied() -> None:
    text = Product("gfx942", 128, 128, 64, threads=256, transposes=(False, True)).printed().text
    first, *between, last = text.split("tile::keep_order();")
    assert first.count("tile::load<8>(b_frag") == 2
    assert "tile::mfma_" not in first
    assert between  # the fourth step is read while the third is multiplied
    for part in between:
        assert part.index("tile::mfma_") < part.index("tile::load<8>(b_frag")
    assert "tile::load<8>(b_frag" not in last
    assert "for (int kk" not in text


def test_bytes_without_sign_are_multiplied_four_at_a_time() -> None:
    product = replace(BYTES, factor="uint8", transposes=(False, True))
    assert "tile::dp4a(" in product.printed().text
    check(product)


def test_reads_across_fill_registers() -> None:
    """Four bytes side by side: of 16 rows each, where 32 rows leave a wave only two of them."""
    text = replace(BYTES, m=128, n=128, threads=256).printed().text
    assert "tile::load<4>(b_frag" in text
    assert "tile::mfma_16x16x32<2, 4, 1, 4>(C_local" in text


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("scopes", ["fs", "sf"])
@pytest.mark.parametrize(
    ("factor", "second", "total"),
    [
        ("float8_e4m3fn", "", "float32"),
        ("uint4", "int8", "int32"),
        ("float16", "float32", "float32"),
    ],
)
def test_factors_in_registers_are_converted_there(
    factor: str, second: str, total: str, scopes: str
) -> None:
    first, last = ("fragment" if s == "f" else "shared" for s in scopes)
    product = replace(BYTES, factor=factor, second=second, total=total, scopes=(first, last))
    assert "tile::mfma_" in product.printed().text
    check(product)
