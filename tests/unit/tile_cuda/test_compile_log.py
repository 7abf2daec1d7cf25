"""What the assembler reports: registers, spills, remarks, and how many blocks fit."""

from __future__ import annotations

import pytest

from tile_cuda.compile_log import Resources, cautions, parse_resources
from tile_cuda.machine import architecture

LOG = """\
nvrtc: warning: Architectures prior to '<compute/sm>_75' are deprecated
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized \
due to insufficient register resources for the wgmma pipeline in the function 'gemm'
ptxas info    : 8 bytes gmem, 16 bytes cmem[4]
ptxas info    : Compiling entry function 'gemm' for 'sm_90a'
ptxas info    : Function properties for gemm
ptxas         .     648 bytes stack frame, 1252 bytes spill stores, 1300 bytes spill loads
ptxas info    : Used 255 registers, used 2 barriers, 648 bytes cumulative stack size, 1024 bytes \
smem, 372 bytes cmem[0], 16 bytes cmem[2]
ptxas info    : Compile time = 404.978 ms
ptxas info    : Compiling entry function 'copy' for 'sm_90a'
ptxas info    : Function properties for copy
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, 364 bytes cmem[0]
"""


def test_resources():
    assert parse_resources(LOG) == {
        "gemm": Resources(
            name="gemm",
            registers=255,
            stack_bytes=648,
            spill_stores=1252,
            spill_loads=1300,
            shared_bytes=1024,
            constant_bytes=388,
            barriers=2,
            remarks=(
                (
                    "C7510",
                    "Potential Performance Loss: wgmma.mma_async instructions are serialized due "
                    "to insufficient register resources for the wgmma pipeline in the function "
                    "'gemm'",
                ),
            ),
        ),
        "copy": Resources(name="copy", registers=8, constant_bytes=364),
    }


def test_nothing_said():
    assert parse_resources("") == {}


def test_cautions():
    needs = parse_resources(LOG)
    assert cautions(needs["copy"]) == ()
    spill, remark = cautions(needs["gemm"])
    assert spill == (
        "kernel 'gemm' needs more than its 255 registers per thread: 1252 bytes are written to "
        "local memory and 1300 read back; use smaller tiles or more threads"
    )
    assert remark.startswith("kernel 'gemm' loses speed (C7510): Potential Performance Loss: ")


def test_a_remark_that_names_no_kernel_is_about_all():
    log = LOG + "ptxas info    : (C7508) setmaxnreg is ignored\n"
    assert [len(r.remarks) for r in parse_resources(log).values()] == [2, 1]


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
def test_occupancy(arch, registers, threads, shared, blocks, limit):
    """Values of NVIDIA's occupancy calculator."""
    row = architecture(arch)
    found = Resources(name="k", registers=registers).occupancy(row, threads, shared)
    assert (found.blocks, found.limit) == (blocks, limit)
    assert found.warps == blocks * threads // 32
    assert found.fraction == found.warps / (row.multiprocessor.threads // 32)


def test_static_shared_memory_counts():
    row = architecture("sm_80")
    needs = Resources(name="k", registers=32, shared_bytes=80 * 1024)
    assert needs.occupancy(row, 128).blocks == 2
    assert needs.occupancy(row, 128, 4 * 1024).blocks == 1
