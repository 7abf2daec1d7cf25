"""What a compiled kernel tells of its machine code, and where there is none to tell of."""

from __future__ import annotations

import re

import pytest

import tile_api as tile
import tile_api.language as T
from support.toolchain import need_disassembler, nvrtc_for
from tile_api.kernel import CompiledKernel
from tile_core.errors import UnsupportedOnTarget


@T.prim_func
def twice(A: T.Tensor((256, 64), "float32"), B: T.Tensor((256, 64), "float32")):
    with T.Kernel(4, threads=128) as bx:
        tile_of_a = T.alloc_shared((64, 64), "float32")
        T.copy(A[bx * 64, 0], tile_of_a)
        for i, j in T.Parallel(64, 64):
            B[bx * 64 + i, j] = tile_of_a[63 - i, j]
    with T.Kernel(8, threads=64) as bx:
        for i, j in T.Parallel(32, 64):
            B[bx * 32 + i, j] = B[bx * 32 + i, j] * 2.0


@pytest.fixture(scope="module")
def kernel() -> CompiledKernel:
    """For a GPU that need not be here."""
    nvrtc_for("sm_80")
    return tile.compile(twice, target="cuda:sm_80")


def test_resources_of_each_launch(kernel: CompiledKernel) -> None:
    needs = kernel.resources
    assert list(needs) == ["twice_1", "twice_2"]
    assert all(0 < r.registers <= 128 and r.spill_stores == 0 for r in needs.values())
    assert (needs["twice_1"].barriers, needs["twice_2"].barriers) == (1, 0)


def test_blocks_that_run_at_once(kernel: CompiledKernel) -> None:
    first, second = (needs.resident for needs in kernel.resources.values())
    # 16 KiB per block, one more reserved by the system, of the 164 of a multiprocessor
    assert (first.blocks, first.warps, first.limit) == (9, 36, "shared memory")
    assert second.blocks > first.blocks
    assert second.fraction == 2 * second.blocks / 64


def test_assembly(kernel: CompiledKernel) -> None:
    assert re.findall(r"\.entry (\w+)", kernel.ptx) == ["twice_1", "twice_2"]
    assert ".target sm_80" in kernel.ptx
    assert "bar.sync" in kernel.ptx
    assert kernel.asm == kernel.ptx


def test_instructions_of_the_gpu(kernel: CompiledKernel) -> None:
    need_disassembler()
    text = kernel.sass
    assert re.findall(r"Function : (\w+)", text) in (["twice_1", "twice_2"], ["twice_2", "twice_1"])
    assert "BAR.SYNC" in text


@pytest.mark.parametrize("target", ["cpu", "interpret", "cuda:sm_80@sim"])
@pytest.mark.parametrize("what", ["resources", "ptx", "sass"])
def test_targets_without(target: str, what: str) -> None:
    @T.prim_func
    def one(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            A[0] = 1.0

    with pytest.raises(UnsupportedOnTarget) as caught:
        getattr(tile.compile(one, target=target), what)
    shown = tile.compile(one, target=target).target
    assert str(caught.value) == (
        f"[TL4001] kernels for {shown} have no {what}\n"
        "hint: compile for an NVIDIA GPU, which need not be here: target='cuda:sm_80'"
    )
    assert shown.startswith(target)
