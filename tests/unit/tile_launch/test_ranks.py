"""Ranks of a group share memory, meet, and all learn of it when one fails."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from support.rank_processes import run_in_processes
from support.rank_programs import sums
from tile_launch.errors import ArgumentDtypeError, ArgumentShapeError, RankError, RankLost
from tile_launch.ranks import futex
from tile_launch.ranks.meeting import _has_come
from tile_launch.ranks.threads import in_threads


@pytest.mark.parametrize("size", [1, 2, 3])
def test_threads_share_tensors(size):
    shape = (3, 5)
    for found, ten, _ in in_threads(size, lambda ranks: sums(ranks, "int16", shape)):
        assert found == [15 * (rank + 1) for rank in range(size)]
        assert ten == [10 * rank for rank in range(size)]


def test_processes_share_tensors(tmp_path):
    for found, ten, _ in run_in_processes(tmp_path, 3, sums, "float64", (5000,)):
        assert found == [5000, 10_000, 15_000]
        assert ten == [0, 10, 20]


def test_tensors_without_elements_or_dimensions():
    def main(ranks):
        return ranks.zeros(0).local.shape, ranks.zeros((), "int32").everyone.shape

    assert in_threads(2, main) == [((0,), (2,))] * 2


def test_nothing_is_left_open_or_mapped():
    def main(ranks):
        for _ in range(3):
            ranks.zeros(1000)
            ranks.signals(2)
        ranks.barrier()

    in_threads(2, main)
    before = len(os.listdir("/proc/self/fd")), maps()
    for _ in range(3):
        in_threads(2, main)
    assert (len(os.listdir("/proc/self/fd")), maps()) == before


def maps() -> int:
    """Count the segments that this process has mapped."""
    return Path("/proc/self/maps").read_text().count("memfd:tile")


def test_a_tensor_outlives_its_ranks():
    (x, _) = in_threads(2, lambda ranks: ranks.zeros(4, "int32").everyone)
    x[:] = 3
    assert x.sum() == 24


def test_words_are_added_to_and_waited_on():
    words = np.zeros(2, np.uint32)
    address = words.ctypes.data
    for amount in (1, 2047, -1, -2047):
        futex.add(address, amount)
    futex.add(address + 4, -1)
    assert words.tolist() == [0, 2**32 - 1]
    assert not futex.wait(address, 0, 0.01)
    assert futex.wait(address, 5, 10)  # it is not 5


def test_counters_wrap_around():
    assert _has_come(3, 3)
    assert _has_come(4, 3)
    assert not _has_come(2, 3)
    assert _has_come(1, 2**32 - 1)
    assert not _has_come(2**32 - 1, 1)


def test_a_launch_finds_signals_at_zero_and_others_told_of_failures():
    def main(ranks):
        flags = ranks.signals(2)
        for _ in range(3):
            with ranks.launch("a kernel", [flags]):
                assert flags.local[1] in (0, 5)
                flags.everyone[1 - ranks.rank, 1] += 5
            assert not flags.local.any()
        with (
            pytest.raises(RankLost if ranks.rank else KeyError),
            ranks.launch("a kernel", [flags]),
        ):
            assert ranks.rank or {}["x"]
        return True

    assert in_threads(2, main) == [True, True]


@pytest.mark.parametrize(
    ("dtype", "name"),
    [("bfloat16", "bfloat16"), (np.int8, "int8"), (np.dtype("float64"), "float64")],
)
def test_element_types(dtype, name):
    (x,) = in_threads(1, lambda ranks: ranks.zeros(3, dtype))
    assert x.local.dtype.name in (name, "uint16")
    with pytest.raises(ArgumentDtypeError, match="no element type is called 'number'"):
        in_threads(1, lambda ranks: ranks.zeros(3, "number"))


@pytest.mark.parametrize("ask", [lambda r: r.zeros((2, -3)), lambda r: r.signals(-1)])
def test_negative_dimensions_are_refused(ask):
    with pytest.raises(ArgumentShapeError) as caught:
        in_threads(1, ask)
    assert "has a negative dimension\n" in str(caught.value)
    assert str(caught.value).endswith("hint: dimensions are whole numbers, 0 or more")


def test_more_memory_than_there_is_is_refused_before_it_is_taken():
    with pytest.raises(RankError) as caught:
        in_threads(1, lambda ranks: ranks.zeros(1 << 50))
    assert str(caught.value) == (
        f"[TL6101] {1 << 52} bytes that ranks share could not be made: Cannot allocate memory\n"
        "hint: make smaller tensors, or give the processes more memory"
    )


@pytest.mark.parametrize("size", [0, -1])
def test_groups_without_ranks_are_refused(size):
    with pytest.raises(RankError, match=f"a group of {size} ranks"):
        in_threads(size, lambda ranks: ranks.rank)
