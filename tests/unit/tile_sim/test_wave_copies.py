"""Copies that waves count: right kernels run right, and each mistake is found in its line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support import wave_kernels
from support.emulated import replacing, without
from support.emulated_mistakes import SCHEDULES, Mistake
from support.wave_kernels import COPIES, GEMM
from tile_core.errors import (
    DataRace,
    Deadlock,
    InternalError,
    MisalignedAccess,
    MissingWait,
    OutOfBounds,
    UninitialisedRead,
)
from tile_sim import checking, last_report
from tile_sim.abi import Actor
from tile_sim.sources import SourceKernel

MISTAKES = {
    "no wait": Mistake(
        GEMM, lambda text: without("wait")(without("wait at the end")(text)),
        "wait", MissingWait, "load A", "copy A",
    ),
    "wait for too few": Mistake(
        GEMM, replacing("wait", "<16>", "<17>"), "wait", MissingWait, "load B", "copy B"
    ),
    "no wait at the end": Mistake(
        GEMM, replacing("wait at the end", "<0>", "<1>"), "wait", MissingWait, "load B", "copy B"
    ),
    "no barrier behind the wait": Mistake(
        GEMM, without("data is there"), "race,wait", (MissingWait, DataRace), "load A", "copy A"
    ),
    "no barrier behind the reads": Mistake(
        GEMM, without("data was read"), "race", DataRace, "copy A", "load A"
    ),
    "copied over a copy": Mistake(
        GEMM, lambda text: without("wait")(replacing("copy B", "B_shared", "A_shared")(text)),
        "wait", MissingWait, "copy B", "copy A",
    ),
    "a place for each lane": Mistake(
        GEMM, replacing("copy A", "A_shared + place", "A_shared + (place + lane % 4 * 2)"),
        "none", InternalError, "copy A",
    ),
    "a tensor for each lane": Mistake(
        GEMM, replacing("copy A", "A, (by", "A + (lane % 4 * 2), (by"),
        "none", InternalError, "copy A",
    ),
    "lanes that branch around a copy": Mistake(
        GEMM, replacing("copy A", "tile::lds", "if (a_exists) tile::lds"),
        "none", Deadlock, "copy A", "copy B",
    ),
    "lanes that branch around a product": Mistake(
        GEMM, replacing("multiply", "tile::mfma", "if (lane != 5) tile::mfma"),
        "none", Deadlock, "multiply",
    ),
    "lanes that wait for different numbers": Mistake(
        GEMM,
        replacing(
            "wait", "tile::lds_wait<16>();",
            "if (lane < 32) tile::lds_wait<16>(); else tile::lds_wait<15>();",
        ),
        "none", Deadlock, "wait",
    ),
    "sums that are not cleared": Mistake(
        GEMM, without("clear"), "uninit", UninitialisedRead, "multiply"
    ),
    "a factor that is not loaded": Mistake(
        GEMM, without("load B"), "uninit", UninitialisedRead, "multiply"
    ),
    "rows behind the last": Mistake(
        GEMM, replacing("copy A", "a_exists", "true"), "bounds", OutOfBounds, "copy A"
    ),
    "behind the end of shared memory": Mistake(
        GEMM, replacing("copy A", "+ place", "+ (place + 4096)"), "bounds", OutOfBounds, "copy A"
    ),
    "words that begin at odd numbers": Mistake(
        GEMM, replacing("copy A", "+ column", "+ (column + 1)"),
        "bounds", MisalignedAccess, "copy A",
    ),
    "places between words": Mistake(
        GEMM, replacing("copy A", "+ place", "+ (place + 1)"),
        "bounds", MisalignedAccess, "copy A",
    ),
    "offsets of more than 32 bits": Mistake(
        COPIES, replacing("copies: copy", "A, ", "tile::at<int>(0ull), (1 << 30) + "),
        "bounds", InternalError, "copies: copy",
    ),
    "other lanes' data without a wait": Mistake(
        COPIES, without("copies: wait"), "wait", MissingWait, "copies: read", "copies: copy"
    ),
    "another wave's data without a barrier": Mistake(
        COPIES, replacing("copies: read", "tid ^ 63", "tid ^ 64"),
        "race,wait", (MissingWait, DataRace), "copies: read", "copies: copy",
    ),
}  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("arrives", ["late", "early", "random"])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("program", wave_kernels.PROGRAMS, ids=lambda program: program.name)
def test_right_kernels_are_found_right(program, schedule, arrives):
    with checking("all", schedule=schedule, async_mode=arrives):
        assert program.run().findings == ()


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found(name, schedule):
    MISTAKES[name].must_be_found(schedule)


@pytest.mark.parametrize("arrives", ["early", "random"])
@pytest.mark.parametrize(
    "name", ["no wait", "wait for too few", "no wait at the end", "copied over a copy"]
)
def test_copies_that_are_early_are_no_excuse(name, arrives):
    MISTAKES[name].must_be_found("random:4", arrives)


_WIDE = """#include "tile.h"
TILE_KERNEL(128, 1) void wide(tile::gptr<const float> A, tile::gptr<float> B, int n) {
  const int tid = threadIdx.x;
  const int wave = tile::uniform(tid >> 6);
  tile::sptr<float> s = tile::smem<float>(0, 512);
  tile::frag<float, 4> v;
  tile::lds_load<16>(s + (wave * 256), A, tile::cast<tile::i64>(tid) * 4, tid * 4 < n);
  tile::lds_wait<0>();
  tile::sync();
  tile::load<4>(v + 0, s + ((tid ^ 64) * 4));
  tile::store<4>(B + (tid * 4), v + 0);
}
TILE_EXPORT(wide)
"""


@pytest.mark.parametrize("arrives", ["late", "early"])
def test_copies_of_16_bytes_a_lane(arrives):
    values, output = np.arange(1, 513, dtype=np.float32), np.full(512, np.nan, np.float32)
    kernel = SourceKernel(_WIDE, "wide", block=128, shared_bytes=2048, warp_size=64, banks=64)
    with checking("all,counters", async_mode=arrives):
        kernel(1, A=values, B=output, n=400)
    values[400:] = 0
    np.testing.assert_array_equal(output, np.roll(values, 256))
    assert last_report().conflicts == last_report().extra_sectors == 0


@pytest.mark.parametrize("sizes", [(1, 4, 2), (128, 128, 32), (129, 4, 100), (20, 260, 66)])
def test_sizes_that_do_not_fill_tiles(sizes):
    with checking("all", schedule="random:7"):
        assert wave_kernels.gemm(*sizes).run().findings == ()


@pytest.mark.parametrize(
    "change",
    [
        replacing("load A", "a_chunk", "(a_chunk ^ (a_row >> 2 & 1))"),
        replacing("multiply", "A_local + (i * 8), B_local", "B_local + (i * 8), A_local"),
        replacing("store", "run * 4)", "(run ^ 1) * 4)"),
        replacing("load A", "a_chunk", "(a_chunk ^ 1)"),
    ],
    ids=["chunks of other rows", "factors in the other order", "other columns", "k of one factor"],
)
def test_what_lies_elsewhere_gives_other_numbers(change):
    """Which no check can know."""
    with checking("all"), pytest.raises(AssertionError, match="Arrays are not equal"):
        GEMM.run(change)


def test_the_order_of_k_is_anybodys():
    """An instruction with twice the k takes as many registers, in one step."""
    with checking("all"):
        GEMM.run(replacing("multiply", "mfma_32x32x8<2>", "mfma_32x32x16<1>"))


def test_who_copied_is_told():
    error = MISTAKES["no barrier behind the reads"].must_be_found("forward")
    assert error.message == (
        "the copy of threads 192-255 of block (0, 0) writes element 3072 of A_shared, "
        "which thread 192 read without synchronisation"
    )
    finding = last_report().findings[0]
    assert (finding.actor, finding.other_actor) == (Actor.LOAD, Actor.THREAD)


def test_a_missing_wait_tells_of_the_copy():
    error = MISTAKES["no wait"].must_be_found("forward")
    assert "whose asynchronous copy was not waited for" in error.message
    assert "the copy starts here" in str(error)


def test_copies_are_counted():
    with checking("all"):
        assert COPIES.run().launches[0].async_copies == 256


@pytest.mark.parametrize(("threads", "lanes"), [(96, 64), (128, 32)])
def test_waves_of_fewer_lanes_are_refused(threads, lanes):
    narrow = replace(COPIES, block=threads, warp_size=lanes)
    with checking("none"), pytest.raises(InternalError, match="does not have 64 lanes"):
        narrow.run()
