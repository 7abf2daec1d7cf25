"""TL6102: the process of a rank ended, or an exception ended its part."""

from __future__ import annotations

import signal

import pytest

from support.rank_processes import run_in_processes
from support.rank_programs import gone, killed
from tile_api.ranks import in_threads
from tile_core.errors import RankLost


def test_a_rank_that_is_killed_is_missed_at_once(tmp_path):
    found = run_in_processes(tmp_path, 3, killed, 1)
    lost = ("[TL6102] rank 1 is lost:", True, [True, True])
    assert found == [lost, -signal.SIGKILL, lost]


def test_an_exception_of_one_rank_ends_all():
    def main(ranks):
        ranks.barrier()
        if ranks.rank == 0:
            raise ZeroDivisionError("by zero")
        with pytest.raises(RankLost) as caught:
            ranks.barrier()
        assert caught.value.message == "rank 0 stopped: ZeroDivisionError: by zero"
        raise caught.value

    with pytest.raises(ZeroDivisionError):
        in_threads(3, main)


def test_a_rank_that_ends_while_a_tensor_is_made(tmp_path):
    lost, code = run_in_processes(tmp_path, 2, gone)
    assert lost.startswith("[TL6102] rank 1 is lost: process ")
    assert code == 3
