"""Tiles of 4-bit factors as bytes of two elements: which are, what is emitted, and the sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.interp import interpret
from tile_core.ir.buffer import Scope
from tile_core.ir.node import walk
from tile_core.ir.stmt import Alloc, Kernel
from tile_core.ir.verify import verify
from tile_core.ops.gemm import Gemm
from tile_cuda.machine import machine
from tile_cuda.pack_int4_operands import pack_int4_operands
from tile_sim import checking, last_report

K_STEP = 128
INSTRUCTIONS = {"sm_75": "mma_m8n8k32", "sm_80": "mma_m16n8k64", "sm_89": "mma_m16n8k64"}


def product(
    m: int, n: int, k: int, a_dtype: str = "int4", b_dtype: str = "int4", *, step: int = K_STEP
) -> Any:
    """Return ``C = A @ B.T`` of tensors of 4-bit integers, in tiles of 64x32."""

    @T.prim_func
    def main(
        A: T.Tensor((m, k), a_dtype), B: T.Tensor((n, k), b_dtype), C: T.Tensor((m, n), "int32")
    ):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 64), threads=64) as (bx, by):
            A_s = T.alloc_shared((64, step), a_dtype)
            B_s = T.alloc_shared((32, step), b_dtype)
            C_l = T.alloc_fragment((64, 32), "int32")
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(k, step), num_stages=2):
                T.copy(A[by * 64, ko * step], A_s)
                T.copy(B[bx * 32 : bx * 32 + 32, ko * step : (ko + 1) * step], B_s)
                T.gemm(A_s, B_s, C_l, transpose_B=True)
            T.copy(C_l, C[by * 64, bx * 32])

    return main


def codes(rows: int, k: int, dtype: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random 4-bit integers packed two to a byte, and as int32."""
    packed = np.random.default_rng(seed).integers(0, 256, (rows, k // 2)).astype(np.uint8)
    numbers = np.stack([packed & 15, packed >> 4], axis=-1).reshape(rows, k).astype(np.int32)
    if dtype == "int4":
        return packed.view(np.int8), np.where(numbers > 7, numbers - 16, numbers)
    return packed, numbers


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("arch", INSTRUCTIONS)
@pytest.mark.parametrize(
    ("a_dtype", "b_dtype"), [("int4", "int4"), ("uint4", "int4"), ("int4", "uint4")]
)
def test_packed_factors_are_multiplied_as_they_are(arch: str, a_dtype: str, b_dtype: str) -> None:
    m, n, k = 100, 40, 320
    a, x = codes(m, k, a_dtype, 0)
    b, y = codes(n, k, b_dtype, 1)
    kernel = tile.compile(product(m, n, k, a_dtype, b_dtype), target=f"cuda:{arch}@sim")
    text = kernel.get_kernel_source()
    assert f"tile::{INSTRUCTIONS[arch]}(" in text
    assert "ldmatrix_x4" in text
    for order in ("forward", "random:1", "random:2", "random:3"):
        c = np.full((m, n), -(2**31), np.int32)
        with checking("all,counters", schedule=order):
            kernel(a, b, c)
        np.testing.assert_array_equal(c, x @ y.T)
        report = last_report()
        assert report is not None
        assert report.conflicts == 0, str(report)


@pytest.mark.parametrize("arch", ["sm_70", "sm_90"])
def test_machines_without_such_instructions_multiply_bytes(arch: str) -> None:
    kernel = product(64, 32, K_STEP).kernel
    assert pack_int4_operands(kernel, machine(arch)) is kernel


def tiles(kernel: Kernel) -> dict[str, str]:
    found = (n.buffer for n in walk(kernel) if isinstance(n, Alloc))
    return {b.name: f"{b.dtype}{list(b.shape)}" for b in found if b.scope is Scope.SHARED}


def test_the_packed_kernel_means_the_same() -> None:
    kernel = product(64, 32, 2 * K_STEP, "int4", "uint4").kernel
    made = pack_int4_operands(kernel, machine("sm_80"))
    verify(made)
    assert tiles(made) == {"A_s": "int8[64, 64]", "B_s": "uint8[32, 64]"}
    assert [n.nibbles for n in walk(made) if isinstance(n, Gemm)] == [True]
    (a, x), (b, y) = codes(64, 256, "int4", 2), codes(32, 256, "uint4", 3)
    c = np.full((64, 32), -1, np.int32)
    interpret(made, [a, b, c])
    np.testing.assert_array_equal(c, x @ y.T)


def other_use(kind: str) -> Any:
    """Return a product whose A somebody else looks at, or that no instruction divides."""
    step = 80 if kind == "steps of 80" else K_STEP
    b_shape = (step, 32) if kind == "B by rows" else (32, step)

    @T.prim_func
    def main(
        A: T.Tensor((64, step), "int4"),
        B: T.Tensor(b_shape, "int4"),
        C: T.Tensor((64, 32), "int32"),
        first: T.int32,
    ):
        with T.Kernel(1, threads=64):
            A_s = T.alloc_shared((64, step), "int4")
            B_s = T.alloc_shared(b_shape, "int4")
            C_l = T.alloc_fragment((64, 32), "int32")
            T.clear(C_l)
            if kind == "an odd start":
                T.copy(A[0:64, first : first + step], A_s)
            else:
                T.copy(A, A_s)
            T.copy(B, B_s)
            if kind == "elements written":
                for i in T.Parallel(64):
                    A_s[i, 0] = T.cast(1, "int4")
            if kind == "a layout":
                T.annotate_layout({A_s: T.Layout((64, step), lambda i, j: i * step + j)})
            if kind == "a safe value":
                T.annotate_safe_value({A: 1})
            T.gemm(A_s, B_s, C_l, transpose_B=kind != "B by rows")
            T.copy(C_l, C)

    return main


@pytest.mark.parametrize(
    "kind",
    ["steps of 80", "B by rows", "an odd start", "elements written", "a layout", "a safe value"],
)
def test_tiles_that_are_more_than_factors_have_bytes_of_their_own(kind: str) -> None:
    kernel = other_use(kind).kernel
    assert tiles(pack_int4_operands(kernel, machine("sm_80"))) == tiles(kernel)
    plain = other_use("nothing").kernel
    assert tiles(pack_int4_operands(plain, machine("sm_80"))) != tiles(plain)


def test_both_factors_are_packed_or_none() -> None:
    """A tile is a factor with one that is transposed, too: neither of the three is bytes."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 128), "int4"), B: T.Tensor((128, 128), "int4"), C: T.Tensor((64, 128))
    ):
        with T.Kernel(1, threads=64):
            A_s = T.alloc_shared((64, 128), "int4")
            B_s = T.alloc_shared((128, 128), "int4")
            C_l = T.alloc_fragment((64, 128), "int32")
            T.clear(C_l)
            T.copy(A, A_s)
            T.copy(B, B_s)
            T.gemm(A_s, B_s, C_l, transpose_B=True)
            T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C)

    kernel = main.kernel
    assert tiles(pack_int4_operands(kernel, machine("sm_80"))) == tiles(kernel)
