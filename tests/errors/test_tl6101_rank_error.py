"""TL6101: the ranks of a group cannot share memory."""

from __future__ import annotations

import copy
import pickle

import pytest

from support.rank_processes import run_in_processes
from support.rank_programs import forked
from tile_api.ranks import in_threads, join
from tile_core.errors import RankError


class Alone:
    """A member of a group of which nobody else is there."""

    rank, size = 0, 2

    def all_gather(self, data):
        raise ConnectionError("nobody is there")


def test_a_member_that_never_joins():
    with pytest.raises(RankError) as caught:
        join(Alone())
    assert str(caught.value) == (
        "[TL6101] rank 0 of 2 could not find the others: nobody is there\n"
        "hint: all ranks of the group have to call tile.ranks.join, in the same order"
    )


def test_there_is_no_process_group():
    with pytest.raises(RankError, match=r"\[TL6101\] torch.distributed has no process group"):
        join()


def test_a_fork_is_no_rank(tmp_path):
    assert run_in_processes(tmp_path, 2, forked) == [7, 7]


def test_other_machines_are_refused(monkeypatch):
    from tile_launch.ranks import rendezvous

    names = iter(["first", "second"])
    monkeypatch.setattr(rendezvous, "this_machine", lambda: next(names))
    with pytest.raises(RankError, match="run on different machines"):
        in_threads(2, lambda ranks: None)


def test_tensors_and_signals_stay_where_they_are():
    def main(ranks):
        for one in (ranks.zeros(2), ranks.signals(1)):
            for travel in (pickle.dumps, copy.deepcopy):
                with pytest.raises(RankError, match="cannot be copied, nor sent"):
                    travel(one)

    in_threads(1, main)
