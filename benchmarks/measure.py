"""Interleaved timing of competitors, and the table they are printed in."""

from __future__ import annotations

import ctypes
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

Run = Callable[[], object]

VISIT = 0.02
"""Seconds after which a visit to one run ends; runs that take longer are timed once a visit."""

FEWEST, FEWEST_LONG, LONG = 5, 3, 0.1
"""Visits behind a median; of runs that take `LONG` seconds, which average by themselves."""


def set_threads(count: int) -> None:
    """Give every library the same number of threads, from now on."""
    import torch
    from threadpoolctl import threadpool_limits

    from tile_cpu.openmp_threads import set_num_threads

    torch.set_num_threads(count)
    threadpool_limits(count)
    set_num_threads(count)


@lru_cache(maxsize=1)
def keep_freed_memory() -> None:
    """Let the allocator of glibc keep what is freed.

    Else results of megabytes are given back to the system after each call, or are not, as the heap
    happens to lie after other contenders: their pages take longer to get than to fill.
    """
    with suppress(AttributeError, OSError):  # another library of C
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)
        mallopt(_MMAP_THRESHOLD, 2**30)


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of glibc: for bytes kept at the end of the heap, and for those with maps of their own."""


def wait_for_idle_workers(most: float = 0.5) -> None:
    """Sleep until this process's other threads sleep too, for at most so many seconds.

    The workers of OpenBLAS and of OpenMP spin after a call, up to a tenth of a second, in the
    hope of the next one. Each library has its own, so those of one contender take cores from
    the next. The kernel is asked for the threads' states: their clocks stand still between
    its ticks.
    """
    deadline = time.perf_counter() + most
    while _others_run() and time.perf_counter() < deadline:
        time.sleep(1e-3)


def _others_run() -> bool:
    """Whether a thread of this process other than the caller's is running or ready to."""
    own = str(threading.get_native_id())
    tasks = Path("/proc/self/task")
    if not tasks.exists():
        return False
    for task in tasks.iterdir():
        try:
            stat = "" if task.name == own else (task / "stat").read_text()
        except OSError:  # it has just ended
            continue
        # "number (name) state ...", and names may hold anything
        if stat.rpartition(") ")[2].startswith("R"):
            return True
    return False


def median_ms(runs: Mapping[str, Run], threads: int, seconds: float = 1.0) -> dict[str, float]:
    """Return each run's median milliseconds; all take turns, so drift is shared.

    Each round begins with another run: none always comes after the same one.
    One visit times a run several times in a row after one untimed call, as in steady use;
    a run that lasts long by itself needs none. With one thread the clock is that thread's own,
    which other processes do not disturb. With more, a visit begins when the workers of the run
    before it have gone to sleep. After `seconds` no further round of visits begins, unless
    there were too few for a median.
    """
    keep_freed_memory()
    clock = time.thread_time if threads == 1 else time.perf_counter

    def timed(run: Run) -> float:
        start = clock()
        run()
        return clock() - start

    first = {name: timed(run) for name, run in runs.items()}
    once = {name: t if t > LONG else timed(runs[name]) for name, t in first.items()}
    per_visit = {name: max(1, min(20, int(VISIT / (t + 1e-9)))) for name, t in once.items()}
    fewest = FEWEST_LONG if min(once.values()) > LONG else FEWEST
    times: dict[str, list[float]] = {name: [] for name in runs}
    deadline, rounds = time.perf_counter() + seconds, 0
    while time.perf_counter() < deadline or rounds < fewest:
        order = [*runs][rounds % len(runs) :] + [*runs][: rounds % len(runs)]
        rounds += 1
        for name in order:
            run = runs[name]
            if threads > 1:
                wait_for_idle_workers()
            if once[name] <= LONG:
                run()
            times[name] += [timed(run) for _ in range(per_visit[name])]
    return {name: statistics.median(found) * 1e3 for name, found in times.items()}


@dataclass(frozen=True, slots=True)
class Row:
    """One measured case.

    Parameters
    ----------
    work
        GFLOP, or GB, of one call.
    peak
        The most the machine does per second, in the same unit; 0 if unknown.
    bar
        The least ratio that is good enough; 0 if there is none.
    """

    name: str
    threads: int
    ours_ms: float
    peers_ms: Mapping[str, float]
    work: float
    peak: float = 0.0
    bar: float = 0.0

    @property
    def ratio(self) -> float:
        """How many times faster than the best peer."""
        return min(self.peers_ms.values()) / self.ours_ms


def print_table(title: str, unit: str, rows: Iterable[Row]) -> None:
    """Print rows as they come, with rates, the share of the peak, and ratios to each peer."""
    print(f"\n{title}")
    print(
        f"{'case':<34} thr {'ours ms':>9} {unit:>8} {'peak':>5} {'ratio':>6} {'bar':>5}  peers ms",
        flush=True,
    )
    ratios = []
    for row in rows:
        rate = row.work / row.ours_ms * 1e3
        share = f"{rate / row.peak:4.0%}" if row.peak else "   –"
        bar = f"{row.bar:5.2f}" if row.bar else "    –"
        flag = " " if not row.bar or row.ratio >= row.bar else "!"
        peers = ", ".join(f"{name} {ms:.3f}" for name, ms in row.peers_ms.items())
        ratios.append(row.ratio)
        print(
            f"{row.name:<34} {row.threads:>3} {row.ours_ms:9.3f} {rate:8.1f} {share:>5} "
            f"{row.ratio:6.2f}{flag}{bar}  {peers}",
            flush=True,
        )
    print(f"geometric mean of ratios: {statistics.geometric_mean(ratios):.3f}")


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))
