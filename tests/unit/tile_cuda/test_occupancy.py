"""How many blocks run at once."""

from __future__ import annotations

import pytest

from tile_core.simt.resources import Resources
from tile_cuda.machine import machine


@pytest.mark.parametrize(
    ("arch", "registers", "threads", "shared", "blocks", "limit"),
    [
        ("sm_80", 32, 256, 0, 8, "threads"),  # 8 blocks of 8 warps fill 64 warps
        ("sm_80", 255, 128, 0, 2, "registers"),  # 8 warps of 8192 registers
        ("sm_80", 168, 384, 0, 1, "registers"),
        ("sm_80", 40, 128, 48 * 1024, 3, "shared memory"),  # 49 KiB with the reserved one
        ("sm_80", 40, 128, 163 * 1024, 1, "shared memory"),
        ("sm_80", 16, 32, 0, 32, "blocks"),
        ("sm_70", 32, 128, 48 * 1024, 2, "shared memory"),  # Volta reserves nothing
        ("sm_89", 32, 128, 0, 12, "threads"),
        ("sm_86", 16, 64, 0, 16, "blocks"),
        ("sm_75", 64, 1024, 0, 1, "threads"),
        ("sm_90", 256, 1024, 0, 0, "registers"),  # cannot run at all
    ],
)
def test_on_nvidia(arch, registers, threads, shared, blocks, limit):
    """Values of NVIDIA's occupancy calculator."""
    of = machine(arch)
    found = Resources(name="k", registers=registers).occupancy(of, threads, shared)
    assert (found.blocks, found.limit) == (blocks, limit)
    assert found.warps == blocks * threads // 32
    assert found.fraction == found.warps / (of.multiprocessor.threads // 32)


def test_static_shared_memory_counts():
    of = machine("sm_80")
    needs = Resources(name="k", registers=32, shared_bytes=80 * 1024)
    assert needs.occupancy(of, 128).blocks == 2
    assert needs.occupancy(of, 128, 4 * 1024).blocks == 1
