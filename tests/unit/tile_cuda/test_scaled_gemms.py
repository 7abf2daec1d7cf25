"""Products with scales for groups along K by the instructions that have these, on sm_120a."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.nvrtcs import Named, machine_code_of
from support.scaled_products import E2M1, E4M3, E5M2, ScaledProduct, check
from support.toolchain import nvrtc_for
from tile_core.codegen import print_program
from tile_core.driver import build, lower
from tile_core.interp import interpret
from tile_core.ir.node import nodes_of
from tile_core.ops.gemm import Gemm
from tile_core.plugins.host import PluginHost, installed_plugins
from tile_cuda.machine import machine
from tile_cuda.rules import scale_registers
from tile_cuda.scaled_gemms import choose_scaled_gemms
from tile_sim import checking

ARCH = "sm_120a"
MXFP8 = ScaledProduct()
MXFP4 = replace(MXFP8, a=E2M1, b=E2M1)
NVFP4 = replace(MXFP4, scales=E4M3, group=16)
NATIVE = [
    MXFP8,
    replace(MXFP8, a=E5M2, b=E4M3, step=32, steps=5, n=24),  # one scale at a time; odd tiles
    replace(MXFP8, step=160, n=16, threads=64, each=True),  # a word and a scale
    replace(MXFP8, step=128, group=128, group_b=32, threads=256),  # four steps share a scale
    replace(MXFP8, turned=True, n=16),
    replace(MXFP8, m=48, n=8, threads=96, clear=True, stages=1),
    replace(MXFP4, step=128, n=48),
    replace(MXFP4, step=64, steps=3, each=True, group_b=64),
    NVFP4,
    replace(NVFP4, step=192, steps=2, n=32, group_b=32, threads=64),
    replace(NVFP4, m=16, n=72, threads=96, each=True, clear=True),
]
WRITTEN_OUT = [
    (
        replace(MXFP8, a=E2M1, stages=1),
        "has no instruction that multiplies scaled float4_e2m1fn by",
    ),
    (replace(MXFP8, scales=E4M3), "scales are float8_e4m3fn"),
    (replace(MXFP8, group=16), "16 elements of A share a scale, no multiple of 32"),
    (replace(MXFP8, step=48, steps=2, group=48), "48 elements of A share a scale"),
    (replace(MXFP8, m=24, n=8, threads=32), "32 threads cannot share 24 x 8 x 64"),
    (replace(NVFP4, turned=True, stages=1), "4-bit elements are packed where tiles"),
    (replace(NVFP4, step=32, steps=2, stages=1), "4-bit elements are packed where tiles"),
]


def printed(product: ScaledProduct, host: PluginHost, arch: str = ARCH) -> str:
    return print_program(lower(product.kernel(), f"cuda:{arch}", host).module).text


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("product", NATIVE, ids=str)
def test_instructions_scale(product: ScaledProduct, host: PluginHost) -> None:
    text = printed(product, host)
    assert "mma_scaled_m16n8k64" if product.a == E2M1 else "mma_scaled_m16n8k32" in text
    assert "_scaled =" not in text
    with checking("all", schedule="random:3"):
        check(product, ARCH)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(("product", "why"), WRITTEN_OUT, ids=lambda x: str(x)[:60])
def test_others_are_written_out(product: ScaledProduct, why: str, host: PluginHost) -> None:
    lowered = lower(product.kernel(), f"cuda:{ARCH}", host)
    assert "mma_scaled" not in print_program(lowered.module).text
    (told,) = (r.message for r in lowered.remarks if r.pass_name == "choose_scaled_gemms")
    assert why in told
    check(product, ARCH)


@pytest.mark.parametrize("product", [MXFP8, MXFP4, NVFP4], ids=str)
def test_chosen_products_mean_the_same(product: ScaledProduct) -> None:
    """The interpreter runs the kernel before and behind the pass, with tiles of packed pairs."""
    chosen = choose_scaled_gemms(product.kernel(), machine(ARCH))
    assert [op.instruction for op in nodes_of(chosen, Gemm)] == ["scaled_mma"]
    for kernel in (product.kernel(), chosen):
        a, b, sfa, sfb, c = product.arguments()
        given = [x if product.a != E2M1 else codes(x) for x in (a, b)]
        interpret(kernel, [*given, sfa, sfb, c])
        np.testing.assert_array_equal(c, product.expected(a, b, sfa, sfb))


def codes(x: np.ndarray) -> np.ndarray:
    pairs = x.view(np.uint8) & 15
    return pairs[:, 0::2] | pairs[:, 1::2] << 4


@pytest.mark.parametrize("arch", ["sm_120a", "sm_121a", "sm_120f"])
@pytest.mark.parametrize(
    ("product", "instruction"),
    [
        (replace(MXFP8, step=128), "QMMA.SF.16832.F32.E4M3.E4M3.E8"),
        (replace(MXFP8, step=128, a=E5M2), "QMMA.SF.16832.F32.E5M2.E4M3.E8"),
        (replace(MXFP4, step=256), "OMMA.SF.16864.F32.E2M1.E2M1.E8"),
        (replace(NVFP4, step=256), "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"),
    ],
    ids=str,
)
def test_machine_code(
    product: ScaledProduct, instruction: str, arch: str, host: PluginHost
) -> None:
    """A warp has 64 x 32 of the sums, 4 x 4 products a step; scales of a row are one word a round.

    What selects bytes and lanes is known, or would be in registers.
    """
    text = printed(product, host, arch)
    code = machine_code_of(text, Named(nvrtc_for(arch)), arch)
    found = Counter({k: n for k, n in code.counts.items() if k.startswith(("QMMA", "OMMA"))})
    assert found == {instruction: 64}
    assert code.spills == 0


MISTAKES = {
    "the next byte": ("byte", lambda old: lambda self, kk: old(self, kk) ^ self.groups),
    "scales of the other rows": ("row", lambda old: lambda self, n: old(self, n) ^ 8),
    "scales of another tile": ("row", lambda old: lambda self, n: old(self, n) ^ 16),
    "scales of the first four steps": (
        "_indices",
        lambda old: lambda self, number, place: old(self, number, place % 4),
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that takes other scales than it should computes something else."""
    product = replace(MXFP8, m=64, step=256, threads=64, stages=1)
    method, change = MISTAKES[name]
    words: Any = scale_registers._Words
    monkeypatch.setattr(words, method, change(getattr(words, method)))
    got, wanted = product.run(build(product.kernel(), f"cuda:{ARCH}@sim", installed_plugins()))
    assert not np.array_equal(got, wanted)
