"""Elements at equal distances: the right ones, out of vectors, and nothing read beside them."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.guarded import SIDES, guarded
from support.vector_kernels import elementwise
from tile_cpu.machine import MACHINES, missing_features
from tile_cpu.tir.build import extern, f32
from tile_cpu.tir.nodes import Select, tirx
from tile_cpu.toolchain import compile_module

WIDTHS = [n for n in ("haswell", "skylake-avx512") if not missing_features(MACHINES[n])]
SCALARS = re.compile(r"\tv(?:max|min|add|cmp\w*|ucomi)s[sd]\t")


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("machine", WIDTHS)
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("stride", [3, -1, -2])
def test_elements_at_equal_distances(stride: int, dtype: str, machine: str) -> None:
    n, apart = 76, abs(stride)  # no multiple of any vector
    size = (n - 1) * apart + 1
    start = 0 if stride > 0 else size - 1

    @T.prim_func
    def main(A: T.Tensor((size,), dtype), B: T.Tensor((n,), dtype), C: T.Tensor((n,), dtype)):
        with T.Kernel(1) as _:
            s = T.alloc_shared((size,), dtype)
            T.copy(A, s)
            for i in T.Parallel(n):
                B[i] = A[start + stride * i]
            for i in T.Parallel(n):
                C[i] = s[start + stride * i]

    kernel = tile.compile(main, target=f"cpu:{machine}")
    args = [(np.arange(size) % 251).astype(dtype), np.zeros(n, dtype), np.zeros(n, dtype)]
    for side in SIDES:
        with guarded(args, side) as lent:
            kernel(*lent)
        for found in args[1:]:
            np.testing.assert_array_equal(found, args[0][start::stride])


@pytest.mark.parametrize("machine", WIDTHS)
def test_windows_of_rows_that_are_one_are_read_in_vectors(machine: str) -> None:
    h, w = 6, 7

    @T.prim_func
    def main(A: T.Tensor((h, w), "float32"), C: T.Tensor((3, 3, h * w), "float32")):
        with T.Kernel(3) as bx:
            for r, d in T.Parallel(3, h * w):
                C[r, bx, d] = T.if_then_else(
                    T.And(
                        T.And(d // w + r >= 1, d // w + r <= h),
                        T.And(d % w + bx >= 1, d % w + bx <= w),
                    ),
                    A[d // w + r - 1, d % w + bx - 1],
                    0.0,
                )

    kernel = tile.compile(main, target=f"cpu:{machine}")
    text = kernel.ir("lowered")
    assert "tile_cload_i32" in text
    assert "gather" not in text
    args = [np.random.default_rng(0).random((h, w), "float32"), np.zeros((3, 3, h * w), "float32")]
    padded = np.pad(args[0], 1)
    wanted = [[padded[r : r + h, c : c + w].ravel() for c in range(3)] for r in range(3)]
    for side in SIDES:
        with guarded(args, side) as lent:
            kernel(*lent)
        np.testing.assert_array_equal(args[1], wanted)


@pytest.mark.parametrize("n", [1, 16, 21])
def test_sizes_that_are_known_when_it_runs(n: int) -> None:
    size = T.dynamic("size")

    @T.prim_func
    def main(A: T.Tensor((size, 2), "float32"), C: T.Tensor((size,), "float32")):
        with T.Kernel(T.ceildiv(size, 32)) as bx:
            for i in T.Parallel(32):
                C[bx * 32 + i] = T.max(A[bx * 32 + i, 0], A[bx * 32 + i, 1])

    kernel = tile.compile(main, target="cpu")
    a = np.random.default_rng(n).standard_normal((n, 2)).astype("float32")
    args = [a, np.zeros(n, "float32")]
    for side in SIDES:
        with guarded(args, side) as lent:
            kernel(*lent)
        np.testing.assert_array_equal(args[1], a.max(axis=1))


@pytest.mark.parametrize("machine", ["haswell", "skylake-avx512"])
def test_highest_of_windows_are_found_in_vectors(machine: str) -> None:
    @tile.function(target=f"cpu:{machine}")
    def highest(x):
        windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), axis=(1, 2))
        return windows[:, ::2, ::2].max(axis=(-2, -1))

    (kernel,) = highest.kernels(np.ones((2, 56, 56), "float32"))
    assert "\tvcmpltps\t" in kernel.asm
    assert "gather" not in kernel.asm
    assert not SCALARS.search(kernel.asm)


@pytest.mark.parametrize("machine", ["haswell", "skylake-avx512"])
def test_llvm_makes_vectors_of_hidden_choices(machine: str) -> None:
    def larger(keep, x):
        chosen = keep(Select(tirx.LT(x, f32(1.0)), f32(1.0), x))
        return extern("float32", "tile_opaque_f32", chosen)

    function = elementwise(larger, ["float32"], "float32", 1)
    asm = compile_module(function, MACHINES[machine]).asm()
    assert re.search(r"\tvx?p?xor\w*\t.*%[yz]mm", asm)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_hidden_values_stay_what_they_are(dtype: str) -> None:
    function = elementwise(
        lambda keep, x: extern(dtype, f"tile_opaque_f{dtype[5:]}", x), [dtype], dtype, 1
    )
    x = np.array([np.nan, -np.nan, -0.0, np.inf, 1e-45, 1.5], dtype)
    found = np.zeros_like(x)
    compile_module(function).entry()(len(x), x, found)
    assert found.tobytes() == x.tobytes()


@pytest.mark.parametrize("stride", [2, 3])
@pytest.mark.parametrize("machine", WIDTHS)
def test_elements_under_a_condition_are_read_alone(stride: int, machine: str) -> None:
    """Windows in steps that begin before the first element, and end behind the last one."""
    n = 21
    size = stride * (n - 1) + 1

    @T.prim_func
    def main(A: T.Tensor((size - 2,), "float32"), C: T.Tensor((3, n), "float32")):
        with T.Kernel(3) as bx:
            for i in T.Parallel(n):
                C[bx, i] = T.if_then_else(
                    T.And(stride * i + bx >= 2, stride * i + bx < size), A[stride * i + bx - 2], 0.0
                )

    kernel = tile.compile(main, target=f"cpu:{machine}")
    assert "gather" not in kernel.ir("lowered")
    args = [np.random.default_rng(0).random(size - 2, "float32"), np.zeros((3, n), "float32")]
    padded = np.pad(args[0], (2, 2))
    wanted = [
        padded[b : b + size : stride] * (np.arange(b, b + size, stride) < size) for b in range(3)
    ]
    for side in SIDES:
        with guarded(args, side) as lent:
            kernel(*lent)
        np.testing.assert_array_equal(args[1], wanted)
