"""Sums that are filled before a loop of products are held in place in front of it."""

from __future__ import annotations

import pytest

from support.device_programs import at, do, load, loop, printed, registers, scalar, shared, store
from tile_core.ir.device import device
from tile_core.ir.expr import Expr
from tile_core.ir.stmt import Alloc, LoopKind, Seq, Stmt
from tile_core.simt.pin_accumulators import pin_accumulators

TILE = shared("S", 1024, "float16")
SUMS, OTHERS = registers("total", 64), registers("other", 64)
FACTOR = registers("factor", 8, "float16")
I, K, N = scalar("i"), scalar("k"), scalar("n")
PIN = "tile::wgmma_pin<64>(total);"


def operand() -> Expr:
    return device("async_mma_operand", 128, 16, 1024, at(TILE), 0)


def product(name: str = "async_mma_ss") -> Stmt:
    return do(name, 128, 0, 0, at(SUMS, 0, "rw"), operand(), operand())


def fill(buffer=SUMS) -> Stmt:
    return loop(I, 64, store(buffer, I, 0.0), kind=LoopKind.UNROLL)


def lines(*body: Stmt) -> list[str]:
    whole = Seq((Alloc(SUMS), Alloc(OTHERS), Alloc(FACTOR), *body))
    found = printed(pin_accumulators(whole), params=(N,), tiles={TILE: 0}).split("\n")
    return [line.strip() for line in found]


def test_sums_are_pinned_between_fill_and_loop():
    found = lines(fill(), loop(K, N, product()))
    assert found.count(PIN) == 1
    assert found[found.index(PIN) + 1 :][:2] == [
        "TILE_NO_UNROLL", "for (int k = 0; k < n; ++k) {",
    ]  # fmt: skip


def test_the_factors_in_registers_are_no_sums():
    step = do("async_mma_rs", 128, 0, at(SUMS, 0, "rw"), at(FACTOR), operand())
    fills = (fill(), loop(I, 8, store(FACTOR, I, 0.0), kind=LoopKind.UNROLL))
    found = lines(*fills, loop(K, N, step))
    assert [line for line in found if "pin" in line] == [PIN]


@pytest.mark.parametrize(
    "body",
    [
        (loop(K, N, product()),),  # not filled here
        (fill(OTHERS), loop(K, N, product())),
        (fill(), product(), loop(K, N, product())),  # products may be in flight
        (fill(), loop(K, N, product("async_mma_ss_set"))),  # which drops what was there
        (fill(), product()),
        (fill(), loop(K, 4, product(), kind=LoopKind.UNROLL)),  # always has rounds
    ],
)
def test_other_sums_are_left_alone(body):
    assert not any("pin" in line for line in lines(*body))


def test_loops_inside_of_loops_are_seen():
    found = lines(loop(I, N, fill(), loop(K, N, product()), store(SUMS, 0, load(SUMS, 1))))
    assert found.count(PIN) == 1
