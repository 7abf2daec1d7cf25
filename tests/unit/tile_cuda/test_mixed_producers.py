"""Tiles of one loop that the engine copies, that warps begin, and that warps convert."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.kept_kernels import run
from support.mixed_kernels import gathered, odd_rows, three_ways
from support.nvrtcs import NVRTCS, machine_code_of
from support.ring_kernels import Case
from tile_core.compilation.results import Lowered
from tile_core.driver import lower
from tile_core.plugins.host import installed_plugins


def check(case: Case, seed: int = 0) -> None:
    """Run a kernel, and compare what it computes exactly with numpy and the interpreter."""
    arguments = case.arguments(np.random.default_rng(seed))
    expected = case.expected(*arguments[:-1])
    for target in ("interpret", "cuda:sm_90a@sim"):
        given = [a.copy() for a in arguments]
        run(case.function.kernel, target, given)
        np.testing.assert_array_equal(given[-1], expected)


def program(case: Case) -> Lowered:
    return lower(case.function.kernel, "cuda:sm_90a", installed_plugins())


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
def test_odd_rows_beside_the_engine(schedule: str, rounds: int) -> None:
    """The last step along K is shorter, and so is the last tile of columns."""
    check(odd_rows(rounds))


def test_columns_that_the_launch_tells(schedule: str) -> None:
    check(odd_rows(3, at_run_time=True))


def test_pieces_of_four_bytes(schedule: str) -> None:
    check(odd_rows(4, 122, stages=2))


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("rounds", [1, 6])
def test_odd_rows_without_the_engine(schedule: str, rounds: int) -> None:
    """All four warps of the producers' group take turns."""
    check(odd_rows(rounds, both=True, stages=4))


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("lengths", [[100, 7, 64], [0, 1, 130]])
def test_pages_through_a_table(schedule: str, lengths: list[int]) -> None:
    """Sequences of no tile, of a part of one, and of several, whose pages are scattered."""
    check(gathered(lengths))


def test_pages_for_two_groups(schedule: str) -> None:
    check(gathered([70, 200], page=8, stages=3, heads=128))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
def test_three_ways_to_fill_tiles(schedule: str, rounds: int) -> None:
    check(three_ways(rounds))


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("masked", [[1, 0, 1, 1, 0, 0, 1, 1], [0, 0, 0]])
def test_three_ways_in_rounds_that_are_left_out(schedule: str, masked: list[int]) -> None:
    check(three_ways(len(masked), masked=masked, stages=2))


# What becomes of them ------------------------------------------------------------------------


def test_what_engines_read_is_fenced_behind_its_end() -> None:
    """In pieces of 8 bytes; the warp waits, fences and arrives: one arrival for each version."""
    text = program(odd_rows(5)).text("source")
    assert "tile::cp_async<8>(B_s + " in text
    assert "cp_async_mbarrier_arrive" not in text
    assert "tile::mbarrier_init(B_s_full, 1)" in text
    producer = text[text.index("tile::cp_async<8>") :]
    told = producer[: producer.index("tile::mbarrier_arrive(B_s_full")]
    order = [told.index(f"tile::{word}") for word in (
        "cp_async_commit()", "cp_async_wait<0>()", "fence_proxy_async()", "sync_warp()"
    )]  # fmt: skip
    assert order == sorted(order)


def test_what_threads_read_arrives_by_itself() -> None:
    """No warp waits for its copies: 32 lanes' arrive, and the warp, which stored the rest."""
    text = program(three_ways(5)).text("source")
    assert "tile::tma_load<2>(A_s" in text
    assert "tile::cp_async<8>(R_s + " in text
    assert "tile::cp_async_mbarrier_arrive(R_s_full + " in text
    assert "tile::mbarrier_init(R_s_full, 33)" in text
    assert "cp_async_wait" not in text


def test_a_table_is_read_by_who_copies() -> None:
    """Pieces of 16 bytes of pages; what no page holds is zero, and nothing of it is read."""
    text = program(gathered([100, 7, 64])).text("source")
    assert "tile::tma_load<3>(Q_s" in text
    assert text.count("tile::cp_async<16>(K_s + ") == 2
    assert text.count("tile::cp_async<16>(V_s + ") == 2


def test_reasons_are_told() -> None:
    """A line for each tile that the engine leaves; loops that compute are no copies."""

    def copied(case: Case) -> list[str]:
        found = [note.message for note in program(case).remarks]
        return [text for text in found if "is copied by" in text]

    rows = "rows of '{}' are not known to begin at multiples of 16 bytes"
    by_warps = "'{}_s' is copied by producer warps: {}"
    gather = "a loop gathers its elements"
    assert copied(odd_rows(5)) == [by_warps.format("B", rows.format("B"))]
    both = [by_warps.format(name, rows.format(name)) for name in "AB"]
    assert copied(odd_rows(5, both=True)) == both
    assert copied(gathered([100])) == [by_warps.format(name, gather) for name in "KV"]
    assert copied(three_ways(5)) == [by_warps.format("R", gather)]


@pytest.mark.parametrize(
    ("case", "warps"),
    [(odd_rows(5, stages=4), 3), (odd_rows(5, stages=2), 2), (odd_rows(5, stages=4, both=True), 4)],
    ids=["beside the engine", "two versions", "without the engine"],
)
def test_as_many_warps_as_versions_or_as_are_left(case: Case, warps: int) -> None:
    """One of the four is the engine's, if it copies anything."""
    text = program(case).text("pipelined")
    assert text.count("@copy_wait(") == warps


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("nvrtc", NVRTCS[:1], ids=str)
@pytest.mark.parametrize(
    ("case", "more"),
    [
        (odd_rows(8, 252, threads=256), {"UTMALDG"}),
        (odd_rows(8, 252, threads=256, both=True), set()),
        (gathered([4096], heads=128), {"UTMALDG"}),
        (three_ways(8, threads=256), {"UTMALDG", "ARRIVES"}),
    ],
    ids=["odd", "both odd", "gathered", "three ways"],
)
def test_the_machine_code(case: Case, more: set[str], nvrtc: Any) -> None:
    """Copies beside the threads, barriers, products of warpgroups, and no spilled register."""
    code = machine_code_of(program(case).text("source"), nvrtc)
    found = {opcode.split(".")[0] for opcode in code.counts}
    assert {"LDGSTS", "SYNCS", "HGMMA"} | more <= found
    assert not found & {"LDL", "STL", "HMMA"}
    assert code.spills == 0
