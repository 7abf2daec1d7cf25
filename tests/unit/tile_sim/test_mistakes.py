"""Each check finds the mistake it is there for, in the right line, and nothing in right kernels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support import emulated
from support.emulated import line_of, replacing, without
from support.emulated_mistakes import SCHEDULES, Mistake
from tile_core.errors import (
    DataRace,
    Deadlock,
    DeviceAssertError,
    MisalignedAccess,
    MissingWait,
    OutOfBounds,
    TileError,
    UninitialisedRead,
)
from tile_sim import checking, last_report

MISTAKES = {
    "dropped barrier": Mistake(
        emulated.EXCHANGE, without("meet"), "race", DataRace, "use", "clear"
    ),
    "dropped barrier, unwritten": Mistake(
        emulated.EXCHANGE, lambda text: without("meet")(without("clear")(text)),
        "uninit", UninitialisedRead, "use",
    ),
    "dropped guard": Mistake(
        emulated.EXCHANGE, replacing("guard", "< n", "< 99999"), "bounds", OutOfBounds, "load"
    ),
    "too far in shared memory": Mistake(
        emulated.EXCHANGE, replacing("use", "127 - tid", "128 - tid"), "bounds", OutOfBounds, "use"
    ),
    "dropped wait": Mistake(
        emulated.GEMM, without("wait"), "wait", MissingWait, "load A", "copy A"
    ),
    "wait for too few": Mistake(
        emulated.GEMM, replacing("wait", "<1>", "<2>"), "wait", MissingWait, "load A", "copy A"
    ),
    "dropped barrier behind the wait": Mistake(
        emulated.GEMM, without("data is there"), "race,wait", (MissingWait, DataRace),
        "load A", "copy A",
    ),
    "dropped barrier behind the reads": Mistake(
        emulated.GEMM, without("data was read"), "race", DataRace, "copy A", "load A"
    ),
    "accumulator not cleared": Mistake(
        emulated.GEMM, without("clear"), "uninit", UninitialisedRead, "multiply"
    ),
    "register not cleared": Mistake(
        emulated.SUMS, without("sums: clear"), "uninit", UninitialisedRead, "sums: add"
    ),
    "register behind the end": Mistake(
        emulated.SUMS, replacing("sums: add", "total[i] = total[i]", "total[i] = total[i + 1]"),
        "bounds", OutOfBounds, "sums: add",
    ),
    "dropped barrier of the warp": Mistake(
        emulated.PAIRS, without("pairs: meet"), "race", DataRace, "pairs: read", "pairs: write"
    ),
    "misaligned load": Mistake(
        emulated.VECTORS, replacing("vectors: load", "(tid * 4)", "((tid * 4) + 2)"),
        "bounds", MisalignedAccess, "vectors: load",
    ),
    "misaligned store": Mistake(
        emulated.VECTORS, replacing("vectors: store", "B + (tid * 4)", "B + (tid * 3)"),
        "bounds", MisalignedAccess, "vectors: store",
    ),
    "divergent barrier": Mistake(
        emulated.BRANCHES, replacing("branches: inner", "//", "tile::sync();  //"),
        "barrier", Deadlock, "branches: inner", "branches: meet",
    ),
    "barrier that few threads reach": Mistake(
        emulated.HALVES, replacing("halves: meet", "64", "128"), "none", Deadlock, "halves: meet"
    ),
    "race between blocks": Mistake(
        emulated.BLOCKS, replacing("blocks: write", "B[bx] = bx", "B[0] = bx"),
        "race", DataRace, "blocks: write",
    ),
    "false assertion": Mistake(
        emulated.TALKS, replacing("talks: assert", "< limit", "< 7"),
        "none", DeviceAssertError, "talks: assert",
    ),
}  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("program", emulated.PROGRAMS, ids=lambda program: program.name)
@pytest.mark.parametrize("threads", [1, 2])
def test_right_kernels_are_found_right(program, schedule, threads):
    with checking("all", schedule=schedule, threads=threads):
        report = program.run()
    assert report.findings == ()


WAVES = (emulated.EXCHANGE, emulated.SUMS, emulated.PAIRS, emulated.BRANCHES, emulated.BLOCKS)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("program", WAVES, ids=lambda program: program.name)
def test_right_kernels_are_right_in_waves_of_64(program, schedule):
    """Whole ones, and halves that no other lanes complete."""
    with checking("all", schedule=schedule):
        assert replace(program, warp_size=64).run().findings == ()


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "name",
    ["dropped barrier", "dropped barrier, unwritten", "dropped guard", "too far in shared memory",
     "register not cleared", "register behind the end", "dropped barrier of the warp",
     "divergent barrier", "race between blocks"],
)  # fmt: skip
def test_mistakes_are_found_in_waves_of_64(name, schedule):
    mistake = MISTAKES[name]
    replace(mistake, program=replace(mistake.program, warp_size=64)).must_be_found(schedule)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_barriers_of_some_waves(schedule):
    with checking("all", schedule=schedule):
        assert replace(emulated.HALVES, warp_size=64).run().findings == ()


@pytest.mark.parametrize("async_mode", ["late", "early", "random"])
def test_the_arrival_of_copies_does_not_matter(async_mode):
    with checking("all", async_mode=async_mode, schedule="random:5"):
        assert emulated.GEMM.run().findings == ()


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found(name, schedule):
    MISTAKES[name].must_be_found(schedule)


@pytest.mark.parametrize("name", MISTAKES)
def test_all_checks_together_find_it_too(name):
    mistake = MISTAKES[name]
    with checking("all", threads=1), pytest.raises(TileError) as caught:
        mistake.program.run(mistake.change)
    if name.startswith("dropped barrier") and "unwritten" not in name:
        assert type(caught.value) is DataRace  # which is why the reads find nothing written
    report = last_report()
    assert report is not None
    assert report.findings


@pytest.mark.parametrize(
    "name", ["dropped guard", "register not cleared", "divergent barrier", "race between blocks"]
)
def test_without_checks_nothing_is_found(name):
    mistake = MISTAKES[name]
    with checking("none", threads=1):
        try:
            mistake.program.run(mistake.change)
        except AssertionError:  # wrong results are no findings
            pass
    report = last_report()
    assert report is not None
    assert report.findings == ()


def test_a_swapped_swizzle_gives_wrong_results():
    """Which no check can know: the program reads what it wrote elsewhere, in good order."""
    change = replacing("swizzle written", "^ (row & 7)", "^ (row & 3)")
    with checking("all"), pytest.raises(AssertionError, match="Arrays are not equal"):
        emulated.GEMM.run(change)


def test_printed_text(capsys):
    emulated.TALKS.run()
    assert capsys.readouterr().out == "A[3] is 3\n"


def test_threads_that_poll_let_others_run():
    """Without an order between write and reads, which is why the check of races is off."""
    with checking("bounds,uninit", schedule="forward"):
        assert emulated.FLAGS.run().findings == ()


def test_the_limit_of_time():
    with checking("bounds", time_limit=0.05), pytest.raises(Deadlock) as caught:
        emulated.FLAGS.run(without("flags: set"))
    assert caught.value.message == "block (0) still runs after 50 ms"
    assert caught.value.span.line == line_of("mistakes.cu", "flags: wait")
