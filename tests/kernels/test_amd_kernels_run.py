"""Kernels for AMD GPUs, compiled by their compilers and run instruction by instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support import example_files, gpu_kernels
from support.toolchain import amd_compiler_for
from tile_sim import checking

ARCHITECTURES = ("gfx90a", "gfx942")

# What is said of copies and layouts matters elsewhere; here results count.
pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")


def compiled(kernel: Any, arch: str) -> Any:
    """Return a kernel whose machine code is interpreted; skip where nothing compiles it."""
    amd_compiler_for(arch)
    return tile.compile(kernel, target=f"hip:{arch}@isa")


def normal(*shape: int, seed: int = 0, dtype: Any = np.float16) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def integers(*shape: int, seed: int = 0, dtype: Any = np.float16) -> np.ndarray:
    """Return small whole numbers: products and sums of them are exact."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32).astype(dtype)


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


def poison(*shape: int, dtype: Any = np.float16) -> np.ndarray:
    return np.full(shape, np.nan, np.float32).astype(dtype)


# The kernel, its arguments (outputs last), and how far results may be from the interpreter's.
KERNELS: dict[str, tuple[Callable[[], Any], Callable[[], Sequence[np.ndarray]], float]] = {
    "gemm": (
        lambda: gpu_kernels.gemm(128, 128, 96, threads=256),
        lambda: [integers(128, 96), integers(96, 128, seed=1), poison(128, 128)],
        0,
    ),
    "gemm_of_odd_sizes": (
        lambda: gpu_kernels.gemm(131, 70, 53),
        lambda: [integers(131, 53), integers(53, 70, seed=1), poison(131, 70)],
        0,
    ),
    "gemm_int4": (
        lambda: gpu_kernels.gemm_int4(64, 64, 64),
        lambda: [
            integers(64, 64),
            np.random.default_rng(1).integers(0, 256, (64, 32)).astype(np.uint8),
            np.full((64, 2), 0.5, np.float16),
            poison(64, 64),
        ],
        0,
    ),
    "attention": (
        lambda: gpu_kernels.attention(100, 1, 64, causal=False),
        lambda: [*(normal(100, 1, 64, seed=i) for i in range(3)), poison(100, 1, 64)],
        2e-3,
    ),
    "attention_causal": (
        lambda: gpu_kernels.attention(128, 1, 64, causal=True),
        lambda: [*(normal(128, 1, 64, seed=i) for i in range(3)), poison(128, 1, 64)],
        2e-3,
    ),
    "softmax": (
        lambda: gpu_kernels.softmax(10, 130),
        lambda: [normal(10, 130, dtype=np.float32), poison(10, 130, dtype=np.float32)],
        1e-6,
    ),
    "split_k": (
        lambda: gpu_kernels.split_k(64, 64, 128),
        lambda: [integers(64, 128), integers(128, 64, seed=1), zeros(64, 64)],
        0,
    ),
    "sums_by_threads": (
        lambda: gpu_kernels.sums_by_threads(3, 300),
        lambda: [integers(3, 300, dtype=np.float32), poison(3, dtype=np.float32)],
        0,
    ),
}


@pytest.mark.in_turn(12)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", KERNELS)
def test_agrees_with_the_interpreter(name: str, arch: str) -> None:
    build, arguments, tolerance = KERNELS[name]
    found, expected = arguments(), arguments()
    compiled(build(), arch)(*found)
    tile.compile(build(), target="interpret")(*expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            one.astype(np.float64), other.astype(np.float64), rtol=tolerance, atol=tolerance
        )


def product(m: int, n: int, k: int, dtype: str, accumulator: str) -> Any:
    """Return ``C = A @ B^T`` in tiles of 64x64x64."""

    @T.prim_func
    def product(
        A: T.Tensor((m, k), dtype), B: T.Tensor((n, k), dtype), C: T.Tensor((m, n), accumulator)
    ):
        with T.Kernel(T.ceildiv(n, 64), T.ceildiv(m, 64), threads=128) as (bx, by):
            A_s = T.alloc_shared((64, 64), dtype)
            B_s = T.alloc_shared((64, 64), dtype)
            C_l = T.alloc_fragment((64, 64), accumulator)
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(k, 64), num_stages=2):
                T.copy(A[by * 64, ko * 64], A_s)
                T.copy(B[bx * 64, ko * 64], B_s)
                T.gemm(A_s, B_s, C_l, transpose_B=True)
            T.copy(C_l, C[by * 64, bx * 64])

    return product


TYPES = [
    ("gfx90a", "bfloat16", "float32"),
    ("gfx942", "bfloat16", "float32"),
    ("gfx90a", "int8", "int32"),
    ("gfx942", "int8", "int32"),
    ("gfx942", "float8_e4m3fnuz", "float32"),
    ("gfx942", "float8_e5m2fnuz", "float32"),
    ("gfx90a", "float32", "float32"),
    ("gfx942", "float64", "float64"),
    ("gfx950", "float16", "float32"),
    ("gfx950", "float8_e4m3fn", "float32"),
]


@pytest.mark.in_turn(10)
@pytest.mark.parametrize("sizes", [(64, 64, 128), (75, 59, 68)])
@pytest.mark.parametrize(("arch", "dtype", "accumulator"), TYPES)
def test_types_of_factors(
    arch: str, dtype: str, accumulator: str, sizes: tuple[int, int, int]
) -> None:
    m, n, k = sizes
    kind = getattr(ml_dtypes, dtype, None) or np.dtype(dtype)
    a, b = integers(m, k, dtype=kind), integers(n, k, seed=1, dtype=kind)
    c = np.full((m, n), 77, accumulator)
    with checking("all", schedule="random:3"):
        compiled(product(m, n, k, dtype, accumulator), arch)(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64).T)


EXAMPLES = ("attention/flash_forward", "norms/layer_norm", "quantised/paper_b2_fp4_weights")


@pytest.mark.in_turn(3)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    amd_compiler_for(arch)
    monkeypatch.setenv("TILE_TARGET", f"hip:{arch}@isa")
    module = example_files.load(name)
    module.check(*module.SIZES[0])
