"""How many blocks shall find registers: waves that are content with plain ones get no others."""

from __future__ import annotations

import pytest

from support.products import Product
from tile_core.simt.lower_launches import SPARE, blocks_to_hold
from tile_core.testing import build_ir as ir
from tile_cuda.machine import machine as nvidia
from tile_hip.machine import machine as amd


@pytest.mark.parametrize(
    ("threads", "columns", "blocks"),
    [
        (64, 64, 8),  # each takes a quarter of a SIMD's turn: two waves on each of four
        (128, 128, 4),
        (256, 256, 2),
        (512, 256, 1),  # eight waves are two for each SIMD anyway
        (256, 1024, 1),  # 256 registers of sums: all there are are needed
    ],
)
def test_two_waves_on_each_simd(threads: int, columns: int, blocks: int) -> None:
    sums = ir.fragment("sums", (64, columns))
    kernel = ir.kernel([], 1, lambda bx: [ir.alloc(sums), ir.fill(sums, 0)], threads=threads)
    launch = kernel.body
    assert blocks_to_hold(launch, amd("gfx942")) == blocks
    assert blocks_to_hold(launch, nvidia("sm_80")) == 1


def test_what_is_needed_beside_tiles_is_left() -> None:
    machine = amd("gfx942")
    assert machine.plain_registers + SPARE < machine.registers
    text = Product("gfx942", 128, 128, 32, threads=256).printed().text
    assert "TILE_KERNEL(256, 2) void" in text
    assert "TILE_KERNEL(256, 1) void" in Product("gfx942", 256, 256, 32, threads=256).printed().text
    assert "TILE_KERNEL(256, 1) void" in Product("sm_80", 128, 128, 32, threads=256).printed().text
