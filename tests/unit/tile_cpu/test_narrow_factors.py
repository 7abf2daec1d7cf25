"""Products of tiles of narrow types where no instruction multiplies those: converted once."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

import tile_api as tile
import tile_api.language as T
from tile_cpu.machine import MACHINES, host_machine, missing_features

M, N, K = 24, 64, 32
TYPES = ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "int8"]


def _chain(dtype: str) -> Any:
    """Return ``D = (A B) C`` with the product in the middle rounded to `dtype`, as attention has.

    The second factors are where they lie in memory, one of them transposed; the first ones are
    tiles, one of them read again and again.
    """
    total = "int32" if dtype == "int8" else "float32"

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((2 * N, K), dtype),
        C: T.Tensor((2 * N, K), dtype),
        D: T.Tensor((M, K), total),
    ):
        with T.Kernel(1, threads=32):
            left = T.alloc_shared((M, K), dtype)
            right = T.alloc_shared((N, K), dtype)
            last = T.alloc_shared((N, K), dtype)
            middle = T.alloc_fragment((M, N), total)
            rounded = T.alloc_fragment((M, N), dtype)
            sums = T.alloc_fragment((M, K), total)
            T.copy(A, left)
            T.clear(sums)
            for half in T.serial(2):
                T.copy(B[half * N, 0], right)
                T.clear(middle)
                T.gemm(left, right, middle, transpose_B=True)
                T.copy(middle, rounded)
                T.copy(C[half * N, 0], last)
                T.gemm(rounded, last, sums)
            T.copy(sums, D)

    return main


def _factors(dtype: str) -> list[torch.Tensor]:
    torch.manual_seed(0)
    kind, shapes = getattr(torch, dtype), ((M, K), (2 * N, K), (2 * N, K))
    if dtype == "int8":
        return [torch.randint(-128, 128, shape).to(kind) for shape in shapes]
    found = [torch.randn(shape).to(kind) for shape in shapes]
    found[0][0, 0], found[0][1, 0], found[0][2] = float("nan"), 2.0**-9, 0.0
    if dtype != "float8_e4m3fn":
        found[0][3, 0] = float("inf")
    return found


@pytest.mark.in_turn(8)
@pytest.mark.parametrize("machine", ["haswell", "skylake-avx512", "native"])
@pytest.mark.parametrize("dtype", TYPES)
def test_results(dtype: str, machine: str) -> None:
    if machine != "native" and missing_features(MACHINES[machine], host_machine()):
        pytest.skip("this machine is a lesser one")
    kernel = tile.compile(_chain(dtype), target=f"cpu:{machine}")
    a, b, c = _factors(dtype)
    total = torch.int32 if dtype == "int8" else torch.float32
    got, meant = torch.empty(M, K, dtype=total), torch.empty(M, K, dtype=total)
    kernel(a, b, c, got)
    tile.compile(_chain(dtype), target="interpret")(a, b, c, meant)
    # A sum in another order may be rounded the other way, once in K * N elements.
    torch.testing.assert_close(got, meant, rtol=2**-6, atol=2**-5, equal_nan=True)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("machine", ["haswell", "skylake-avx512"])
@pytest.mark.parametrize("dtype", TYPES[:-1])
def test_nothing_is_converted_where_it_is_multiplied(dtype: str, machine: str) -> None:
    """The loops along K load, spread and multiply; conversions stand outside."""
    text = tile.compile(_chain(dtype), target=f"cpu:{machine}").asm
    loops = re.findall(r"^(\.LBB\w+):((?:(?!^\.LBB).)*?)\b[jb][\w.]+\s+\1\b", text, re.M | re.S)
    hot = [body for _, body in loops if len(re.findall("vfmadd.*ps", body)) >= 8]
    assert len(hot) >= 2
    assert not re.findall(r"vcvt\w+|vp[sa]\w+d|vpmov\w+|call", "".join(hot))
