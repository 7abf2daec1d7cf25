"""Quotients and remainders of integers: of every width, by every divisor."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.arrays import poisoned
from tile_core.errors import UndefinedOperation

WIDTHS = [8, 16, 32, 64]
DTYPES = [f"{sign}int{width}" for width in WIDTHS for sign in ("", "u")]
EMULATED = ["cuda:sm_80@sim", "hip:gfx942@sim"]


def edges(dtype: str) -> list[int]:
    """Return numbers of a type at which divisions differ."""
    limits = np.iinfo(dtype)
    near = [-7, -2, -1, 0, 1, 2, 3, 7, 64]
    return sorted({n for n in [limits.min, limits.min + 1, *near, limits.max] if n >= limits.min})


def exact(a: int, b: int, dtype: str) -> list[int]:
    """Return quotient and remainder rounded down, then those toward zero, wrapped."""
    if b == 0:
        return [0, a, 0, a]
    toward_zero = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    values = np.array([a // b, a % b, toward_zero, a - toward_zero * b], object)
    bits = np.iinfo(dtype).bits
    wrapped = [int(v) & ((1 << bits) - 1) for v in values]
    signed = dtype.startswith("i")
    return [v - (1 << bits) if signed and v >> (bits - 1) else v for v in wrapped]


def pairs(dtype: str, *, zero: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return dividends, divisors, and what the four operations give."""
    chosen = [(a, b) for a in edges(dtype) for b in edges(dtype) if b != 0 or zero]
    a, b = (np.array(side, dtype) for side in zip(*chosen, strict=True))
    return a, b, np.array([exact(x, y, dtype) for x, y in chosen], dtype).T


@T.macro
def divide(C, first, i, a, b):
    C[first, i] = a // b
    C[first + 1, i] = a % b
    C[first + 2, i] = T.truncdiv(a, b)
    C[first + 3, i] = T.truncmod(a, b)


def elements(dtype: str, count: int):
    """Return a program that divides elements of vectors, and one after the other."""

    @T.prim_func
    def main(
        A: T.Tensor((count,), dtype),
        B: T.Tensor((count,), dtype),
        C: T.Tensor((4, count), dtype),
        D: T.Tensor((4, count), dtype),
    ):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(count):
                divide(C, 0, i, A[i], B[i])
            for i in T.serial(count):
                divide(D, 0, i, A[i], B[i])

    return main


def divided(target: str, dtype: str, *, zero: bool) -> None:
    a, b, wanted = pairs(dtype, zero=zero)
    c, d = (poisoned(4, len(a), dtype=dtype) for _ in range(2))
    tile.compile(elements(dtype, len(a)), target=target)(a, b, c, d)
    np.testing.assert_array_equal(c, wanted)
    np.testing.assert_array_equal(d, wanted)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", DTYPES)
def test_no_division_ends_the_process(dtype: str) -> None:
    """By zero, a compiled kernel gives 0, and the dividend as what is left."""
    divided("cpu", dtype, zero=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_quotients_that_a_type_cannot_hold_wrap(dtype: str) -> None:
    divided("interpret", dtype, zero=False)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", EMULATED)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64"])
def test_quotients_wrap_on_gpus(target: str, dtype: str) -> None:
    divided(target, dtype, zero=False)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", ["cpu", "interpret", "cuda:sm_80@sim"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64"])
def test_constant_divisors(target: str, dtype: str) -> None:
    divisors = [b for b in edges(dtype) if b != 0]
    a = np.array(edges(dtype), dtype)
    count, rows = len(a), 4 * len(divisors)

    @T.prim_func
    def main(A: T.Tensor((count,), dtype), C: T.Tensor((rows, count), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(count):
                [divide(C, 4 * k, i, A[i], T.cast(b, dtype)) for k, b in enumerate(divisors)]

    c = poisoned(rows, count, dtype=dtype)
    tile.compile(main, target=target)(a, c)
    wanted = [[exact(int(x), b, dtype)[k] for x in a] for b in divisors for k in range(4)]
    np.testing.assert_array_equal(c, np.array(wanted, dtype))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_divisions_of_constants(dtype: str) -> None:
    """They are folded while the kernel is traced, as numbers of Python, which must fit."""
    a, b, wanted = pairs(dtype, zero=False)
    fits = (a != np.iinfo(dtype).min) | (b != -1)
    a, b, wanted = a[fits], b[fits], wanted[:, fits]

    @T.prim_func
    def main(C: T.Tensor((4, len(a)), dtype)):
        with T.Kernel(1, threads=32):
            [
                divide(C, 0, k, T.cast(x, dtype), T.cast(y, dtype))
                for k, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True))
            ]

    for target in ("cpu", "interpret"):
        c = poisoned(4, len(a), dtype=dtype)
        tile.compile(main, target=target)(c)
        np.testing.assert_array_equal(c, wanted)


@T.prim_func
def scalars(A: T.Tensor((4,), "int32"), x: T.int32, y: T.int32):
    with T.Kernel(1, threads=32):
        A[0] = x // y
        A[1] = x % y
        A[2] = T.truncdiv(x, y)
        A[3] = T.truncmod(x, y)


@pytest.mark.parametrize("target", ["cpu", "interpret", *EMULATED])
def test_scalar_parameters(target: str) -> None:
    kernel = tile.compile(scalars, target=target)
    for x, y in ((-(2**31), -1), (-7, 2), (7, -2), (-(2**31), 3)):
        a = poisoned(4, dtype="int32")
        kernel(a, x, y)
        assert a.tolist() == exact(x, y, "int32")


@pytest.mark.parametrize("target", ["interpret", *EMULATED])
def test_what_checks_finds_divisions_by_zero(target: str) -> None:
    with pytest.raises(UndefinedOperation, match="divide") as caught:
        tile.compile(scalars, target=target)(poisoned(4, dtype="int32"), 7, 0)
    span = caught.value.span
    assert span is not None
    assert span.file == __file__


@pytest.mark.parametrize("target", ["cpu", "interpret", *EMULATED])
def test_a_condition_guards_a_division(target: str) -> None:
    """Both sides of a choice may be computed; that must not be noticed."""

    @T.prim_func
    def main(A: T.Tensor((40,), "int32"), B: T.Tensor((40,), "int32"), y: T.int32):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(40):
                B[i] = T.if_then_else(A[i] > 0, 60 // A[i], 5)
            if y > 0 and 60 // y > 2:
                B[0] = 60 // y
            B[1] = T.if_then_else(y > 0, 60 // y, 6)

    kernel = tile.compile(main, target=target)
    a = np.arange(40, dtype="int32") % 4
    for y in (0, 3):
        b = poisoned(40, dtype="int32")
        kernel(a, b, y)
        wanted = [60 // n if n > 0 else 5 for n in a.tolist()]
        wanted[:2] = [20 if y else 5, 20 if y else 6]
        assert b.tolist() == wanted
