"""Products of tiles as machine code: nothing spilled, and the instructions one would write."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.machine_loops import loops
from support.products import Product
from support.toolchain import need_disassembler, nvrtc_for
from tile_cuda.disassembly import sass
from tile_cuda.machine_code import Compiled, compile_source

HALF = Product("sm_80", 128, 128, 256, steps=8)
BYTES = replace(HALF, factor="int8", total="int32", k=512)

# The tiles that people use, each with the arrangement of memory that suits it least.
TILES = [
    HALF,
    replace(HALF, transposes=(True, False)),
    replace(HALF, m=256, threads=256),
    replace(HALF, scopes=("fragment", "shared")),
    replace(HALF, factor="bfloat16", transposes=(False, True)),
    replace(HALF, factor="tfloat32"),
    replace(HALF, factor="float32", threads=256, steps=16),
    replace(HALF, factor="float64", total="float64", m=64, n=64, k=128),
    replace(BYTES, transposes=(False, True)),
    replace(BYTES, factor="int4", steps=1, k=64, transposes=(False, True)),
    replace(HALF, arch="sm_75", steps=1, k=32),
    replace(BYTES, arch="sm_75", steps=1, k=64),
    replace(HALF, arch="sm_89", factor="float8_e4m3fn", k=512, transposes=(False, True)),
    replace(HALF, arch="sm_70", steps=1, k=32),
    replace(HALF, arch="sm_75", factor="float32", steps=1, k=16, threads=256),
    replace(BYTES, arch="sm_70", steps=1, k=32, threads=256),
]


def compiled(product: Product) -> Compiled:
    nvrtc_for(product.arch)
    return compile_source(product.printed(), product.arch)


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("product", TILES, ids=str)
def test_nothing_is_spilled(product: Product) -> None:
    for needs in compiled(product).resources.values():
        assert (needs.spill_stores, needs.spill_loads, needs.stack_bytes) == (0, 0, 0)
        assert needs.registers <= 255


def test_the_loop_is_as_short_as_a_hand_written_one() -> None:
    product = replace(HALF, k=1024, steps=32)
    cubin = compiled(product).code
    need_disassembler()
    code = sass(cubin)
    (body,) = (found for found in loops(code) if found["HMMA"])
    # 128 x 128 x 32 by four warps: 64 products, 16 loads of four matrices, 8 copies of 16 bytes.
    assert (body["HMMA"], body["LDSM"], body["LDGSTS"]) == (64, 16, 8)
    assert sum(body.values()) <= 1.1 * 152
