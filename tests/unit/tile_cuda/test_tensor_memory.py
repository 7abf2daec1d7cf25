"""Products with sums in tensor memory: in the emulator, and as machine code."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

import tile_api.language as T
from support.hopper_examples import CASES
from support.nvrtcs import Named, machine_code_of
from support.products import Product, check
from support.toolchain import nvrtc_for
from tile_core.codegen import print_program
from tile_core.driver import lower
from tile_core.plugins.host import PluginHost
from tile_sim import checking

HALF = Product("sm_100a", 128, 64, 64)
PRODUCTS = [
    HALF,
    replace(HALF, factor="bfloat16", transposes=(True, True), k=48, n=48),
    replace(HALF, n=256, threads=256, steps=2, k=64),
    replace(HALF, m=256, n=80, threads=256, clear=True),
    replace(HALF, m=256, n=64, transposes=(False, True), steps=4, k=128),
    replace(HALF, factor="tfloat32", transposes=(False, True), k=32),
    replace(HALF, factor="float8_e4m3fn", second="float8_e5m2", transposes=(False, True)),
    replace(HALF, factor="float8_e4m3fn", n=80, transposes=(True, False)),  # no swizzle of B
    replace(HALF, m=64, n=128, transposes=(True, True), threads=256, steps=2),
    replace(HALF, m=64, factor="int8", second="uint8", total="int32", clear=True, k=32),
]
FACTOR = replace(HALF, scopes=("fragment", "shared"))
HELD = [
    FACTOR,
    replace(FACTOR, m=256, n=48, k=64, steps=2, factor="bfloat16", threads=256),
    replace(FACTOR, factor="int8", total="int32", transposes=(False, True), k=64, clear=True),
]
BESIDE = [
    replace(FACTOR, m=64),
    replace(FACTOR, factor="float8_e4m3fn", second="float8_e5m2"),
    replace(FACTOR, k=16, threads=256),  # a thread would have half of a vector
]
ELSEWHERE = [
    replace(HALF, m=64, n=96),
    replace(HALF, factor="tfloat32"),  # B lies along N
    replace(HALF, arch="sm_103a", factor="int8", total="int32"),
    replace(HALF, total="float16"),
    replace(HALF, threads=384, m=384),
    replace(HALF, n=192),  # a thread has 128 columns at most
    replace(HALF, scopes=("shared", "fragment")),
]


def printed(product: Product, host: PluginHost) -> str:
    return print_program(lower(product.kernel(), f"cuda:{product.arch}", host).module).text


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("product", PRODUCTS, ids=str)
def test_sums_are_in_tensor_memory(product: Product, host: PluginHost) -> None:
    assert "tcgen05_mma" in printed(product, host)
    check(product)


@pytest.mark.parametrize("product", HELD, ids=str)
def test_first_factors_are_in_tensor_memory(product: Product, host: PluginHost) -> None:
    assert "tcgen05_mma_ts" in printed(product, host)
    check(product)


def test_machine_code_with_a_factor_in_tensor_memory(host: PluginHost) -> None:
    """64 of K are four steps; 64 halves of a row are 32 columns."""
    code = machine_code_of(printed(FACTOR, host), Named(nvrtc_for("sm_100a")), "sm_100a")
    assert len(re.findall(r"UTCHMMA tmem\[UR\d+\], gdesc", code.text)) == 4
    assert len(re.findall(r"STTM\.x32 ", code.text)) == 3  # 64 sums, 32 of the factor
    assert code.spills == 0


@pytest.mark.parametrize("product", BESIDE, ids=str)
def test_other_factors_are_in_shared_memory(product: Product, host: PluginHost) -> None:
    text = printed(product, host)
    assert "tcgen05_mma<" in text
    assert "A_local_shared" in text


@pytest.mark.parametrize("product", ELSEWHERE, ids=str)
def test_others_have_theirs_in_registers(product: Product, host: PluginHost) -> None:
    text = printed(product, host)
    assert "tcgen05" not in text
    assert "mma_m16n8k" in text


def matmul(dtype: str, block_k: int, rows: int, total: str):
    @T.prim_func
    def kernel(
        A: T.Tensor((1024, 1024), dtype),
        B: T.Tensor((1024, 1024), dtype),
        C: T.Tensor((1024, 1024), total if total == "int32" else "bfloat16"),
    ):
        with T.Kernel(4, 1024 // rows, threads=256) as (bx, by):
            a = T.alloc_shared((rows, block_k), dtype)
            b = T.alloc_shared((256, block_k), dtype)
            c = T.alloc_fragment((rows, 256), total)
            T.clear(c)
            for k in T.Pipelined(1024 // block_k, num_stages=3):
                T.copy(A[by * rows, k * block_k], a)
                T.copy(B[bx * 256, k * block_k], b)
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C[by * rows, bx * 256])

    return kernel.kernel


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(
    ("dtype", "block_k", "rows", "instruction", "descriptor"),
    [
        ("bfloat16", 64, 128, "UTCHMMA", 1 << 4 | 1 << 7 | 1 << 10 | 32 << 17 | 8 << 24),
        ("tfloat32", 32, 128, "UTCHMMA", 1 << 4 | 2 << 7 | 2 << 10 | 32 << 17 | 8 << 24),
        ("float8_e5m2", 128, 128, "UTCQMMA", 1 << 4 | 1 << 7 | 1 << 10 | 32 << 17 | 8 << 24),
        ("int8", 128, 128, "UTCIMMA", 2 << 4 | 1 << 7 | 1 << 10 | 32 << 17 | 8 << 24),
        ("float16", 64, 64, "UTCHMMA.WS", 1 << 4 | 32 << 17 | 4 << 24),
    ],
)
def test_machine_code(dtype, block_k, rows, instruction, descriptor, host) -> None:
    """Four products a round, started once each: no loop over the lanes that might be elected.

    Descriptors say the sums' type, types of both factors, N / 8, M / 16. 256 columns of 64 rows
    are 128 of tensor memory. Source: PTX ISA, "Instruction descriptor" of tcgen05.
    """
    total = "int32" if "int" in dtype else "float32"
    kernel = matmul(dtype, block_k, rows, total)
    text = print_program(lower(kernel, "cuda:sm_100a", host).module).text
    assert f"tcgen05_alloc<{2 * rows}>" in text
    assert f"tcgen05_free<{2 * rows}>" in text
    code = machine_code_of(text, Named(nvrtc_for("sm_100a")), "sm_100a")
    found = Counter()
    for opcode, count in code.counts.items():
        found[re.match(r"\w+(\.WS)?", opcode)[0]] += count
    moves = rows // 32  # of 32 columns, of which a thread has as many as there are rows
    wanted = {instruction: 4, "UTCBAR": 1, "UTMALDG": 2, "LDTM": moves, "STTM": moves, "HMMA": 0}
    assert {name: found[name] for name in wanted} == wanted
    assert f"{descriptor:#x}" in code.text
    assert "0x40004040" in code.text  # swizzled rows of 128 bytes, eight to a group
    assert code.spills == 0


def test_attention(host: PluginHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both products have their sums there, and the second one the probabilities."""
    case = CASES["attention"]
    text = print_program(lower(case.kernel(), "cuda:sm_100a", host).module).text
    assert "mma_m16n8k16" not in text
    assert "tcgen05_alloc<512>" in text  # 128 of scores, 128 of results, 64 of probabilities
    assert "tcgen05_mma_ts<128, 1, 8>(sums, 128, 256" in text
    assert "weights_shared" not in text
    # The first round and all others scale results for the next one; the last division is the end.
    assert text.count("tcgen05_store<64>(acc, ") == 3
    monkeypatch.setenv("TILE_TARGET", "cuda:sm_100a@sim")
    with checking("all", schedule="random:3"):
        case.check(1, 300, 1, 128, False)


def test_no_room_is_told_of(host) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((256, 64), "float16"), C: T.Tensor((3, 256, 128), "float32")):
        with T.Kernel(1, threads=256) as bx:
            a = T.alloc_shared((256, 64), "float16")
            b = T.alloc_shared((128, 64), "float16")
            T.copy(A, a)
            T.copy(A[0:128, :], b)
            c = T.alloc_fragment((256, 128), "float32")
            d = T.alloc_fragment((256, 128), "float32")
            e = T.alloc_fragment((256, 128), "float32")
            T.gemm(a, b, c, transpose_B=True, clear_accum=True)
            T.gemm(a, b, d, transpose_B=True, clear_accum=True)
            T.gemm(a, b, e, transpose_B=True, clear_accum=True)
            T.copy(c, C[0, :, :])
            T.copy(d, C[1, :, :])
            T.copy(e, C[2, :, :])

    remarks = lower(kernel.kernel, "cuda:sm_100a", host).remarks
    told = [r.message for r in remarks if r.pass_name == "place_sums"]
    assert len(told) == 2
    assert told[0].endswith("finds no room in 512 columns of tensor memory")
    assert told[1].startswith("512 of 512 columns of tensor memory have sums of")
