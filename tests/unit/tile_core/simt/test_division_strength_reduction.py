"""Many divisions by few numbers become products with reciprocals, where float64 is fast."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest

from support.device_programs import load, loop, printed, registers, scalar, store
from tile_core.ir.build_expr import binary
from tile_core.ir.expr import BinaryOp, Expr
from tile_core.ir.stmt import Alloc, LoopKind, Seq, Stmt
from tile_core.simt.division_strength_reduction import reduce_division_strength
from tile_cuda.machine import machine

SUMS, TOTALS = registers("sums", 64), registers("total", 2)
MANY, DOUBLES = registers("many", 64), registers("wide", 64, "float64")
R, V, K, N = scalar("r"), scalar("v"), scalar("k"), scalar("n")


def divided(by: Expr, into=SUMS, at: Expr = R) -> Stmt:
    return store(into, at, binary(BinaryOp.DIV, load(into, at), by))


def unrolled(*body: Stmt, count: int = 64) -> Stmt:
    return loop(R, count, *body, kind=LoopKind.UNROLL)


def text(*body: Stmt, arch: str = "sm_90a") -> str:
    whole = Seq((*(Alloc(b) for b in (SUMS, TOTALS, MANY, DOUBLES)), *body))
    return printed(reduce_division_strength(whole, machine(arch)), params=(N,))


def test_divisions_by_few_registers_share_reciprocals() -> None:
    body = unrolled(divided(load(TOTALS, R >> 5)))
    assert "= tile::quotient(float(sums[r]), float(total[r >> 5]));" in text(body)
    rows = loop(R, 32, loop(V, 2, divided(load(TOTALS, V), at=R * 2 + V), kind=LoopKind.UNROLL),
                kind=LoopKind.UNROLL)  # fmt: skip
    assert "tile::quotient(float(sums[r * 2 + v]), float(total[v]))" in text(rows)


def test_divisions_by_what_no_loop_moves_share_a_reciprocal() -> None:
    assert "tile::quotient(" in text(unrolled(divided(load(TOTALS, 1))))


@pytest.mark.parametrize(
    "body",
    [
        unrolled(divided(load(MANY, R))),  # each by its own
        loop(R, 64, divided(load(TOTALS, R >> 5))),  # one at a time
        unrolled(divided(load(TOTALS, R >> 1)), count=4),  # too few
        unrolled(loop(K, N, divided(load(TOTALS, K & 1), at=R))),  # a loop between that runs
        unrolled(divided(load(DOUBLES, 0), DOUBLES)),  # of float64
        divided(load(TOTALS, 0), at=N),
    ],
    ids=["own", "serial", "few", "inside", "float64", "once"],
)
def test_other_divisions_stay(body: Stmt) -> None:
    assert "quotient" not in text(body)
    assert " / " in text(body)


@pytest.mark.parametrize("arch", ["sm_75", "sm_86", "sm_89"])
def test_machines_with_little_float64_divide(arch: str) -> None:
    assert "quotient" not in text(unrolled(divided(load(TOTALS, R >> 5))), arch=arch)


def _quotient(a: float, b: float, fma) -> np.float32:
    """Return what the device header computes, step by step."""
    with np.errstate(all="ignore"):
        most = float(np.float64(1.0) / np.float64(b))
        if math.isfinite(most) and fma(-b, most, 1.0) < 0:  # rounded away from zero
            most = float(np.nextafter(most, 0.0))
        more = np.fmax(abs(np.float64(fma(-b, most, 1.0)) * most), 1e-300)
        rest = np.float64(a) * np.copysign(more, most)
        return np.float32(fma(a, most, float(rest)))


def test_the_formula_rounds_as_a_division_does() -> None:
    fma = ctypes.CDLL("libm.so.6").fma
    fma.restype, fma.argtypes = ctypes.c_double, [ctypes.c_double] * 3
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, (20000, 2), dtype=np.uint32).view(np.float32)
    near = rng.integers(0x3F800000, 0x40000000, (20000, 2), dtype=np.uint32).view(np.float32)
    # Quotients in the middle between two subnormal numbers, and at the edge of them.
    odd = rng.integers(1, 2**12, (20000, 2)) * 2 + 1
    halves = np.stack([odd[:, 0] * odd[:, 1] * np.float64(2.0**-149), 2.0 * odd[:, 0]], 1)
    special = np.float32([0.0, -0.0, 1.0, -3.0, np.inf, -np.inf, np.nan, 1e-45, 3e38, 1e-38])
    pairs = np.stack(np.meshgrid(special, special), -1).reshape(-1, 2)
    cases = np.concatenate([bits, near, halves.astype(np.float32), pairs]).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = cases[:, 0] / cases[:, 1]
    found = np.array([_quotient(float(a), float(b), fma) for a, b in cases], np.float32)
    # The sign of NaN means nothing.
    assert (np.isnan(found) == np.isnan(expected)).all()
    same = found.view(np.uint32) == expected.view(np.uint32)
    assert (same | np.isnan(expected)).all()
