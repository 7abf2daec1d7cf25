"""Kernels on Blackwell: the copy engine's loads, and products of warps, without an edit."""

from __future__ import annotations

import re

import pytest

import tile_api.language as T
from support.nvrtcs import Named, machine_code_of
from support.toolchain import nvrtc_for
from tile_core.codegen import print_program
from tile_core.driver import lower


def product(dtype: str, block_k: int, threads: int = 256):
    @T.prim_func
    def matmul(
        A: T.Tensor((512, 512), dtype),
        B: T.Tensor((512, 512), dtype),
        C: T.Tensor((512, 512), "float16"),
    ):
        with T.Kernel(4, 4, threads=threads) as (bx, by):
            a = T.alloc_shared((128, block_k), dtype)
            b = T.alloc_shared((128, block_k), dtype)
            c = T.alloc_fragment((128, 128), "float32")
            T.clear(c)
            for k in T.Pipelined(512 // block_k, num_stages=3):
                T.copy(A[by * 128, k * block_k], a)
                T.copy(B[bx * 128, k * block_k], b)
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C[by * 128, bx * 128])

    return matmul.kernel


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(
    ("arch", "dtype", "block_k", "products"),
    [
        ("sm_120a", "float16", 64, {"HMMA": 64}),
        ("sm_120a", "float8_e4m3fn", 128, {"QMMA": 64}),  # 32 of K each, of as many bytes
    ],
)
def test_warps_multiply_what_the_engine_copies(arch, dtype, block_k, products, host):
    """A warp has 32 x 64 of the sums: 2 x 8 products a step, four steps; each tile is one box."""
    lowered = lower(product(dtype, block_k), f"cuda:{arch}", host)
    code = machine_code_of(print_program(lowered.module).text, Named(nvrtc_for(arch)), arch)
    found = {name: 0 for name in ("HMMA", "QMMA", "HGMMA", "UTMALDG", "LDGSTS")}
    for opcode, count in code.counts.items():
        name = re.match(r"\w+", opcode)[0]
        if name in found:
            found[name] += count
    assert {name: n for name, n in found.items() if n} == {**products, "UTMALDG": 2}
    assert code.spills == 0


def test_warps_that_multiply_have_the_registers_of_those_that_copy(host):
    """A warp has 64 x 64 of the sums: 128 registers a thread, more than each thread begins with."""
    lowered = lower(product("float16", 32, threads=128), "cuda:sm_120a", host)
    code = machine_code_of(
        print_program(lowered.module).text, Named(nvrtc_for("sm_120a")), "sm_120a"
    )
    opcodes = [name for opcode in code.counts for name in re.findall(r"^(CALL|USETMAXREG)", opcode)]
    assert opcodes == ["USETMAXREG"] * 2
    assert code.spills == 0
