"""Products in tensor memory with scales for groups along K: emulated, and as machine code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.nvrtcs import Named, machine_code_of
from support.scaled_products import E2M1, E4M3, E5M2, ScaledProduct, check
from support.toolchain import nvrtc_for
from tile_core.codegen import print_program
from tile_core.driver import build, lower
from tile_core.layout import row_major
from tile_core.plugins.host import PluginHost, installed_plugins
from tile_cuda import tensor_memory
from tile_cuda.rules import gemm_tensor_memory
from tile_sim import checking

ARCH = "sm_100a"
MXFP8 = ScaledProduct(n=128, step=128, each=True)
NATIVE = [
    MXFP8,
    replace(MXFP8, step=64, b=E5M2, each=False),  # two of the four groups of a word
    replace(MXFP8, step=32, steps=4, each=False, stages=1, clear=True),
    replace(MXFP8, n=256, threads=256, a=E5M2),
    replace(MXFP8, m=256, threads=256, steps=3, stages=1),
    replace(MXFP8, step=256, steps=1, turned=True, stages=1),
]
ELSEWHERE = [
    (replace(MXFP8, a=E2M1, b=E2M1, scales=E4M3, group=16, stages=1), "no products in tensor mem"),
    (replace(MXFP8, group=128), "128 and 128 elements share a scale, not 32"),
    (replace(MXFP8, n=64), "M is 128 and N is 64"),
    (replace(MXFP8, step=64), "have 2 scales, not 4, 8 or 12"),
    (replace(MXFP8, step=96, each=False, steps=4), "four groups share a word"),
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


@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a", "sm_110a"])
def test_machine_code(arch: str, host: PluginHost) -> None:
    """Four products a round, and a copy of scales for A and two for B; each started once.

    The descriptor says N / 8 and M / 16, and that scales are powers of two; the numbers of scales
    go up from 0 in two places. PTX ISA, "Instruction descriptor" of tcgen05.
    """
    text = printed(replace(MXFP8, n=256, threads=256), host, arch)
    code = machine_code_of(text, Named(nvrtc_for(arch)), arch)
    found = {k: n for k, n in code.counts.items() if k.startswith(("UTCQMMA", "UTCCP", "UTCBAR"))}
    assert found == {"UTCQMMA": 4, "UTCCP.T.S.4x32dp128bit": 3, "UTCBAR": 1}
    kind = 1 << 23 | 256 // 8 << 17 | 128 // 16 << 24
    for number in range(4):
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


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that puts scales elsewhere, or takes others, computes something else."""
    product = replace(MXFP8, each=False)
    place, change = MISTAKES[name]
    module: Any = gemm_tensor_memory
    monkeypatch.setattr(module, place, change(getattr(module, place)))
    kernel = build(product.kernel(), f"cuda:{ARCH}@sim", installed_plugins())
    got, wanted = product.run(kernel)
    assert not np.array_equal(got, wanted)
