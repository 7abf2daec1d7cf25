"""Machine code for AMD GPUs of kernels that matter: what loops must contain, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import tile_api as tile
from support import gpu_kernels
from support.toolchain import amd_compiler_for
from tile_core.simt.resources import Resources
from tile_hip.assembly import AssemblyCode, counts_of, kernels_of, unguarded_m0

ARCHITECTURES = ("gfx90a", "gfx942", "gfx950")
KERNELS: dict[str, Callable[[], Any]] = {
    "gemm": lambda: gpu_kernels.gemm(1024, 1024, 1024),
    "gemm_int4": lambda: gpu_kernels.gemm_int4(1024, 1024, 1024),
    "attention": lambda: gpu_kernels.attention(1024, 8, 64, causal=False),
    "attention_causal": lambda: gpu_kernels.attention(1024, 8, 64, causal=True),
    "softmax": lambda: gpu_kernels.softmax(62, 512),
    "layer_norm": lambda: gpu_kernels.layer_norm(60, 256),
    "split_k": lambda: gpu_kernels.split_k(128, 128, 2048),
    "sums_by_threads": lambda: gpu_kernels.sums_by_threads(8, 1000),
}
THREADS = 128
MULTIPLICATIONS = {
    "gemm": 128 * 128 * 32,
    "gemm_int4": 64 * 64 * 64,
    "attention": 2 * 64 * 64 * 64,
    "attention_causal": 2 * 64 * 64 * 64,
    "split_k": 64 * 64 * 32,
}
"""Of a block in one round of its loop."""
COPIED = {
    "gemm": 2 * 128 * 32 * 2,
    "gemm_int4": 64 * 64 * 2 + 64 * 64 // 2,
    "attention": 2 * 64 * 64 * 2,
    "attention_causal": 2 * 64 * 64 * 2,
    "split_k": 2 * 64 * 32 * 2,
}
"""Bytes that a round of a block's loop copies into shared memory."""
_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)")


@cache
def compiled(name: str, arch: str) -> tuple[Resources, AssemblyCode]:
    """Return what a kernel needs, and its instructions; skip where no compiler is installed."""
    amd_compiler_for(arch)
    kernel = tile.compile(KERNELS[name](), target=f"hip:{arch}")
    (needs,) = kernel.resources.values()
    return needs, kernels_of(kernel.asm)[needs.name]


def multiplications(code: AssemblyCode) -> int:
    """Return how many numbers the matrix instructions multiply, for one wave."""
    shapes = [_SHAPE.search(each.opcode) for each in code if each.is_matrix_product]
    return sum(int(s[1]) * int(s[2]) * int(s[3]) for s in shapes if s is not None)


@pytest.mark.in_turn(12)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", KERNELS)
def test_nothing_is_kept_in_scratch_memory(name: str, arch: str) -> None:
    needs, code = compiled(name, arch)
    assert (needs.spill_stores, needs.stack_bytes) == (0, 0)
    assert needs.registers <= 256  # those that arithmetic can name
    assert counts_of(code).scratch == 0
    assert needs.resident is not None
    assert needs.resident.blocks >= 1
    assert unguarded_m0(code) == ()


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", MULTIPLICATIONS)
def test_a_loop_multiplies_and_copies_what_it_must(name: str, arch: str) -> None:
    """Each wave its part of the products; each lane 4 bytes of a copy, or 16 where it can."""
    loop = compiled(name, arch)[1].main_loop()
    found = counts_of(loop)
    assert multiplications(loop) == MULTIPLICATIONS[name] * 64 // THREADS
    lane = 16 if arch == "gfx950" else 4
    assert found.lds_loads == COPIED[name] // THREADS // lane
    assert found.barriers <= 3
    assert loop.count("v_accvgpr") == 0  # sums stay where they are


@pytest.mark.in_turn(4)  # where other tests have compiled the kernels before, it costs nothing
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", ["gemm", "attention", "attention_causal", "split_k"])
def test_no_loop_waits_for_all_copies(name: str, arch: str) -> None:
    assert counts_of(compiled(name, arch)[1].main_loop()).full_waits == 0


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_rows_of_a_wave_need_no_memory_in_between(arch: str) -> None:
    """Lanes exchange their totals by instructions; a row is loaded and stored once."""
    _, code = compiled("layer_norm", arch)
    assert code.count("ds_read") == code.count("ds_write") == 0
    assert counts_of(code).barriers == 0


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_factors_of_gemm_are_read_in_16_bytes_whichever_way_they_lie(arch: str) -> None:
    """Of B, which lies across the sum's dimension, lanes take columns out of what they read."""
    loop = compiled("gemm", arch)[1].main_loop()
    assert loop.count("ds_read") == counts_of(loop).wide_lds_reads == 12
    assert loop.count("ds_write") == 0
