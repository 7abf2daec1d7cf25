"""What range analysis proves, and what it must not."""

from __future__ import annotations

import pytest

from tile_core.arith.bounds import Bounds
from tile_core.arith.constraints import ConstraintSet
from tile_core.arith.in_range import prove_in_range
from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import binary, call, ceildiv, const, maximum, minimum
from tile_core.ir.expr import BinaryOp, Load, Var

I32 = dtype_of("int32")
M, N, bx, i, j = (Var(name, I32) for name in ("M", "N", "bx", "i", "j"))
TILED = ConstraintSet().with_symbol(M).with_loop(bx, 0, ceildiv(M, 128)).with_loop(i, 0, 128)
STATIC = ConstraintSet().with_loop(bx, 0, 8).with_loop(i, 0, 128).with_loop(j, 0, 16)


@pytest.mark.parametrize(
    ("index", "extent"),
    [
        (bx * 128 + i, 1024),
        ((bx * 128 + i) // 8, 128),
        ((bx * 128 + i) % 8, 8),
        (i // 4 * 4 + i % 4, 128),
        (127 - i, 128),
        (minimum(i + 5, 127), 128),
        (maximum(i - 5, 0), 128),
        (i & 7, 8),
        (i * 2 - i, 128),
    ],
)
def test_static_accesses_are_proven(index: object, extent: int) -> None:
    assert prove_in_range(index, extent, STATIC)


@pytest.mark.parametrize(
    ("index", "extent"),
    [
        (bx * 128 + i, 1023),
        (i - 1, 128),
        (i + 1, 128),
        ((bx * 128 + i) // 8, 127),
        (i % 8, 7),
        (j - i, 16),
        (Load(Buffer("T", (8,), I32, Scope.SHARED), (const(0),)), 8),
    ],
)
def test_what_may_leave_is_not_proven(index: object, extent: int) -> None:
    assert not prove_in_range(index, extent, STATIC)


def test_blocks_of_a_dynamic_extent() -> None:
    assert prove_in_range(bx * 128, M, TILED)
    assert not prove_in_range(bx * 128 + i, M, TILED)


def test_divisibility_removes_the_guard() -> None:
    env = ConstraintSet().with_symbol(M).assuming(binary(BinaryOp.EQ, M % 128, 0))
    env = env.with_loop(bx, 0, ceildiv(M, 128)).with_loop(i, 0, 128)
    assert prove_in_range(bx * 128 + i, M, env)
    assert env.multiple_of(M * 3 + bx * 64) == 64


def test_a_condition_is_a_fact_in_its_branch_only() -> None:
    whole = bx * 128 + 128 <= M
    assert prove_in_range(bx * 128 + i, M, TILED.assuming(whole))
    assert not prove_in_range(bx * 128 + i, M, TILED.assuming(whole, holds=False))
    assert prove_in_range(i - j, 128, STATIC.assuming(j <= i))
    assert not prove_in_range(i - j, 128, STATIC.assuming(j <= i, holds=False))


def test_conjunctions_and_negations_of_facts() -> None:
    env = ConstraintSet().with_symbol(N).with_bounds(j, None, None)
    inside = binary(BinaryOp.AND, j >= 0, j < N)
    assert prove_in_range(j, N, env.assuming(inside))
    outside = binary(BinaryOp.OR, j < 0, j >= N)
    assert prove_in_range(j, N, env.assuming(outside, holds=False))
    assert not prove_in_range(j, N, env.assuming(outside))


def test_names_are_seen_through() -> None:
    start = Var("start", I32)
    env = STATIC.with_let(start, bx * 128)
    assert prove_in_range(start + i, 1024, env)


def test_bounds_are_tight_for_linear_forms() -> None:
    found = STATIC.bounds(bx * 128 - i + 3)
    assert (found.low, found.high) == (-124, 899)
    assert STATIC.bounds(call("popcount", i)).low is None


def test_proofs_of_conditions() -> None:
    assert STATIC.proves(i < 128)
    assert STATIC.proves(binary(BinaryOp.AND, i >= 0, bx * 128 + i < 1024))
    assert not STATIC.proves(i < 127)
    assert TILED.proves(binary(BinaryOp.EQ, i - i + M, M))


def test_facts_are_used_times_what_cancels() -> None:
    """From ``q < 3`` follows ``64 * q + 63 < 192``, for any value `q`."""
    row, lane, n = (Var(name, dtype_of("int32")) for name in ("row", "lane", "n"))
    q = row // n
    env = ConstraintSet().with_loop(lane, 0, 64)
    within = q * 64 + lane < 192
    assert not env.proves(within)
    assert env.assuming(q < 3).proves(within)
    assert not env.assuming(q < 4).proves(within)


def test_what_is_named_after_an_index_is_one() -> None:
    bounds, double, loaded = Bounds(), Var("double", I32), Var("loaded", I32)
    bounds.bind(i, 0, 7)
    bounds.name(double, i * 2)
    bounds.name(loaded, i + Load(Buffer("A", (8,), I32, Scope.GLOBAL), (i,)))
    assert [bounds.is_given(var) for var in (i, double, loaded)] == [False, False, True]
    assert not bounds.is_arbitrary(double + 1)
    assert bounds.is_arbitrary(double + loaded)


def test_a_variable_that_is_bound_anew_changes_what_was_found() -> None:
    bounds, after = Bounds(), i + 1
    found = [bounds.of(after)]
    for high in (7, 7, 3):
        bounds.bind(i, 0, high)
        found.append(bounds.of(after))
    assert found == [(1 - 2**31, 2**31 - 1), (1, 8), (1, 8), (1, 4)]
