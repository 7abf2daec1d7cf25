"""Control flow, assertions, printing and launches in compiled code."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import DeviceAssertError


def test_while_break_and_continue_leave_the_right_loops() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), C: T.Tensor((64,), "int32")):
        with T.Kernel(4, threads=16) as bx:
            for i in T.serial(16):
                n = T.alloc_var("int32")
                n = A[bx * 16 + i]
                steps = T.alloc_var("int32", 0)
                while n > 1:
                    if n % 2 == 0:
                        n = n // 2
                    else:
                        n = 3 * n + 1
                    steps = steps + 1
                    if steps > 20:
                        break
                for q in T.serial(10):
                    if q == 3:
                        continue
                    if q == 5:
                        break
                    steps = steps + 100
                C[bx * 16 + i] = steps

    def collatz(n: int) -> int:
        steps = 0
        while n > 1 and steps <= 20:
            n, steps = n // 2 if n % 2 == 0 else 3 * n + 1, steps + 1
        return steps + 400

    a, c = np.arange(1, 65, dtype="int32"), np.full(64, -1, "int32")
    tile.compile(main, target="cpu")(a, c)
    assert c.tolist() == [collatz(n) for n in range(1, 65)]


def test_loops_count_in_steps_of_either_sign() -> None:
    @T.prim_func
    def main(C: T.Tensor((12,), "int32"), n: T.int32):
        with T.Kernel(1) as _:
            T.clear(C)
            for i in T.serial(11, 2, -4):
                C[i] = 1
            for i in T.serial(0, n, 5):
                C[i] = C[i] + 2

    c = np.full(12, -1, "int32")
    tile.compile(main, target="cpu")(c, 11)
    assert c.tolist() == [2, 0, 0, 1, 0, 2, 0, 1, 0, 0, 2, 1]


def test_empty_loops_do_nothing() -> None:
    @T.prim_func
    def main(C: T.Tensor((4,), "int32"), n: T.int32):
        with T.Kernel(1) as _:
            T.clear(C)
            for i in T.serial(3, n):
                C[i] = 1
            for _i, j in T.Parallel(n, 4):
                C[j] = 5

    c = np.full(4, -1, "int32")
    tile.compile(main, target="cpu")(c, 0)
    assert c.tolist() == [0, 0, 0, 0]


def test_a_failed_assertion_stops_the_block_and_names_the_line() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "int32"), C: T.Tensor((4, 8), "int32")):
        with T.Kernel(4) as bx:
            for i in T.serial(8):
                T.device_assert(A[bx, i] >= 0, "must not be negative")
                C[bx, i] = A[bx, i]

    kernel = tile.compile(main, target="cpu")
    a = np.arange(32, dtype="int32").reshape(4, 8)
    c = np.full((4, 8), -7, "int32")
    kernel(a, c)
    np.testing.assert_array_equal(c, a)
    a[2, 3] = -1
    c[...] = -7
    with pytest.raises(DeviceAssertError, match="must not be negative") as caught:
        kernel(a, c)
    assert "T.device_assert(A[bx, i] >= 0" in str(caught.value)
    assert (c[2, :3] == a[2, :3]).all()
    assert (c[2, 3:] == -7).all()
    np.testing.assert_array_equal(c[[0, 1, 3]], a[[0, 1, 3]])


def test_printing_reaches_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 2), "float16"), n: T.int32):
        with T.Kernel(1) as _:
            T.print(A[:, :], msg="100% sure")
            T.print(n * 2, msg="twice")

    tile.compile(main, target="cpu")(np.array([[1, 2.5], [3, 4]], "float16"), 21)
    lines = capfd.readouterr().out.splitlines()
    assert "100% sure: A[0, 1] = 2.5" in lines
    assert any("42" in line and "twice" in line for line in lines)


def test_launches_run_in_order_and_share_a_workspace() -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 16), "float32"), C: T.Tensor((8, 16), "float32")):
        W = T.alloc_global((8, 16), "float32")
        with T.Kernel(8) as bx:
            T.copy(A[bx, :], W[bx, :])
        with T.Kernel(8) as bx:
            for i in T.Parallel(16):
                C[bx, i] = W[7 - bx, i] + 1

    a = np.arange(128, dtype="float32").reshape(8, 16)
    c = np.full((8, 16), np.nan, "float32")
    tile.compile(main, target="cpu")(a, c)
    np.testing.assert_array_equal(c, a[::-1] + 1)


def test_three_dimensional_grids() -> None:
    @T.prim_func
    def main(C: T.Tensor((2, 3, 4), "int32")):
        with T.Kernel(4, 3, 2) as (bx, by, bz):
            C[bz, by, bx] = bx + 10 * by + 100 * bz

    c = np.full((2, 3, 4), -1, "int32")
    tile.compile(main, target="cpu")(c)
    z, y, x = np.indices((2, 3, 4))
    np.testing.assert_array_equal(c, x + 10 * y + 100 * z)


def test_short_circuits_protect_loads() -> None:
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), C: T.Tensor((8,), "int32")):
        with T.Kernel(1) as _:
            s = T.alloc_shared((8,), "int32")
            T.copy(A, s)
            for i in T.serial(8):
                if i > 0 and s[i - 1] > s[i]:
                    C[i] = 1
                else:
                    C[i] = T.if_then_else(i < 7, s[i + 1], -5)

    a = np.array([3, 1, 4, 1, 5, 9, 2, 6], "int32")
    c = np.full(8, 77, "int32")
    tile.compile(main, target="cpu")(a, c)
    assert c.tolist() == [1, 1, 1, 1, 9, 2, 1, -5]


def test_comparisons_with_nan_are_negated_as_a_whole() -> None:
    @T.prim_func
    def main(A: T.Tensor((4,), "float32"), C: T.Tensor((4, 4), "int32")):
        with T.Kernel(1) as _:
            T.clear(C)
            for i in T.serial(4):
                x = A[i]
                C[0, i] = T.Cast("int32", not x < 2)
                C[1, i] = T.Cast("int32", x < 2 or A[3 - i] > 0)
                if x < 2:
                    C[2, i] = 0
                else:
                    C[2, i] = 1
                if not (x >= 2 and x < 5):
                    C[3, i] = 1

    a = np.array([np.nan, 1, 3, 7], "float32")
    c = np.full((4, 4), -1, "int32")
    tile.compile(main, target="cpu")(a, c)
    assert c.tolist() == [[1, 0, 1, 1], [1, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 1]]
