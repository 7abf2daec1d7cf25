"""What whole warps do alike: exchanges ahead of loops, and branches of different warps."""

from __future__ import annotations

from textwrap import dedent

import pytest

from support.device_programs import TID, at, do, flat, load, loop, printed, scalar, shared, store
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.expr import BinaryOp, Call, Expr
from tile_core.ir.stmt import If, Let, Seq, Stmt
from tile_core.machine import SimtMachine
from tile_core.simt.merge_branches import merge_branches
from tile_core.simt.warp_uniform_branches import hoist_warp_shuffles, make_branches_warp_uniform

A = flat("A", 4096, "int32")
BARRIERS = shared("bars", 4, "uint64")
K, J, N = scalar("k"), scalar("j"), scalar("n")


def asked(value: Expr, name: str = "group", lane: Expr | int = 0) -> Let:
    call = Call("shfl_sync", (value, as_expr(lane), as_expr(32)), TID.dtype)
    return Let(scalar(name), call)


def text(stmt: Stmt) -> str:
    return printed(stmt, params=(A, N)).removeprefix("const int tid = threadIdx.x;\n")


def test_an_exchange_stands_in_front_of_its_loops():
    let = asked(TID // 128)
    body = loop(J, N, loop(K, N, let, store(A, K, let.var)))
    assert text(hoist_warp_shuffles(Seq((body,)))) == dedent(
        """\
        const int group = tile::shfl_idx(tid >> 7, 0, 32);
        TILE_NO_UNROLL
        for (int j = 0; j < n; ++j) {
          TILE_NO_UNROLL
          for (int k = 0; k < n; ++k) {
            A[k] = group;
          }
        }"""
    )


def test_an_exchange_of_what_changes_in_a_loop_stays_in_it():
    let = asked(TID // 128 + K)
    inner = loop(J, N, let, store(A, J, let.var))
    found = text(hoist_warp_shuffles(Seq((loop(K, N, inner),))))
    assert found.index("int k = 0") < found.index("tile::shfl_idx") < found.index("int j = 0")


@pytest.mark.parametrize(
    "let", [asked(load(A, 0)), asked(TID // 32, lane=N)], ids=["of memory", "of any lane"]
)
def test_other_exchanges_stay_where_they_are(let):
    found = text(hoist_warp_shuffles(Seq((loop(K, N, let, store(A, K, let.var)),))))
    assert found.index("int k = 0") < found.index("tile::shfl_idx")


def test_an_exchange_under_a_condition_stays_under_it():
    let = asked(TID // 128)
    branch = If(binary(BinaryOp.GE, TID, 128), Seq((loop(K, N, let, store(A, K, let.var)),)))
    found = text(hoist_warp_shuffles(Seq((branch,))))
    assert found.index("if (tid >= 128)") < found.index("shfl_idx") < found.index("int k = 0")


def test_equal_exchanges_are_one():
    first, second, other = asked(TID // 128), asked(TID // 128), asked(TID // 32)
    body = (
        loop(K, N, first, store(A, K, first.var)),
        second,
        store(A, 7, second.var + 1),
        other,
        store(A, 8, other.var),
    )
    found = text(hoist_warp_shuffles(Seq(body)))
    assert found.count("shfl_idx") == 2
    assert "A[7] = group + 1;" in found
    assert "A[8] = group_1;" in found


def branch(low: int | None, high: int | None, value: int, line: Expr = TID) -> If:
    """Threads from `low` to before `high` store `value`."""
    ends = [binary(BinaryOp.GE, line, low)] if low is not None else []
    ends += [binary(BinaryOp.LT, line, high)] if high is not None else []
    cond = ends[0] if len(ends) == 1 else binary(BinaryOp.AND, *ends)
    return If(cond, Seq((store(A, TID, value),)))


def joined(*body: Stmt) -> str:
    return text(merge_branches(Seq(body), {TID}, 32))


def test_two_ranges_of_all_threads_are_one_decision():
    assert joined(branch(256, None, 1), branch(None, 256, 2)) == dedent(
        """\
        if (tid >= 256) {
          A[tid] = 1;
        } else {
          A[tid] = 2;
        }"""
    )


def test_several_ranges_are_alternatives():
    found = joined(branch(256, None, 1), branch(None, 128, 2), branch(128, 256, 3))
    assert found == dedent(
        """\
        if (tid >= 256) {
          A[tid] = 1;
        } else if (tid < 128) {
          A[tid] = 2;
        } else if (tid >= 128 && tid < 256) {
          A[tid] = 3;
        }"""
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (branch(128, None, 1), branch(None, 256, 2)),  # both, for some
        (branch(16, None, 1), branch(None, 16, 2)),  # in one warp
        (branch(256, None, 1, N), branch(None, 256, 2, N)),  # no number of a thread
        (branch(256, None, 1), branch(None, 256, 2, N)),
    ],
)
def test_other_branches_stay_apart(first, second):
    assert joined(first, second).count("if (") == 2
    assert "else" not in joined(first, second)


def test_what_stands_between_keeps_branches_apart():
    between = store(A, 4000, 3)
    assert "else" not in joined(branch(256, None, 1), between, branch(None, 256, 2))


def test_branches_inside_of_branches_and_loops_are_joined():
    pair = (branch(64, None, 1), branch(None, 64, 2))
    assert "} else {" in joined(loop(K, N, *pair))
    assert "} else {" in joined(If(binary(BinaryOp.LT, N, 3), Seq(pair)))


def test_branches_of_the_same_thread_are_one():
    first, second, other = (
        If(binary(BinaryOp.EQ, TID, number), Seq((store(A, TID, value),)))
        for number, value in ((0, 1), (0, 2), (1, 3))
    )
    assert joined(first, second, other) == dedent(
        """\
        if (tid == 0) {
          A[tid] = 1;
          A[tid] = 2;
        }
        if (tid == 1) {
          A[tid] = 3;
        }"""
    )
    value = If(binary(BinaryOp.EQ, N, 0), Seq((store(A, TID, 1),)))
    assert joined(value, value).count("if (n == 0) {") == 2


def test_one_fence_follows_all_barriers():
    """It stands between the barriers' first values and the copies of engines."""

    def made(count: int, *more: Stmt) -> If:
        fence = do("fence_mbarrier_init")
        init = do("mbarrier_init", at(BARRIERS, count), count)
        return If(binary(BinaryOp.EQ, TID, 0), Seq((init, fence, *more)))

    both = joined(made(1), made(2))
    assert both.count("fence_mbarrier_init") == 1
    assert both.index("+ 2, 2)") < both.index("fence_mbarrier_init")
    assert joined(made(1, store(A, 0, 1)), made(2)).count("fence_mbarrier_init") == 2


def decided(*body: Stmt, feature: str = "async_mma") -> str:
    machine = SimtMachine(
        name="any", family="cuda", shared_bytes=1, features=frozenset({feature})
    )  # fmt: skip
    return text(
        make_branches_warp_uniform(merge_branches(Seq(body), {TID}, 32), TID, "warp", machine)
    )


def test_alternatives_are_chosen_by_the_number_of_the_warp():
    assert decided(branch(256, None, 1), branch(None, 128, 2), branch(128, 256, 3)) == dedent(
        """\
        const int warp = tile::shfl_idx(tid >> 5, 0, 32);
        if (warp >= 8) {
          A[tid] = 1;
        } else if (warp < 4) {
          A[tid] = 2;
        } else if (warp >= 4 && warp < 8) {
          A[tid] = 3;
        }"""
    )


def test_the_number_of_the_warp_is_asked_for_once():
    pair = (branch(64, None, 1), branch(None, 64, 2))
    found = decided(*pair, store(A, 0, 1), *pair)
    assert found.count("shfl_idx") == 1
    assert found.count("if (warp >= 2) {") == 2


@pytest.mark.parametrize("feature", ["async_mma", "async_copy"])
def test_other_decisions_are_left_alone(feature):
    alone = branch(64, None, 1)
    assert decided(alone, feature=feature) == text(Seq((alone,)))
    pair = (branch(64, None, 1), branch(None, 64, 2))
    assert ("warp" in decided(*pair, feature=feature)) is (feature == "async_mma")
    other = If(binary(BinaryOp.LT, N, 64), store(A, 0, 1), store(A, 0, 2))
    assert "warp" not in decided(other, feature=feature)
