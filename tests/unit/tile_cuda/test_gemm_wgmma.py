"""Products of warpgroups: when they are chosen, what they demand and which text they become."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tile_api as tile
from support.products import Product, lowered
from support.remarked import remarked
from support.specialised import product as in_rounds
from tile_core.codegen import print_program
from tile_core.compilation.options import BuildOptions
from tile_core.driver import lower
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.node import substitute, walk
from tile_core.ir.stmt import AnnotateLayout, Kernel, Seq
from tile_core.layout import Fragment, Layout, boxed_operand, row_major
from tile_core.ops.gemm import Gemm, GemmWarpPolicy, WaitProducts
from tile_core.passes.specialise_warps import UNASKED
from tile_core.plugins.host import installed_plugins
from tile_core.remarks import NotApplicable
from tile_core.simt.program import DeviceProgram
from tile_core.testing import build_ir as ir
from tile_cuda.atoms_wgmma import WgmmaInstructions
from tile_cuda.machine import machine
from tile_cuda.rules.wgmma_plan import refusal, warpgroup_plan

HALF = Product("sm_90a", 128, 128, 64)
BYTES = replace(HALF, factor="int8", total="int32", transposes=(False, True))
HOPPER = machine("sm_90a")


def gemm_of(product: Product) -> Gemm:
    (op,) = (n for n in walk(product.kernel()) if isinstance(n, Gemm))
    return op


def places(program: DeviceProgram) -> dict[str, Layout | Fragment]:
    return {tile.buffer.name: tile.layout for tile in program.layouts.report().tiles}


def calls(text: str) -> list[str]:
    """Return the names of the calls that concern products, in order, with template arguments."""
    return re.findall(r"tile::((?:wgmma|fence|mma)_\w+(?:<[^>]*>)?)\(", text)


@pytest.mark.parametrize(
    ("product", "why"),
    [
        (HALF, None),
        (BYTES, None),
        (replace(HALF, arch="sm_90"), "sm_90 has no warpgroup MMA of float16 by float16"),
        (replace(HALF, m=96), "M is 96, no multiple of 64, the rows of a warpgroup MMA"),
        (replace(HALF, n=100), "N is 100, no multiple of 8"),
        (replace(BYTES, k=48), "K is 48, no multiple of 32, one step of int8"),
        (
            replace(HALF, factor="float32"),
            "sm_90a has no warpgroup MMA of float32 by float32 into float32",
        ),
        (
            replace(HALF, scopes=("shared", "fragment")),
            "B, 'B_local', is not in shared memory, where warpgroups read it",
        ),
        (
            replace(BYTES, transposes=(False, False)),
            "rows of B, 'B_shared', are not along K, and warpgroup MMAs transpose only elements "
            "of 16 bits,"
            " not int8",
        ),
        (
            replace(BYTES, transposes=(True, True)),
            "rows of A, 'A_shared', are not along K, and warpgroup MMAs transpose only elements "
            "of 16 bits,"
            " not int8",
        ),
        (replace(BYTES, transposes=(True, True), scopes=("fragment", "shared")), None),
    ],
)
def test_what_is_in_the_way(product: Product, why: str | None) -> None:
    found = refusal(gemm_of(product), machine(product.arch))
    assert (found or "").startswith(why or "")
    assert (found is None) == (why is None)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (
            lambda a, b, c: (ir.region(a, [0, 0], [64, 64]), b, ir.region(c, [0, 0], [64, 64])),
            "C is a part of 'C' that is no columns in multiples of 8",
        ),
        (
            lambda a, b, c: (a, ir.region(b, [0, 0], [64, 32]), ir.region(c, [0, 4], [128, 32])),
            "C is a part of 'C' that is no columns in multiples of 8",
        ),
        (lambda a, b, c: (a, b, ir.shared("C_shared", (128, 64))), "C, 'C_shared', is no fragment"),
    ],
)
def test_sums_must_be_columns_of_a_fragment(changed: Callable[..., Any], why: str) -> None:
    a, b = ir.shared("A", (128, 64), "float16"), ir.shared("B", (64, 64), "float16")
    op = ir.gemm(*changed(a, b, ir.fragment("C", (128, 64))))
    assert refusal(op, HOPPER) == why


def test_a_factor_whose_place_varies_by_whole_parts_is_no_reason() -> None:
    a, b = ir.shared("A", (256, 64), "float16"), ir.shared("B", (64, 64), "float16")
    row = ir.symbol("row")

    def planned(start: Any) -> Any:
        part = ir.region(a, [start, 0], [128, 64])
        op = ir.gemm(part, b, ir.fragment("C", (128, 64)))
        assert refusal(op, HOPPER) is None
        return warpgroup_plan(op, HOPPER, 128, lambda b: None)

    planned(row * 8)
    why = "a part of 'A' is out of place: it begins at row 4, which is no multiple of 8"
    with pytest.raises(NotApplicable, match=f"^{why}$"):
        planned(row * 4)


@pytest.mark.parametrize(
    ("product", "grid", "n"),
    [
        (HALF, (1, 1), 128),
        (replace(HALF, threads=256), (2, 1), 128),
        (replace(HALF, threads=256, policy=GemmWarpPolicy.FullCol), (1, 2), 64),
        (replace(HALF, threads=256, m=64, n=256), (1, 2), 128),
        (replace(HALF, threads=512, n=256), (2, 2), 128),
        (replace(HALF, n=512), (1, 1), 256),
        (replace(HALF, n=320), (1, 1), 64),  # pieces begin where boxes of 64 columns do
        (replace(HALF, n=320, transposes=(False, True)), (1, 1), 160),
        (replace(HALF, m=192, threads=384), (3, 1), 128),
        (replace(BYTES, n=72), (1, 1), 24),
    ],
)
def test_the_grid_of_warpgroups(product: Product, grid: tuple[int, int], n: int) -> None:
    plan = warpgroup_plan(gemm_of(product), HOPPER, product.threads, lambda b: None)
    assert (plan.tiling.m_warps, plan.tiling.n_warps) == grid
    assert plan.tiling.atom.n == n
    assert plan.tiling.rows * 64 * grid[0] == product.m
    assert plan.tiling.columns * n * grid[1] == product.n


@pytest.mark.parametrize(("block", "n"), [(None, 256), (384, 256), (416, 128), (512, 128)])
def test_instructions_fit_into_a_threads_part_of_the_registers(block: int | None, n: int) -> None:
    """Producers of the same block have as many registers as those who multiply, at its start."""
    product = replace(HALF, m=192, n=256, threads=384)
    plan = warpgroup_plan(gemm_of(product), HOPPER, 384, lambda b: None, block)
    assert (plan.tiling.m_warps, plan.tiling.atom.n, plan.tiling.columns) == (3, n, 256 // n)


@pytest.mark.parametrize(
    ("product", "layout", "why"),
    [
        (replace(HALF, threads=96), None, "96 threads are no whole warpgroups of 128"),
        (
            replace(HALF, threads=384),
            None,
            "3 warpgroups cannot share 128 x 128 accumulators: each would need the same number of "
            "blocks of 64 rows, and columns in a multiple of 8",
        ),
        (
            replace(HALF, m=64, n=96, threads=256),
            None,
            "a part of 'B_shared' is out of place: it begins at column 48, inside of a box of 32",
        ),
        (
            HALF,
            row_major((128, 64)),
            "no descriptor describes 'A_shared': its 128 rows of 128 bytes are not stored in boxes",
        ),
    ],
)
def test_blocks_and_tiles_that_warpgroups_cannot_share(
    product: Product, layout: Layout | None, why: str
) -> None:
    op = gemm_of(product)
    with pytest.raises(NotApplicable, match=f"^{why}"):
        warpgroup_plan(op, HOPPER, product.threads, lambda b: layout if b is op.a.buffer else None)


def test_tiles_are_boxes_and_sums_those_of_the_instruction() -> None:
    found = places(replace(HALF, m=192, n=96).program())
    assert found["A_shared"].same_function(boxed_operand((192, 64), 16))
    assert found["B_shared"].same_function(boxed_operand((64, 96), 16))
    sums = WgmmaInstructions("float16", "float16", "float32").atom(96).c
    assert found["C_local"].same_function(sums.repeat((3, 1)))


def test_the_text_of_a_product() -> None:
    text = HALF.printed().text
    assert calls(text) == [
        *("fence_proxy_async", "fence_proxy_async"),  # behind what fills each factor
        "wgmma_pin<128>",
        "wgmma_fence",
        "wgmma_ss<128, 0, 1, 4>",
        "wgmma_operand<128, 16, 1024, 2>",
        "wgmma_operand<128, 8192, 1024, 128>",
        "wgmma_commit",
        "wgmma_wait<0>",
        "wgmma_pin<128>",
    ]
    assert "tile::wgmma_operand<128, 16, 1024, 2>(A_shared, i * 512)" in text
    assert "tile::wgmma_operand<128, 8192, 1024, 128>(B_shared, 0)" in text


def test_sums_that_are_dropped_are_set_by_the_first_step() -> None:
    text = replace(HALF, clear=True, m=64, k=384).printed().text
    moves = ("128, 16, 1024, 2, 4, 512", "128, 49152, 1024, 128")
    operands = [f"wgmma_operand<{move}>" for move in moves]
    assert calls(text)[2:9] == [
        *("wgmma_fence", "wgmma_ss_set<128, 0, 1, 8>", *operands),
        *("wgmma_ss<128, 0, 1, 8>", *operands),
    ]
    assert "for (int kk = 1; kk < 3; ++kk)" in text
    assert "C_local[" not in text.partition("wgmma_fence")[0]  # no zeros before


def test_a_factor_in_registers_is_pinned_and_passed_as_it_is() -> None:
    text = replace(HALF, scopes=("fragment", "shared"), m=64).printed().text
    assert "ldmatrix_x4" in text
    assert calls(text)[1:5] == [
        "wgmma_pin<64>",
        "wgmma_pin<32>",
        "wgmma_fence",
        "wgmma_rs<128, 1, 4>",
    ]
    assert "wgmma_rs<128, 1, 4>(C_local, A_local, " in text


def test_several_warpgroups_know_their_rows() -> None:
    text = replace(HALF, threads=256).printed().text
    assert "const int warpgroup = tile::shfl_idx(tx >> 7, 0, 32);" in text
    assert "const int A_shared_at = warpgroup * 4096;" in text


@pytest.mark.parametrize(
    "product",
    [
        replace(HALF, m=32),
        replace(HALF, threads=64),
        replace(HALF, scopes=("shared", "fragment")),
        replace(HALF, factor="float8_e4m3fn"),  # rows of B are not along K
    ],
    ids=str,
)
def test_others_are_left_to_warps(product: Product) -> None:
    text = product.printed().text
    assert "wgmma" not in text
    assert "tile::mma_" in text


def rewritten(product: Product, **changes: Any) -> Kernel:
    kernel = product.kernel()
    op = gemm_of_kernel(kernel)
    return substitute(kernel, {op: replace(op, **changes)})


def gemm_of_kernel(kernel: Kernel) -> Gemm:
    return next(n for n in walk(kernel) if isinstance(n, Gemm))


def test_a_tile_whose_layout_the_user_fixed_is_left_to_warps() -> None:
    kernel = HALF.kernel()
    op = gemm_of_kernel(kernel)
    annotated = Seq((AnnotateLayout(op.a.buffer, row_major((128, 64))), op))
    made, said = remarked(lowered, substitute(kernel, {op: annotated}), "sm_90a")
    assert "wgmma" not in print_program(made).text
    copies, note = said
    assert copies.message == f"no producer warps: {UNASKED}"
    assert note.message == (
        "this matrix product uses no warpgroup MMA: no descriptor describes 'A_shared': its 128 "
        "rows of "
        "128 bytes are not stored in boxes of whole rows, 128, 64, 32 or 16 bytes wide; "
        "'A_shared' is stored as T.annotate_layout demands"
    )


def test_products_left_under_way_are_awaited_by_name() -> None:
    kernel = HALF.kernel()
    op = gemm_of_kernel(kernel)
    left = Seq((replace(op, wg_wait=-1), WaitProducts(1), WaitProducts(0)))
    found = calls(print_program(lowered(substitute(kernel, {op: left}), "sm_90a")).text)
    assert found[-4:] == ["wgmma_commit", "wgmma_wait<1>", "wgmma_wait<0>", "wgmma_pin<128>"]


def waits_of(*body: Any) -> list[str]:
    """Return the waits of a loop of `body` and which sums may be read behind each.

    Items of the body are names of sums, for a product that is left in flight, and numbers, for
    a wait; the loop is followed by a wait for all.
    """
    sa, sb = ir.shared("sa", (64, 16), "float16"), ir.shared("sb", (16, 64), "float16")
    sums = {name: ir.fragment(name, (64, 64)) for name in ("S", "O")}

    def made(item: Any) -> Any:
        if isinstance(item, int):
            return WaitProducts(item)
        return replace(ir.gemm(sa, sb, sums[item]), wg_wait=-1)

    whole = [
        *(ir.alloc(sa, sb, *sums.values()), *(ir.fill(x, 0) for x in (sa, sb, *sums.values()))),
        *(ir.serial(ir.symbol("n"), lambda k: [made(item) for item in body]), WaitProducts(0)),
    ]
    kernel = ir.kernel([], 1, lambda bx: whole, threads=128)
    text = print_program(lowered(kernel, "sm_90a")).text
    tail = text[text.index("TILE_NO_UNROLL") :]
    found = re.findall(
        r"wgmma_(wait<\d>)|(wgmma_commit)|wgmma_pin<32>\((\w)\);\n(?! *tile::wgmma_f)", tail
    )
    return [a or b.removeprefix("wgmma_") or c for a, b, c in found]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (("S", 0), ["commit", "wait<0>", "S", "wait<0>", "S"]),
        (("S", 1), ["commit", "wait<1>", "wait<0>", "S"]),
        (("S", "O", 1), ["commit", "commit", "wait<1>", "S", "wait<0>", "O", "S"]),
        (
            ("S", "O", 1, 0),
            ["commit", "commit", "wait<1>", "S", "wait<0>", "O", "S", "wait<0>", "O", "S"],
        ),
        ((0, "S"), ["wait<0>", "S", "commit", "wait<0>", "S"]),
        (("O", 1, "S"), ["commit", "wait<1>", "S", "commit", "wait<0>", "S", "O"]),
    ],
)
def test_sums_may_be_read_behind_the_wait_that_ends_them(
    body: tuple[Any, ...], found: list[str]
) -> None:
    assert waits_of(*body) == found


def test_waits_on_other_machines_are_nothing() -> None:
    product = replace(HALF, arch="sm_80")
    kernel = product.kernel()
    op = gemm_of_kernel(kernel)
    left = Seq((replace(op, wg_wait=-1), WaitProducts(0)))
    text = print_program(lowered(substitute(kernel, {op: left}), "sm_80")).text
    assert text == product.printed().text


def test_users_can_do_without_warpgroups() -> None:
    without = BuildOptions(pass_configs=(("tl.disable_wgmma", True),))
    host = installed_plugins()
    texts = [
        lower(HALF.kernel(), "cuda:sm_90a", host, options).text("source")
        for options in (BuildOptions(), without)
    ]
    assert ["wgmma" in text for text in texts] == [True, False]
    assert "tile::mma_m16n8k16" in texts[1]


def test_a_product_that_must_be_of_warpgroups() -> None:
    only = {"instruction": "async_mma", "wg_wait": -1}
    assert "wgmma_ss" in print_program(lowered(rewritten(HALF, **only), "sm_90a")).text
    with pytest.raises(UnsupportedOnTarget) as caught:
        lowered(rewritten(replace(HALF, threads=64), **only), "sm_90a")
    assert caught.value.message == (
        "this matrix product cannot be a warpgroup MMA: 64 threads are no whole warpgroups of 128"
    )
    on_ampere = replace(HALF, arch="sm_80")
    text = print_program(lowered(rewritten(on_ampere, **only), "sm_80")).text
    assert text == on_ampere.printed().text


def test_three_groups_multiply_wide_tiles_beside_producers() -> None:
    """192 x 256 sums of 384 threads, with 128 more for the copies: two instructions for each."""
    kernel = tile.compile(in_rounds(threads=384, stages=2), target="cuda:sm_90a@sim")
    text = kernel.get_kernel_source()
    assert "TILE_KERNEL(512" in text
    assert "tile::wgmma_ss<128, 0, 1, 4>" in text
    assert "tile::registers_increase<160>" in text
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (384, 512)).astype(np.float16)
    b = rng.integers(-2, 3, (512, 512)).astype(np.float16)
    c = np.full((384, 512), np.nan, np.float16)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
