"""Integers at the limits of their types: results wrap, whatever TVM and LLVM assume of indices."""

from __future__ import annotations

import operator
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

import tile_api as tile
import tile_api.language as T
from support.arrays import poisoned
from support.guarded import SIDES, guarded

LOW, HIGH = -(2**31), 2**31 - 1
EDGES = [LOW, LOW + 1, -(2**30), -1, 0, 1, 2**30, HIGH - 1, HIGH]


@T.macro
def combine(C, i, a, b):
    C[0, i] = a + b
    C[1, i] = a - b
    C[2, i] = a * b
    C[3, i] = T.if_then_else(a + 1 > a, 1, 0)
    C[4, i] = T.max(a + 1, a)
    C[5, i] = -a
    C[6, i] = (a * 2) // 2
    C[7, i] = a + b - b
    C[8, i] = T.if_then_else(a - b < 0, 1, 0)
    C[9, i] = (32 + a) // (b | 1)
    C[10, i] = T.min(a + b, b)
    C[11, i] = (a + 7) // 8 * 8 - a


def of_scalars():
    @T.prim_func
    def main(C: T.Tensor((12, 1), "int64"), a: T.int32, b: T.int32):
        with T.Kernel(1, threads=32):
            combine(C, 0, a, b)

    return main


def of_elements(count: int, dtype: str):
    @T.prim_func
    def main(C: T.Tensor((12, count), "int64"), A: T.Tensor((count,), dtype),
             B: T.Tensor((count,), dtype)):  # fmt: skip
        with T.Kernel(1, threads=32):
            for i in T.Parallel(count):
                combine(C, i, A[i], B[i])

    return main


def test_scalar_parameters_wrap():
    compiled = tile.compile(of_scalars(), target="cpu")
    interpreted = tile.compile(of_scalars(), target="interpret")
    for a in EDGES:
        for b in EDGES:
            ours, wanted = (poisoned(12, 1, dtype="int64") for _ in range(2))
            compiled(ours, a, b)
            interpreted(wanted, a, b)
            np.testing.assert_array_equal(ours, wanted, err_msg=f"{a}, {b}")


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64"])
def test_elements_wrap(dtype):
    limits = np.iinfo(dtype)
    near = [limits.min, limits.min + 1, limits.max // 2 + 1, limits.max - 1, limits.max, 0, 1, 5]
    a, b = (x.ravel() for x in np.meshgrid(np.array(near, dtype), np.array(near, dtype)))
    results = []
    for target in ("cpu", "interpret"):
        c = poisoned(12, len(a), dtype="int64")
        tile.compile(of_elements(len(a), dtype), target=target)(c, a, b)
        results.append(c)
    np.testing.assert_array_equal(*results)


def test_indices_that_wrap_are_outside():
    """What a sum is known to exceed says nothing of the sum once it has wrapped."""

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((3, 32), "int32"), e: T.int32):
        with T.Kernel(1, threads=32):
            T.assume(e >= 0)
            for i in T.Parallel(32):
                B[0, i] = A[e + i]
            for i in T.serial(32):
                B[1, i] = A[T.min(e + i, 63)]
            for i in T.serial(32):
                B[2, i] = A[(e + i + 1) // 2]

    a = np.arange(1, 65, dtype=np.int32)
    kernel = tile.compile(main, target="cpu")
    for e in (0, 40, HIGH, HIGH - 10):
        b = poisoned(3, 32, dtype="int32")
        kernel(a, b, e)
        at = (np.int64(e) + np.arange(33) + 2**31) % 2**32 - 2**31
        rows = [at[:32], np.minimum(at[:32], 63), at[1:] // 2]
        wanted = [[int(a[k]) if 0 <= k < 64 else 0 for k in row] for row in rows]
        assert b.tolist() == wanted, e


CONSTANTS = [LOW, LOW + 1, -(2**30) - 1, -(2**30), -1, 0, 2**30, HIGH - 1, HIGH]
COMPARISONS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
COMPARED = ("n", "T.min(n, m)", "T.max(n, i)", "n - i", "i")


def of_comparisons(folder: Path, loop: str):
    """Return a kernel that compares numbers with constants, each in a branch of its own."""
    lines = [
        "import tile_api.language as T",
        "@T.prim_func",
        "def main(C: T.Tensor((5, 9, 6, 8), 'int32'), n: T.int32, m: T.int32):",
        "    with T.Kernel(1, threads=32):",
        f"        for i in T.{loop}(8):",
    ]
    for form, number in enumerate(COMPARED):
        for row, constant in enumerate(CONSTANTS):
            for column, sign in enumerate(COMPARISONS):
                lines.append(f"            if {number} {sign} {constant}:")
                lines.append(f"                C[{form}, {row}, {column}, i] = 1")
    path = folder / "comparisons.py"
    path.write_text("\n".join(lines) + "\n")
    return runpy.run_path(str(path))["main"]


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("loop", ["Parallel", "serial"])
def test_comparisons_with_constants_at_the_limits(loop, tmp_path):
    """TVM moves constants to the other side of a comparison, where they may overflow."""
    kernel = tile.compile(of_comparisons(tmp_path, loop), target="cpu")
    i = np.arange(8)
    for n in EDGES:
        for m in (LOW, 0, HIGH):
            found = np.zeros((5, 9, 6, 8), np.int32)
            kernel(found, n, m)
            less = (n - i + 2**31) % 2**32 - 2**31
            values = [np.full(8, n), np.full(8, min(n, m)), np.maximum(n, i), less, i]
            wanted = [[[f(v, k) for f in COMPARISONS.values()] for k in CONSTANTS] for v in values]
            np.testing.assert_array_equal(found, np.asarray(wanted, np.int32), err_msg=f"{n}, {m}")


@pytest.mark.parametrize("limit", [LOW, LOW // 4 - 1])
def test_indices_that_overflow_where_a_constant_stands_for_a_name(limit):
    """TVM puts the constant of a comparison into the indices of its branch, which is dead."""

    @T.prim_func
    def main(A: T.Tensor((32, 8), "bfloat16"), B: T.Tensor((8,), "bool")):
        with T.Kernel(1, threads=32):
            a = T.alloc_fragment((32, 8), "bfloat16")
            T.copy(A, a)
            for i, j in T.Parallel(32, 8):
                if B[j]:
                    a[i, j] = T.if_then_else(i <= limit, a[i, j], 1.0)
                    a[i, j] = T.if_then_else(i == -limit - 1, a[i, j], a[i, j] + 1.0)
            T.copy(a, A)

    kernel, meaning = (tile.compile(main, target=target) for target in ("cpu", "interpret"))
    b = np.array([False, True] * 4)
    ours, wanted = (torch.arange(256, dtype=torch.bfloat16).reshape(32, 8) for _ in range(2))
    kernel(ours, b)
    meaning(wanted, b)
    assert torch.equal(ours, wanted)


def check_beside_pages(program, arrays, *scalars):
    """Compare with the interpreter; tensors lie beside pages that nobody may touch."""
    kernel, meaning = (tile.compile(program, target=target) for target in ("cpu", "interpret"))
    wanted = [a.copy() for a in arrays]
    meaning(*wanted, *scalars)
    for side in SIDES:
        ours = [a.copy() for a in arrays]
        with guarded(ours, side) as lent:
            kernel(*lent, *scalars)
        for a, b in zip(ours, wanted, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n", [0, -1, -20, HIGH, HIGH - 1, HIGH - 11, LOW, LOW + 5])
def test_one_test_for_a_whole_loop_does_not_wrap(n):
    @T.prim_func
    def main(A: T.Tensor((4, 2), "int8"), S: T.Tensor((4, 12), "int32"),
             R: T.Tensor((4, 12), "int32"), n: T.int32):  # fmt: skip
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(4, 12):
                S[i, j] = T.cast(A[i, n + j], "int32")
            for i, j in T.Parallel(4, 12):
                R[i, j] = T.cast(A[i, j * 2 - n], "int32")

    a = np.arange(8, dtype=np.int8).reshape(4, 2)
    check_beside_pages(main, [a, *(poisoned(4, 12, dtype="int32") for _ in range(2))], n)


@pytest.mark.parametrize("n", [0, 3, 9, HIGH, HIGH - 1, LOW, LOW + 1])
def test_conditions_that_wrap_prove_nothing(n):
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((6, 64), "int32"), n: T.int32):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            B[0, tx] = T.if_then_else(HIGH + tx >= 0, tx, A[tx])
            if n + 1 < 8:
                B[1, tx] = A[n]
            if n - 1 > 0 and n < 8:
                B[2, tx] = A[n - 1]
            if not (n * 2 >= 8):
                B[3, tx] = A[n]
            if n + tx < 8:
                B[4, tx] = A[n + tx]
            B[5, tx] = (n - tx) << 1

    check_beside_pages(main, [np.arange(1, 9, dtype=np.int32), np.zeros((6, 64), np.int32)], n)


def test_shifts_of_constants_wrap():
    @T.prim_func
    def main(B: T.Tensor((2,), "int32")):
        with T.Kernel(1, 1, threads=32) as (bx, by):
            B[0] = (LOW - by) << 1
            B[1] = (HIGH - by) << 3

    check_beside_pages(main, [poisoned(2, dtype="int32")])


def test_loops_that_never_run_may_divide_by_what_they_count():
    @T.prim_func
    def main(B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.serial(0):
                for j in T.serial(-1 // (i + 1) % 3):
                    for k in T.Parallel(8):
                        B[k] = j // (i + 1)

    check_beside_pages(main, [np.zeros(8, np.int32)])


def test_products_that_wrap_to_zero_divide_without_a_fault():
    """Both factors are positive, and what they are multiplied to is not."""

    @T.prim_func
    def main(
        A: T.Tensor((T.dynamic("n"),), "int8"),
        B: T.Tensor((T.dynamic("m"),), "int8"),
        C: T.Tensor((4,), "int32"),
    ):
        with T.Kernel(1, threads=1):
            n, m = A.shape[0] + 1, B.shape[0] + 1
            C[0] = 7 // (n * m)
            C[1] = 7 % (n * m)
            C[2] = 7 // (n + m)
            C[3] = 7 % (n << 16)

    a, c = np.zeros((1 << 16) - 1, np.int8), poisoned(4, dtype="int32")
    tile.compile(main, target="cpu")(a, a.copy(), c)
    np.testing.assert_array_equal(c, [0, 7, 0, 7])


def test_loops_and_blocks_need_no_wrapping():
    """Indices of the kernel itself keep the arithmetic that TVM and LLVM see through."""

    @T.prim_func
    def main(A: T.Tensor((T.dynamic("n"), 256), "float32"), B: T.Tensor((32, 8), "uint8")):
        with T.Kernel(T.ceildiv(A.shape[0], 32), threads=32) as bx:
            a = T.alloc_shared((32, 256), "float32")
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 256):
                a[i, j] += T.cast(T.cast(B[i, j // 32], "int32") - 128, "float32") * 2
            T.copy(a, A[bx * 32, 0])

    text = tile.compile(main, target="cpu").ir("lowered")
    assert "cpu_add" not in text
    assert "cpu_sub" not in text
    assert "cpu_mul" not in text
