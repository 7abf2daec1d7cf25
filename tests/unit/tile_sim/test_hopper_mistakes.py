"""Rings of tiles, copies of boxes and products of warpgroups: right, and broken in one place."""

from __future__ import annotations

import pytest

from support import hopper_kernels
from support.emulated import replacing, without
from support.emulated_mistakes import Mistake
from tile_core.errors import (
    BarrierMisuse,
    DataRace,
    Deadlock,
    MissingFence,
    MissingWait,
    OutOfBounds,
    UninitialisedRead,
)
from tile_sim import checking

GEMM, ATTENTION, CLUSTER, WEIGHTS = hopper_kernels.PROGRAMS
SCHEDULES = ("forward", "random:1")

MISTAKES = {
    "slot released while it is read": Mistake(
        GEMM, replacing("wait for the last", "<1>", "<2>"), "race", DataRace, "copy A", "multiply"
    ),
    "slot released by a warp too few": Mistake(
        GEMM, replacing("set up empty", "8", "7"), "race", DataRace, "copy A", "multiply"
    ),
    "current slot released": Mistake(
        GEMM, lambda text: replacing("release", "last", "stage")(
            replacing("from the second tile on", "k > 0 && ", "")(text)
        ),
        "race", DataRace, "copy A", "multiply",
    ),
    "full not waited for": Mistake(
        GEMM, without("wait for full"), "race,wait", (DataRace, MissingWait), "multiply", "copy A"
    ),
    "full awaited by one warp of four": Mistake(
        GEMM, replacing("wait for full", "tile::mbarrier", "if (tid < 32) tile::mbarrier"),
        "race,wait", (DataRace, MissingWait), "multiply", "copy A",
    ),
    "products awaited by one warp of four": Mistake(
        GEMM, replacing("wait for the last", "tile::wgmma", "if (tid < 32) tile::wgmma"),
        "race", DataRace, "copy A", "multiply",
    ),
    "empty not waited for": Mistake(
        GEMM, without("wait for empty"), "all", BarrierMisuse, "expect"
    ),
    "bytes not announced": Mistake(
        GEMM, replacing("expect", "arrive_expect_tx(full + stage, 24576)", "arrive(full + stage)"),
        "wait", MissingWait, "multiply", "copy A",
    ),
    "too few bytes announced": Mistake(
        GEMM, replacing("expect", "24576", "16384"), "all", BarrierMisuse, "copy B", "copy A",
    ),
    "too many bytes announced": Mistake(
        GEMM, replacing("expect", "24576", "32768"), "none", Deadlock, "wait for empty",
        "wait for full",
    ),
    "wrong parity of full": Mistake(
        GEMM, replacing("first parity of full", "0", "1"), "race,wait", (DataRace, MissingWait),
        "multiply", "copy A",
    ),
    "wrong parity of empty": Mistake(
        GEMM, replacing("first parity of empty", "1", "0"), "none", Deadlock, "wait for empty",
        "wait for full",
    ),
    "sums read while products are in flight": Mistake(
        GEMM, without("wait for all"), "wait", MissingWait, "read sums", "multiply"
    ),
    "no wait at all": Mistake(
        GEMM, lambda text: without("wait for all")(without("wait for the last")(text)),
        "race", DataRace, "copy A", "multiply",
    ),
    "store not fenced from its writes": Mistake(
        GEMM, without("fence of memory"), "race", MissingFence, "store", "stage"
    ),
    "store not ordered behind its writes": Mistake(
        GEMM, without("staged"), "race", DataRace, "store", "stage"
    ),
    "block that ends before the store has read": Mistake(
        GEMM, without("wait for the store"), "wait", MissingWait, "store"
    ),
    "store in no group": Mistake(
        GEMM, without("store group"), "wait", MissingWait, "store"
    ),
    "registers not fenced": Mistake(
        GEMM, without("fence of registers"), "race", MissingFence, "multiply"
    ),
    "rescaled sums not fenced": Mistake(
        ATTENTION, without("fence before products"), "race", MissingFence, "products"
    ),
    "scores read while they are computed": Mistake(
        ATTENTION, without("the scores"), "wait", MissingWait, "read scores", "more scores"
    ),
    "values released while they are read": Mistake(
        ATTENTION, replacing("the products of the last tile", "<1>", "<2>"), "race", DataRace,
        "copy V", "products",
    ),
    "operand not fenced from its writes": Mistake(
        WEIGHTS, without("fence of memory"), "race", MissingFence, "multiply", "write X"
    ),
    "operand not ordered behind its writes": Mistake(
        WEIGHTS, without("X is there"), "race", DataRace, "multiply", "write X"
    ),
    "operand overwritten while it is read": Mistake(
        WEIGHTS, replacing("wait", "<0>", "<2>"), "race", MissingWait, "write X", "multiply"
    ),
    "factors in registers overwritten": Mistake(
        WEIGHTS, replacing("wait", "<0>", "<1>"), "wait", MissingWait, "load W", "multiply"
    ),
    "factors in registers not fenced": Mistake(
        WEIGHTS, without("fence of registers"), "race", MissingFence, "multiply"
    ),
    "barriers not fenced": Mistake(
        GEMM, without("fence of barriers"), "race", BarrierMisuse, "copy A", "set up full"
    ),
    "barriers not ordered": Mistake(
        GEMM, without("barriers are there"), "race", BarrierMisuse, "wait for full", "set up full"
    ),
    "barrier not set up": Mistake(
        GEMM, without("set up empty"), "none", BarrierMisuse, "wait for empty"
    ),
    "sums not cleared": Mistake(
        GEMM, without("clear"), "uninit", UninitialisedRead, "multiply"
    ),
    "a lane left out": Mistake(
        GEMM, replacing("multiply", "tile::wgmma_ss", "if (tid != 5) tile::wgmma_ss"),
        "none", Deadlock, "multiply",
    ),
    "operand that leaves its tile": Mistake(
        GEMM, replacing("multiply", "stage * 512 + kk * 128", "stage * 512 + kk * 128 + 1536"),
        "bounds", OutOfBounds, "multiply",
    ),
    "cluster that does not meet first": Mistake(
        CLUSTER, replacing("all are there", "cluster_sync", "sync"), "race", BarrierMisuse,
        "copy B",
    ),
    "cluster that does not meet last": Mistake(
        CLUSTER, without("all are done"), "race", BarrierMisuse, "read sums"
    ),
    "cluster that does not meet in between": Mistake(
        CLUSTER, replacing("sums are there", "cluster_sync", "sync"), "race", DataRace,
        "read sums", "leave the sum",
    ),
    "slot that the other block still reads": Mistake(
        CLUSTER, lambda text: without("release there")(
            replacing("set up empty", "8", "4")(text)
        ), "all", (DataRace, BarrierMisuse, MissingWait), "copy B",
    ),
    "bytes of the other block forgotten": Mistake(
        CLUSTER, replacing("expect", "16384", "12288"), "all", BarrierMisuse, "copy B"
    ),
    "too many registers": Mistake(
        GEMM, replacing("few registers", "<40>", "<56>"), "none", Deadlock, "few registers"
    ),
}  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("async_mode", ["late", "early", "random"])
@pytest.mark.parametrize("schedule", ["forward", "reverse", "random:1", "random:2", "random:3"])
@pytest.mark.parametrize("program", hopper_kernels.PROGRAMS, ids=lambda program: program.name)
def test_right_kernels_are_found_right(program, schedule, async_mode):
    with checking("all", schedule=schedule, async_mode=async_mode):
        assert program.run().findings == ()


@pytest.mark.in_turn(8)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found(name, schedule):
    MISTAKES[name].must_be_found(schedule)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", MISTAKES)
def test_all_checks_together_find_it_too(name):
    with checking("all", threads=1), pytest.raises(MISTAKES[name].error):
        MISTAKES[name].program.run(MISTAKES[name].change)
