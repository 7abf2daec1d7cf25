"""Products in tensor memory with scales for groups along K: emulated, and as machine code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tile_api.language as T
from support.nvrtcs import Named, machine_code_of
from support.scaled_products import E2M1, E4M3, E5M2, ScaledProduct, check, stored
from support.toolchain import nvrtc_for
from tile_core.codegen import print_program
from tile_core.driver import build, lower
from tile_core.interp import interpret
from tile_core.ir.node import nodes_of
from tile_core.layout import row_major
from tile_core.ops.gemm import Gemm
from tile_core.plugins.host import PluginHost, installed_plugins
from tile_cuda import tensor_memory
from tile_cuda.machine import machine
from tile_cuda.rules import gemm_tensor_memory
from tile_cuda.scaled_gemms import choose_scaled_gemms
from tile_sim import checking

ARCH = "sm_100a"
MXFP8 = ScaledProduct(n=128, step=128, each=True)
MXFP4 = replace(MXFP8, a=E2M1, b=E2M1)
NVFP4 = replace(MXFP4, scales=E4M3, group=16)
NATIVE = [
    MXFP8,
    replace(MXFP8, step=64, b=E5M2, each=False),  # two of the four groups of a word
    replace(MXFP8, step=32, steps=4, each=False, stages=1, clear=True),
    replace(MXFP8, n=256, threads=256, a=E5M2),
    replace(MXFP8, m=256, threads=256, steps=3, stages=1),
    replace(MXFP8, step=256, steps=1, turned=True, stages=1),
    replace(MXFP8, step=128, each=False, steps=4),  # 16 scales in a row
    MXFP4,
    replace(MXFP4, step=64, each=False),  # one of the two steps of a word
    replace(MXFP4, step=512, steps=1, n=256, threads=256, stages=1),
    NVFP4,
    replace(NVFP4, step=64, steps=3, clear=True),
    replace(NVFP4, step=256, n=256, threads=256, each=False),
    replace(NVFP4, m=256, threads=256, stages=1),
    replace(NVFP4, step=512, steps=1, stages=1),  # more words than have columns of their own
]
ELSEWHERE = [
    (replace(MXFP8, scales=E4M3, stages=1), "no products in tensor memory of float8_e4m3fn"),
    (replace(MXFP8, a=E2M1, stages=1), "of float4_e2m1fn and float8_e4m3fn and float8_e8m0fnu"),
    (replace(NVFP4, turned=True, stages=1), "4-bit elements are packed where tiles are copied"),
    (replace(NVFP4, group=32, stages=1), "32 and 32 elements share a scale, not 16"),
    (replace(MXFP4, step=192, each=False, stages=1), "K is 192, from multiples of 192 on: four"),
    (replace(NVFP4, n=64, stages=1), "M is 128 and N is 64"),
    (replace(MXFP8, group=128), "128 and 128 elements share a scale, not 32"),
    (replace(MXFP8, n=64), "M is 128 and N is 64"),
    (replace(MXFP8, step=64), "have 2 scales, not 4, 8 or 12"),
    (replace(MXFP8, step=96, each=False, steps=4), "K is 96, from multiples of 96 on: four"),
    (replace(MXFP8, m=256), "a thread has more than 128 columns"),
]


def printed(product: ScaledProduct, host: PluginHost, arch: str = ARCH) -> str:
    return print_program(lower(product.kernel(), f"cuda:{arch}", host).module).text


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("product", NATIVE, ids=str)
def test_products_scale(product: ScaledProduct, host: PluginHost) -> None:
    assert "tcgen05_mma_scaled" in printed(product, host)
    with checking("all", schedule="random:3"):
        check(product, ARCH)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(("product", "why"), ELSEWHERE, ids=lambda x: str(x)[:90])
def test_others_are_written_out(product: ScaledProduct, why: str, host: PluginHost) -> None:
    lowered = lower(product.kernel(), f"cuda:{ARCH}", host)
    assert "mma_scaled" not in print_program(lowered.module).text
    (told,) = (r.message for r in lowered.remarks if r.pass_name == "choose_scaled_gemms")
    assert why in told
    check(product, ARCH)


def test_what_finds_no_place_is_multiplied_by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pipelines are planned by then: it is slow, and right."""
    monkeypatch.setattr(tensor_memory, "_have_whole_columns", lambda buffer, groups: False)
    host = installed_plugins()
    product = replace(MXFP8, step=32, steps=4, each=False, stages=1)
    assert "tcgen05" not in printed(product, host)
    got, wanted = product.run(build(product.kernel(), f"cuda:{ARCH}@sim", host))
    np.testing.assert_array_equal(got, wanted)


def test_a_launch_has_all_its_sums_there_or_none(host: PluginHost) -> None:
    """Pairs of 4-bit floats stay elements of their own where another product has no place."""

    @T.prim_func
    def two(
        A: T.Tensor((128, 128), E2M1),
        S: T.Tensor((128, 8), E4M3),
        X: T.Tensor((128, 32), "float16"),
        C: T.Tensor((128, 128), "float32"),
        D: T.Tensor((128, 128), "float16"),
    ):
        with T.Kernel(1, threads=128):
            a, s = T.alloc_shared((128, 128), E2M1), T.alloc_shared((128, 8), E4M3)
            x = T.alloc_shared((128, 32), "float16")
            c, d = (T.alloc_fragment((128, 128), kind) for kind in ("float32", "float16"))
            T.copy(A, a)
            T.copy(S, s)
            T.copy(X, x)
            T.clear(c)
            T.gemm_blockscaled(
                a,
                a,
                c,
                s,
                s,
                transpose_B=True,
                k_start=0,
                sf_a_granularity_k=16,
                sf_b_granularity_k=16,
            )
            T.clear(d)
            T.gemm(x, x, d, transpose_B=True)
            T.copy(c, C)
            T.copy(d, D)

    lowered = lower(two.kernel, f"cuda:{ARCH}", host)
    assert "tcgen05" not in print_program(lowered.module).text
    product = replace(NVFP4, steps=1)
    a, _, s, _, c = product.arguments()
    x, d = np.zeros((128, 32), "float16"), np.zeros((128, 128), "float16")
    build(two.kernel, f"cuda:{ARCH}@sim", host).executable(stored(a), s, x, c, d)
    np.testing.assert_array_equal(c, product.expected(a, a, s, s))


@pytest.mark.parametrize("product", [MXFP8, MXFP4, NVFP4], ids=str)
def test_chosen_products_mean_the_same(product: ScaledProduct) -> None:
    chosen = choose_scaled_gemms(product.kernel(), machine(ARCH))
    assert [op.instruction for op in nodes_of(chosen, Gemm)] == ["accumulator_memory_scaled"]
    a, b, sfa, sfb, c = product.arguments()
    given = [stored(x) for x in (a, b)]
    interpret(chosen, [*given, sfa, sfb, c])
    np.testing.assert_array_equal(c, product.expected(a, b, sfa, sfb))


BITS = {"MXFP8": 1 << 23, "MXFP4": 1 << 23 | 1 << 7 | 1 << 10, "NVFP4": 1 << 7 | 1 << 10}
"""Of descriptors: scales that are powers of two, and types of factors."""


@pytest.mark.parametrize("arch", ["sm_100a", "sm_100f", "sm_103a", "sm_110a"])
@pytest.mark.parametrize("name", ["MXFP8", "MXFP4", "NVFP4"])
def test_machine_code(name: str, arch: str, host: PluginHost) -> None:
    """Four products a round; a copy of scales for A and two for B for each word; each once.

    The descriptor says N / 8 and M / 16, types and what scales are; the numbers of scales go up
    from 0 in two places. PTX ISA, "Instruction descriptor" of tcgen05.
    """
    product, unit, words = {
        "MXFP8": (MXFP8, "UTCQMMA", 1),
        "MXFP4": (replace(MXFP4, step=256), "UTCOMMA", 2),
        "NVFP4": (replace(NVFP4, step=256), "UTCOMMA", 4),
    }[name]
    text = printed(replace(product, n=256, threads=256), host, arch)
    code = machine_code_of(text, Named(nvrtc_for(arch)), arch)
    starts = ("UTCQMMA", "UTCOMMA", "UTCCP", "UTCBAR")
    found = {k: n for k, n in code.counts.items() if k.startswith(starts)}
    form = "" if name != "NVFP4" else ".BLOCK16" if arch == "sm_103a" else ".4X"
    assert found == {unit + form: 4, "UTCCP.T.S.4x32dp128bit": 3 * words, "UTCBAR": 1}
    kind = BITS[name] | 256 // 8 << 17 | 128 // 16 << 24
    for number in range(0, 4, words):
        assert f"{kind | number << 4 | number << 29:#x}" in code.text
    assert code.spills == 0


def test_where_scales_lie() -> None:
    """PTX ISA, "Scale factor layout": 16 bytes are four groups of the rows r, r + 32, …"""
    layout = gemm_tensor_memory.scale_layout((256, 8))
    for row, group in np.ndindex(256, 8):
        block = row // 128 * 2 + group // 4
        assert layout.address(row, group) == (
            block * 512 + row % 32 * 16 + row % 128 // 32 * 4 + group % 4
        )


def by_rows(shape: tuple[int, ...]) -> Any:
    return row_major(shape)


MISTAKES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "scales by rows": ("scale_layout", lambda old: by_rows),
    "one place for those of both": ("SCALE_COLUMNS", lambda old: 0),
}


@pytest.mark.parametrize("made", [replace(MXFP8, each=False), MXFP4, NVFP4], ids=str)
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_noticed(
    name: str, made: ScaledProduct, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that puts scales elsewhere, or takes others, computes something else."""
    product = made
    place, change = MISTAKES[name]
    module: Any = gemm_tensor_memory
    monkeypatch.setattr(module, place, change(getattr(module, place)))
    kernel = build(product.kernel(), f"cuda:{ARCH}@sim", installed_plugins())
    got, wanted = product.run(kernel)
    assert not np.array_equal(got, wanted)
