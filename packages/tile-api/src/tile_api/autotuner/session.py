"""A folder and processes for one search; whatever happens, both are gone afterwards."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tile_api.autotuner.job import Job, compiled_entry
from tile_api.autotuner.machine import machine_lock, torch_threads
from tile_api.autotuner.process import CANCELLED, HUNG, START_TIMEOUT, Worker, failure
from tile_api.disk_cache.atomic_write import is_alive
from tile_api.disk_cache.entry import decode
from tile_api.disk_cache.location import CacheSettings
from tile_api.disk_cache.store import DiskCache
from tile_core.environment import environment
from tile_core.tasks import Executors, completed

_PREFIX = "tile-tune-"
_LATE = {"ok": False, "code": CANCELLED, "message": "the time was over"}
_OFF = (
    "TILE_DISABLE_CACHE",
    "TILELANG_DISABLE_CACHE",
    "TILE_CACHE_SIZE",
    "TILE_VERBOSE",
    "TILELANG_VERBOSE",
    "TILE_LOGS",
    "TILE_KEEP",
    "TL_LOWER_TRACE",
)


class TuningSession:
    """Several processes that compile at once, and one that measures while they rest.

    The folder is for jobs, tensors, and the cache that hands compiled kernels to who measures them.
    """

    def __init__(
        self, folder: Path, count: int, target: str, executor: Executors | None = None
    ) -> None:
        self.folder = folder
        self._executor = executor
        self.cache = folder / "cache"
        told = worker_environment(environment(), self.cache)
        warm = {"do": "warm", "target": target}
        self._compilers = [Worker(told, warm) for _ in range(count)]
        self._meter = Worker(told, {"do": "ready", "target": target})
        self._free: SimpleQueue[Worker] = SimpleQueue()
        for worker in self._compilers:
            self._free.put(worker)
        self._pool = ThreadPoolExecutor(count, "tile-tune")

    @property
    def count(self) -> int:
        """How many candidates are compiled at once."""
        return len(self._compilers)

    def start(self) -> None:
        """Let the processes load what they need, while something else is done here."""
        compilers = self._compilers if self._executor is None else []
        for worker in (*compilers, self._meter):
            with suppress(OSError):  # whoever asks it is told
                worker.start()

    def compile(
        self, jobs: Sequence[str], timeout: float, deadline: float | None
    ) -> Iterator[dict[str, Any]]:
        """Compile candidates at once, each in `timeout` seconds; yield their replies in order.

        What is not compiled by the deadline, on the monotonic clock, is cancelled. Workers of an
        executor cannot be killed from here: `timeout` does not hold for them.
        """
        if self._executor is not None:
            yield from self._compiled_elsewhere(self._executor, jobs, deadline)
            return
        yield from self._all("compile", [{"job": job} for job in jobs], timeout, deadline)

    def expect(
        self, jobs: Sequence[str], sizes: Mapping[str, int], timeout: float, deadline: float | None
    ) -> Iterator[dict[str, Any]]:
        """Ask the cost model what it expects of candidates; yield replies, as `compile`."""
        asked = [{"job": job, "sizes": dict(sizes)} for job in jobs]
        yield from self._all("expect", asked, timeout, deadline)

    def ask_meter(self, do: str, timeout: float, **arguments: Any) -> dict[str, Any]:
        """Ask the process that measures, which has to load the candidate first.

        That takes no time, unless the candidate is one of those that no cache keeps: it is
        compiled again then, and that is no part of what it does.
        """
        loaded = self._meter.ask("load", START_TIMEOUT, job=arguments["job"])
        if not loaded["ok"]:
            return loaded
        with machine_lock():
            return self._meter.ask(do, timeout, **arguments)

    def close(self) -> None:
        """End all processes; who waits for one of them is told, and no other one is started."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for worker in (*self._compilers, self._meter):
            worker.end()
        self._pool.shutdown(wait=True)
        for worker in (*self._compilers, self._meter):
            worker.kill()

    def _compiled_elsewhere(
        self, executor: Executors, jobs: Sequence[str], deadline: float | None
    ) -> list[dict[str, Any]]:
        """Compile candidates on an executor, and put what comes back where it is looked for."""
        replies: list[dict[str, Any]] = [_LATE for _ in jobs]
        store = DiskCache(self.cache, CacheSettings.from_environment({}).limit)
        for answer in completed(executor, compiled_entry, [Job.read(job) for job in jobs]):
            if answer.error is not None:
                replies[answer.number] = failure(answer.error)
            else:
                if answer.value is not None and (entry := decode(answer.value[1])) is not None:
                    store.keep(answer.value[0], entry)
                replies[answer.number] = {"ok": True}
            if deadline is not None and time.monotonic() > deadline:
                break
        return replies

    def _all(
        self, do: str, requests: Sequence[Mapping[str, Any]], timeout: float, deadline: float | None
    ) -> Iterator[dict[str, Any]]:
        asked = [self._pool.submit(self._on_free, do, timeout, deadline, r) for r in requests]
        for future in asked:
            yield future.result()

    def _on_free(
        self, do: str, timeout: float, deadline: float | None, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        worker = self._free.get()
        try:
            left = timeout if deadline is None else min(timeout, deadline - time.monotonic())
            if left <= 0:
                return _LATE
            reply = worker.ask(do, left, **arguments)
            if reply.get("code") == HUNG and left < timeout:
                return {**reply, "code": CANCELLED}
            return reply
        finally:
            self._free.put(worker)


@contextmanager
def workplace(
    count: int, target: str, executor: Executors | None = None
) -> Iterator[TuningSession]:
    """Provide a workplace, and clear it away."""
    _clear_after_the_dead()
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    place = TuningSession(folder, count, target, executor)
    try:
        yield place
    finally:
        place.close()
        shutil.rmtree(folder, ignore_errors=True)


def _clear_after_the_dead() -> None:
    """Remove the folders of searches that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        number = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if number.isdecimal() and not is_alive(int(number)):
            shutil.rmtree(folder, ignore_errors=True)


def worker_environment(user: Mapping[str, str], cache: Path) -> dict[str, str]:
    """Return the environment of workers: the user's, with a cache of their own.

    They use as many threads as a kernel would use here.
    """
    found = {k: v for k, v in user.items() if k not in _OFF}
    found["TILE_CACHE_DIR"] = str(cache)
    threads = torch_threads()
    if threads:
        found["OMP_NUM_THREADS"] = str(threads)
    return found
