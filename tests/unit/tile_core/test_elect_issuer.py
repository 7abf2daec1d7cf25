"""Which branches an elected thread takes, and which stay with the thread they name."""

from __future__ import annotations

import pytest

from support.device_programs import (
    TID,
    at,
    do,
    flat,
    function,
    load,
    loop,
    program,
    scalar,
    shared,
    store,
    variable,
)
from tile_core.codegen import print_program
from tile_core.dtypes import dtype_of
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.expr import BinaryOp, Call, Expr, Var
from tile_core.ir.stmt import Alloc, Break, If, Let, LoopKind, Seq, Stmt, Store
from tile_core.machine import SimtMachine
from tile_core.simt.elect_issuer import elect_issuers

HOPPER = SimtMachine(name="sm_90a", family="cuda", shared_bytes=1, features=frozenset({"elect"}))
OLDER = SimtMachine(name="sm_80", family="cuda", shared_bytes=1, features=frozenset())
TILE, BARS = shared("S", 1024, "float16"), shared("full", 2, "uint64")
MAP = Var("S_map", dtype_of("handle"))
I, K, N = scalar("i"), scalar("k"), scalar("n")
THREAD = scalar("thread")
SLOT = variable("slot")
LOAD = do("tensor_load", 1, at(TILE, 0, "w"), MAP, at(BARS, 0, "rw"), K * 64)
STORES = (do("tensor_store", 1, MAP, at(TILE), K * 64), do("bulk_store_commit"))
WAIT = do("bulk_store_wait_read", 0)


def by(number: int, *body: Stmt, line: Expr = TID) -> If:
    return If(binary(BinaryOp.EQ, line, number), Seq(body))


def conditions(*body: Stmt, machine: SimtMachine = HOPPER) -> list[str]:
    """The conditions of the branches that start or await copies, as they are printed."""
    made = elect_issuers(Seq(body), TID, machine)
    text = print_program(program(function((MAP, K, N), made))).text.split("\n")
    heads: list[tuple[int, str]] = []
    found: dict[tuple[int, str], None] = {}
    for number, line in enumerate(text):
        if line.rstrip().endswith("{"):
            heads.append((number, line.strip()))
        elif line.strip() == "}":
            heads.pop()
        elif "tile::tma_" in line:
            found[heads[-1]] = None
    return [head.removeprefix("if (").removesuffix(") {") for _, head in found]


def test_an_elected_thread_starts_a_copy():
    assert conditions(by(0, LOAD)) == ["tid < 32 && tile::elect()"]


def test_the_warp_of_a_thread_elects_one():
    assert conditions(by(70, LOAD)) == ["tid >= 64 && tid < 96 && tile::elect()"]


def test_threads_are_numbered_anew_in_a_range_of_warps():
    inner = (Let(THREAD, TID - 128), by(0, LOAD, line=THREAD))
    ranged = If(binary(BinaryOp.GE, TID, 128), Seq(inner))
    assert conditions(ranged) == ["thread < 32 && tile::elect()"]


def test_machines_without_elections_compare():
    assert conditions(by(0, LOAD), machine=OLDER) == ["tid == 0"]


def test_loops_that_all_threads_run_alike_keep_warps_whole():
    assert conditions(loop(K, N, by(0, LOAD))) == ["tid < 32 && tile::elect()"]


def of_the_warp(width: int) -> tuple[Let, Expr]:
    """A number that lanes of a group share, and a condition on it."""
    number = scalar("number")
    call = Call("shfl_sync", (TID // 32, as_expr(0), as_expr(width)), TID.dtype)
    return Let(number, call), binary(BinaryOp.GE, number, 4)


@pytest.mark.parametrize(
    ("width", "expected"), [(32, "number == 0 && tile::elect()"), (16, "tid == 0")]
)
def test_a_decision_on_what_a_warp_shares_keeps_it_whole(width, expected):
    let, cond = of_the_warp(width)
    assert conditions(let, If(cond, by(0, LOAD))) == [expected]


def test_the_number_of_a_warp_says_which_one_elects():
    """What follows is alike in all lanes, for the assembler too."""
    let, _ = of_the_warp(32)
    inner = (Let(THREAD, TID - 128), by(70, LOAD, line=THREAD))
    ranged = If(binary(BinaryOp.GE, TID, 128), Seq(inner))
    assert conditions(let, ranged) == ["number == 6 && tile::elect()"]


def test_numbers_of_other_warps_say_nothing():
    inner = Let(THREAD, TID - 128)
    call = Call("shfl_sync", (THREAD // 32, as_expr(0), as_expr(32)), TID.dtype)
    other = Let(scalar("number"), call)
    assert conditions(inner, other, by(0, LOAD)) == ["tid < 32 && tile::elect()"]


def in_half_a_warp(inner: Stmt) -> Stmt:
    return If(binary(BinaryOp.LT, TID, 16), inner)


def in_rounds_of_its_own(inner: Stmt) -> Stmt:
    return loop(K, TID + 1, inner)


def in_a_loop_that_threads_leave(inner: Stmt) -> Stmt:
    return loop(K, N, If(binary(BinaryOp.LT, TID, K), Break()), inner)


def under_a_value_in_memory(inner: Stmt) -> Stmt:
    tensor = flat("T", 4, "int32")
    return If(binary(BinaryOp.EQ, load(tensor, 0), 0), inner)


def under_a_value_of_the_thread(inner: Stmt) -> Stmt:
    odd = scalar("odd")
    return Seq((Let(odd, TID % 2), If(binary(BinaryOp.EQ, odd, 0), inner)))


@pytest.mark.parametrize(
    "around",
    [in_half_a_warp, in_rounds_of_its_own, in_a_loop_that_threads_leave, under_a_value_in_memory,
     under_a_value_of_the_thread],
)  # fmt: skip
def test_parts_of_warps_elect_nobody(around):
    assert conditions(around(by(0, LOAD))) == ["tid == 0"]


def test_a_branch_that_speaks_of_the_thread_is_that_threads():
    copy = do("tensor_load", 1, at(TILE, 0, "w"), MAP, at(BARS, 0, "rw"), TID)
    assert conditions(by(0, copy)) == ["tid == 0"]


def test_a_branch_that_keeps_values_of_its_own_is_that_threads():
    step = Store(SLOT, (as_expr(0),), load(SLOT) + 1)
    assert conditions(Alloc(SLOT), store(SLOT, 0, 0), by(0, LOAD, step)) == ["tid == 0"]
    inside = by(0, Alloc(SLOT), store(SLOT, 0, 0), LOAD, step)
    assert conditions(inside) == ["tid < 32 && tile::elect()"]


def test_a_branch_that_meets_other_threads_stays():
    assert conditions(by(0, LOAD, do("sync_warp"))) == ["tid == 0"]


def test_stores_and_their_waits_are_one_threads():
    elected = "tid < 32 && tile::elect()"
    assert conditions(by(0, *STORES), do("sync"), by(0, WAIT)) == [elected, elected]


def test_stores_stay_where_a_wait_must():
    waits = in_half_a_warp(by(0, WAIT))
    assert conditions(by(0, *STORES), do("sync"), waits) == ["tid == 0", "tid == 0"]
    assert conditions(by(0, LOAD), do("sync"), by(0, *STORES), waits) == [
        "tid < 32 && tile::elect()", "tid == 0", "tid == 0",
    ]  # fmt: skip


def test_branches_without_copies_stay():
    body = by(0, do("mbarrier_init", at(BARS, 0, "rw"), 1))
    made = elect_issuers(Seq((body,)), TID, HOPPER)
    assert "if (tid == 0) {" in print_program(program(function((), made))).text


def test_unrolled_loops_are_loops():
    inner = loop(I, 2, by(0, LOAD), kind=LoopKind.UNROLL)
    assert conditions(inner) == ["tid < 32 && tile::elect()"]
