"""Candidates that workers of an executor compile: measured here, lost nowhere."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import pytest

from support.tuned import tuned_double
from tile_api.autotuner.job import Job
from tile_api.autotuner.options import TuneOptions
from tile_api.autotuner.process import CANCELLED, Worker
from tile_api.autotuner.session import TuningSession
from tile_api.compile_request import kernel_of, with_outputs
from tile_api.disk_cache.store import DiskCache
from tile_core.errors import FrontendTypeError
from tile_core.plugins.host import default_host

BLOCKS = (16, 32, 64)
POOL = partial(ProcessPoolExecutor, 1, mp_context=get_context("spawn"))


@pytest.fixture
def jobs(tmp_path):
    """Return the files of jobs; that of block 7 asks for a target that there is not."""
    target = str(default_host().resolve("cpu")[1])
    found = []
    for block in (*BLOCKS, 7):
        func = tuned_double([{"block": 64}]).get_tir(64, block=block % 7 or 16)
        job = Job(with_outputs(kernel_of(func), [-1]), target if block != 7 else "toaster")
        found.append(str(tmp_path / f"job{block}"))
        job.write(tmp_path / f"job{block}")
    return found


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return what makes a session whose own processes compile nothing."""
    asked = []
    monkeypatch.setattr(Worker, "ask", lambda *args, **_: asked.append(args))
    made = []

    def session(executor):
        made.append(TuningSession(tmp_path, 1, "cpu", executor))
        return made[-1]

    yield session
    for one in made:
        one.close()
    assert not asked


@pytest.mark.parametrize("is_killed", [False, True])
def test_what_comes_back_is_in_the_cache(place, jobs, tmp_path, is_killed):
    with POOL() as pool:
        if is_killed:
            pool.submit(os.kill, pool.submit(os.getpid).result(), signal.SIGKILL)
        replies = [*place(pool).compile(jobs, 100, None)]
    assert [reply["ok"] for reply in replies] == [True, True, True, False]
    assert replies[3]["code"] == "TL7001"
    store = DiskCache(tmp_path / "cache", 1 << 30)
    keys = [Job.read(job).compiled().compile_key() for job in jobs[:3]]
    assert all(store.find(key.digest, str(key)) is not None for key in keys)


def test_what_is_late_is_cancelled(place, jobs):
    with POOL() as pool:
        replies = [*place(pool).compile(jobs, 100, time.monotonic())]
    assert [reply.get("code") for reply in replies].count(CANCELLED) == 3


def test_a_search(tmp_path, monkeypatch):
    monkeypatch.setenv("TILE_TUNE_DIR", str(tmp_path))
    monkeypatch.setattr(TuningSession, "_all", lambda *_: pytest.fail("it compiles here"))
    monkeypatch.setattr("tile_api.autotuner.tune._expected", lambda *_: {})
    configs = [{"block": block} for block in BLOCKS]
    with POOL() as pool:
        tuned = tuned_double(configs, rep=1, warmup=1, executor=pool).tune(64)
    assert [c.outcome.status for c in tuned.candidates] == ["ok"] * 3
    assert tuned.source == "search"


def test_no_executor():
    with pytest.raises(FrontendTypeError, match="an executor of tasks is a str"):
        TuneOptions(executor="dask")
