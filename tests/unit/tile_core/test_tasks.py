"""Tasks on executors: all results, whatever becomes of workers."""

from __future__ import annotations

from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from functools import partial
from multiprocessing import get_context

import pytest

from support.tasks import kill_at_three, refused, square, square_unless_first
from tile_core.errors import FrontendTypeError, ShapeMismatch, ToolchainCrash
from tile_core.tasks import completed, results_of

SPAWNED = get_context("spawn")


class Pretended(Executor):
    """An executor of this process, in which tasks may be lost."""

    def __init__(self, lost=(), error=BrokenExecutor) -> None:
        self.lost, self.error, self.given = list(lost), error, []
        self.is_broken = self.is_closed = False
        self.most = self.open = 0

    def submit(self, function, /, *args, **kwargs):
        if self.is_broken or self.is_closed:
            raise RuntimeError("cannot schedule new futures")
        self.given.append(args[1])
        future: Future = Future()
        if args[1] in self.lost:
            self.lost.remove(args[1])
            self.is_broken = self.error is BrokenExecutor
            future.set_exception(self.error("a worker is gone"))
        else:
            future.set_result(function(*args, **kwargs))
        return future

    def shutdown(self, wait=True, *, cancel_futures=False):
        self.is_closed = True


def test_results_come_in_the_order_of_tasks():
    with ThreadPoolExecutor(3) as pool:
        assert results_of(pool, square, range(20)) == [n * n for n in range(20)]
        assert results_of(pool, square, []) == []
        assert {a.number: a.value for a in completed(pool, square, iter([3, 4]))} == {0: 9, 1: 16}
        assert pool.submit(square, 2).result() == 4  # it is the user's, and stays open


def test_what_a_task_raises_is_its_answer():
    with ThreadPoolExecutor(1) as pool:
        answers = [*completed(pool, refused, range(4))]
        assert [a.number for a in answers if a.error] == [2]
        with pytest.raises(ShapeMismatch, match="two is no shape"):
            results_of(pool, refused, range(4))


def test_tasks_without_end_are_taken_as_results_are():
    taken = []

    def tasks():
        for n in range(10**9):
            taken.append(n)
            yield n

    with ThreadPoolExecutor(2) as pool:
        answers = completed(pool, square, tasks(), ahead=4)
        found = [next(answers).number for _ in range(10)]
        answers.close()
    assert sorted(found)[:4] == [0, 1, 2, 3]
    assert len(taken) <= 14


def test_lost_tasks_are_given_out_again():
    pool = Pretended(lost=[1, 1, 4], error=OSError)
    assert results_of(pool, square, range(6)) == [n * n for n in range(6)]
    assert sorted(pool.given) == [0, 1, 1, 1, 2, 3, 4, 4, 5]
    assert not pool.is_closed


def test_a_broken_executor_is_made_again():
    made = []

    def make():
        made.append(Pretended(lost=[2] if len(made) < 2 else []))
        return made[-1]

    assert results_of(make, square, range(8)) == [n * n for n in range(8)]
    assert len(made) == 3
    assert all(pool.is_closed for pool in made)


def test_who_ends_each_process_is_found_among_many():
    found = [*completed(lambda: Pretended(lost=[11] * 9), square, range(40))]
    assert sorted(a.number for a in found) == [*range(40)]
    (lost,) = [a for a in found if a.error]
    assert lost.number == 11
    with pytest.raises(ToolchainCrash, match="task 11 ends each process that runs it: BrokenExec"):
        lost.result()


def test_a_process_here_does_the_rest_of_a_broken_executor():
    pool = Pretended(lost=[2])
    assert results_of(pool, square, range(5)) == [n * n for n in range(5)]
    assert pool.is_broken


@pytest.mark.parametrize("is_made", [False, True])
def test_processes_that_are_killed_lose_nothing(tmp_path, is_made):
    make = partial(ProcessPoolExecutor, 2, mp_context=SPAWNED)
    run = partial(square_unless_first, str(tmp_path))
    found = results_of(make if is_made else make(), run, range(12))
    assert found == [n * n for n in range(12)]
    assert (tmp_path / "ran").exists()


def test_a_task_that_kills_is_told_and_all_others_have_results():
    make = partial(ProcessPoolExecutor, 1, mp_context=SPAWNED)
    found = {a.number: a for a in completed(make, kill_at_three, range(6), ahead=2)}
    assert [found[n].value for n in (0, 1, 2, 4, 5)] == [0, 1, 4, 16, 25]
    assert isinstance(found[3].error, ToolchainCrash)


def test_dask():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client, client.get_executor(pure=False) as pool:
            assert results_of(pool, square, range(9)) == [n * n for n in range(9)]


def test_no_executor():
    with pytest.raises(FrontendTypeError, match="an executor of tasks is a int"):
        results_of(4, square, [1])
