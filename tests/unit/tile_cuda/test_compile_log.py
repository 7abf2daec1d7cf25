"""What the assembler reports: registers, spills, remarks."""

from __future__ import annotations

from tile_core.simt.resources import Resources
from tile_cuda.compile_errors import parse_resources, warnings_of

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


def test_warnings():
    needs = parse_resources(LOG)
    assert warnings_of(needs["copy"]) == ()
    spill, remark = warnings_of(needs["gemm"])
    assert spill == (
        "kernel 'gemm' needs more than its 255 registers per thread: 1252 bytes are written to "
        "local memory and 1300 read back; use smaller tiles or more threads"
    )
    assert remark.startswith("kernel 'gemm' loses speed (C7510): Potential Performance Loss: ")


def test_a_remark_that_names_no_kernel_is_about_all():
    log = LOG + "ptxas info    : (C7508) setmaxnreg is ignored\n"
    assert [len(r.remarks) for r in parse_resources(log).values()] == [2, 1]
