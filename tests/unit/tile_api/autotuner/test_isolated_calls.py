"""Candidates that hang or end their process while they are traced: recorded, and never fatal."""

from __future__ import annotations

import json
import mmap
import os
import signal
import sys
import threading
import time
import warnings

import pytest

import tile_api as tile
import tile_api.language as T
from tile_api.autotuner import isolated_calls
from tile_api.autotuner.configs import Config
from tile_api.autotuner.isolated_calls import rehearsed
from tile_api.autotuner.outcome import FAILED, OK, TrialOutcome
from tile_api.autotuner.process import CRASHED, HUNG
from tile_api.autotuner.ranking import traced

pytestmark = pytest.mark.skipif(not isolated_calls.CAN_FORK, reason="there are no forks here")

GOOD, COMPUTES, WAITS, EXITS, KILLED, RAISES, LEAVES = range(7)
HERE = os.getpid()
HUNG_TEXT = "it did not come to an end within 1 s while it was traced"
EXPECTED = {
    GOOD: (OK, "", ""),
    COMPUTES: (FAILED, HUNG, HUNG_TEXT),
    WAITS: (FAILED, HUNG, HUNG_TEXT),
    EXITS: (FAILED, CRASHED, "it ended its process with status 3 while it was traced"),
    KILLED: (FAILED, CRASHED, "it ended its process with SIGKILL while it was traced"),
    RAISES: (FAILED, "KeyError", "'seven'"),
    LEAVES: (FAILED, "SystemExit", "5"),
}


def misbehave(deed):
    """Do a deed; those that would take the tests along are refused outside of forks."""
    if deed in (COMPUTES, WAITS, EXITS, KILLED) and os.getpid() == HERE:
        raise AssertionError(f"deed {deed} was traced in the user's process")
    while deed == COMPUTES:
        pass
    if deed == WAITS:
        threading.Event().wait()
    elif deed == EXITS:
        os._exit(3)
    elif deed == KILLED:
        os.kill(os.getpid(), signal.SIGKILL)
    elif deed == RAISES:
        raise KeyError("seven")
    elif deed == LEAVES:
        sys.exit(5)


def tuned_fill(deeds, **options):
    @tile.autotune(configs=[{"deed": d} for d in deeds], timeout=1, rep=1, warmup=1, **options)
    @tile.jit(out_idx=[-1], target="cpu")
    def fill(n, deed=GOOD):
        misbehave(deed)

        @T.prim_func
        def main(B: T.Tensor((n,), "float32")):
            with T.Kernel(1):
                for i in T.Parallel(n):
                    B[i] = 1.0

        return main

    return fill


def test_a_search_records_what_each_does_and_goes_on(tuning, in_process):
    found = tuned_fill([*reversed(EXPECTED)]).tune(16)
    assert (found.source, found.config.values) == ("search", {"deed": GOOD})
    told = {
        c.config.values["deed"]: (c.outcome.status, c.outcome.code, c.outcome.message)
        for c in found.candidates
    }
    assert told == EXPECTED
    (table,) = (tuning / "tables").glob("fill-*.json")
    records = json.loads(table.read_text())["records"]
    assert {r["config"]["deed"]: (r["status"], r["code"]) for r in records} == {
        deed: (status, code) for deed, (status, code, _) in EXPECTED.items()
    }


def test_a_search_by_the_model_goes_on_too(tuning):
    found = tuned_fill([COMPUTES, EXITS, GOOD], budget="model").tune(16)
    assert (found.source, found.config.values) == ("model", {"deed": GOOD})
    failed = {c.config.values["deed"]: c.outcome for c in found.candidates if c.outcome.message}
    assert {deed: (o.status, o.code, o.message) for deed, o in failed.items()} == {
        deed: EXPECTED[deed] for deed in (COMPUTES, EXITS)
    }


def test_the_log_tells_the_next_search_at_once(tuning, in_process, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("tile_api.autotuner.tune._jobs", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tuned_fill([COMPUTES, KILLED, RAISES, GOOD]).tune(16)
    (log,) = (tuning / "logs").glob("*")
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(rows) == 2
    assert {r["config"]["deed"]: (r["status"], r["code"], r["message"]) for r in rows} == {
        deed: EXPECTED[deed] for deed in (COMPUTES, KILLED)
    }


def test_what_failed_before_is_not_traced():
    def trace(values):
        return misbehave(values["deed"])

    configs = [Config({"deed": d}) for d in (COMPUTES, GOOD)]
    known = {configs[0].key: TrialOutcome(FAILED, HUNG, "an hour ago")}
    hung, good = traced(configs, trace, 1, known)
    assert hung.outcome == known[configs[0].key]
    assert (hung.number, good.number, good.outcome.status) == (0, 1, "untried")


def outcomes(calls, timeout=1.0):
    return dict(rehearsed(calls, timeout))


def counted(monkeypatch):
    """Return a list that grows by one for each fork."""
    forks, fork = [], os.fork
    monkeypatch.setattr(os, "fork", lambda: forks.append(1) or fork())
    return forks


def test_calls_that_end_need_one_fork(monkeypatch, capfd):
    forks = counted(monkeypatch)
    assert outcomes([lambda: print("twice?"), lambda: 1 / 0, sys.exit]) == dict.fromkeys(range(3))
    assert len(forks) == 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("count", [0, 1])
def test_a_choice_of_one_needs_no_fork(count, monkeypatch):
    forks = counted(monkeypatch)
    assert outcomes([sys.exit] * count) == dict.fromkeys(range(count))
    assert not forks


def test_a_lock_that_another_thread_held_is_nobodys_failure(monkeypatch):
    lock, fork = threading.Lock(), os.fork
    lock.acquire()
    forks = []

    def release_and_fork():
        forks.append(1)
        if len(forks) == 2:
            lock.release()
        return fork()

    monkeypatch.setattr(os, "fork", release_and_fork)

    def locked():
        with lock:
            pass

    assert outcomes([locked, int], 0.5) == {0: None, 1: None}
    assert len(forks) == 2


def test_a_lock_that_no_fork_opens_leaves_all_to_this_process():
    lock = threading.Lock()
    lock.acquire()
    assert outcomes([lock.acquire] * 5, 0.4) == dict.fromkeys(range(5))


def test_a_process_slow_to_clear_away_has_not_computed():
    size = 1 << 30
    ballast = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for page in range(0, size, mmap.PAGESIZE):
        ballast[page] = 1
    with isolated_calls._fork([signal.pause]) as fork:
        assert not fork.finishes(0.05)
        outcome, is_sure = fork.failure(0.05)
    assert (outcome.code, is_sure) == (HUNG, False)


def test_what_waits_is_at_fault_if_others_end():
    found = outcomes([threading.Event().wait, int], 0.2)
    assert (found[0].code, found[1]) == (HUNG, None)


def test_what_crashes_once_is_nobodys_failure(tmp_path):
    marker = tmp_path / "was here"

    def once():
        if not marker.exists():
            marker.touch()
            os._exit(1)

    assert outcomes([once, int]) == {0: None, 1: None}


def test_nobody_sees_warnings_of_our_forks(monkeypatch):
    fork = os.fork

    def warning_fork():
        text = "os.fork() was called. It is incompatible with multithreaded code"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
        text = "This process is multi-threaded, use of fork() may lead to deadlocks in the child."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return fork()

    monkeypatch.setattr(os, "fork", warning_fork)
    assert outcomes([int, int]) == {0: None, 1: None}


def test_a_search_that_is_given_up_leaves_no_process(monkeypatch):
    children, fork = [], os.fork
    monkeypatch.setattr(os, "fork", lambda: children.append(fork()) or children[-1])
    found = rehearsed([int, lambda: time.sleep(1000)], 100)
    assert next(found) == (0, None)
    found.close()
    with pytest.raises(ProcessLookupError):
        os.kill(children[0], 0)
