"""A plugin of pytest that runs tests on mutants: collected once, a process is forked for each.

It records which tests come by which mutant, each file of tests in a process of its own, so that
no cache that another file filled hides one. Then each mutant is switched on, and its tests run
until one fails. ``$MUTANT_PLAN`` names the file of what is asked, beside which the answers lie.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from tools.mutant_sites import in_order, runners_of_sites

SURVIVED, KILLED, UNDECIDED = range(3)
FATES = {SURVIVED: "survived", KILLED: "killed", UNDECIDED: "undecided", -1: "killed"}
"""By exit code; a signal ends the process of a mutant that crashes or hangs."""
SLOWER, PATIENCE = 10, 20
"""A test hangs that takes so many times as long, and so many seconds more."""
LONGEST = 600
"""Seconds of a test that has no mutant."""


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Run the tests of each mutant; write what became of it, and who came by."""
    path = Path(os.environ["MUTANT_PLAN"])
    plan = json.loads(path.read_text())
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # one for all
    log, times = Path(os.environ["MUTANT_LOG"]), path.with_name("times")
    times.touch()
    files = [list(items) for _, items in groupby(session.items, key=lambda item: item.path)]
    _forked([partial(_recorded, items, times) for items in files])
    told = [line.partition(" ") for line in times.read_text().splitlines()]
    seconds = {test: float(taken) for taken, _, test in told}
    seen = runners_of_sites(log.read_text() if log.exists() else "")
    items = {item.nodeid: item for item in session.items}
    came = {int(n): in_order(seen.get(int(n), ()), seconds, near) for n, near in plan.items()}
    imported = [n for n in came if "" in seen.get(n, ())]  # no switch comes in time
    asked = [n for n in came if came[n] and n not in imported]
    end = time.monotonic() + float(os.environ["MUTANT_SECONDS"])

    def judged(place: int) -> int:
        left = (end - time.monotonic()) * CORES / (len(asked) - place)
        tests = [items[test] for test in came[asked[place]]]
        return _judged(asked[place], tests, seconds, left)

    codes = _forked([lambda place=place: judged(place) for place in range(len(asked))])
    fates = {
        n: FATES[code] if code >= 0 else "killed" for n, code in zip(asked, codes, strict=True)
    }
    answers = {"fates": fates, "came": came, "imported": imported}
    path.with_name("fates").write_text(json.dumps(answers))
    return True


CORES = os.cpu_count() or 1


def _forked(jobs: Sequence[Callable[[], int]]) -> list[int]:
    """Run each job in a process of its own; return their codes, negative for signals."""
    codes = [SURVIVED] * len(jobs)
    running: dict[int, int] = {}

    def wait() -> None:
        pid, status = os.wait()
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # what it started
        if pid in running:
            codes[running.pop(pid)] = os.waitstatus_to_exitcode(status)

    for place, job in enumerate(jobs):
        while len(running) >= CORES:
            wait()
        pid = os.fork()
        if not pid:
            code = KILLED
            try:
                os.setsid()
                nothing = os.open(os.devnull, os.O_RDWR)
                for stream in range(3):
                    os.dup2(nothing, stream)
                code = job()
            finally:
                os._exit(code)
        running[pid] = place
    while running:
        wait()
    return codes


def _recorded(items: Sequence[pytest.Item], times: Path) -> int:
    """Run tests without a mutant; write down what those take that pass."""
    for item, following in _with_next(items):
        _switch().seen.clear()
        signal.alarm(LONGEST)
        began = time.monotonic()
        if _passes(item, following):
            with times.open("a", encoding="utf-8") as file:
                file.write(f"{time.monotonic() - began:.3f} {item.nodeid}\n")
    return SURVIVED


def _judged(
    number: int, items: Sequence[pytest.Item], seconds: Mapping[str, float], limit: float
) -> int:
    """Run tests on a mutant until one fails, or hangs, which ends the process."""
    end = time.monotonic() + limit
    _switch().active, _switch().log = number, ""
    os.environ |= {"MUTANT": str(number), "MUTANT_LOG": ""}
    for item, following in _with_next(items):
        if time.monotonic() > end:
            return UNDECIDED
        signal.alarm(ceil(SLOWER * seconds[item.nodeid]) + PATIENCE)
        if not _passes(item, following):
            return KILLED
    return SURVIVED


def _with_next(items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=True)


FAILED: list[pytest.TestReport] = []
"""Of the test that runs."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep what failed."""
    if report.failed:
        FAILED.append(report)


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    FAILED.clear()
    item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
    return not FAILED


def _switch() -> Any:
    """Return the module that all processes load at their start; see `mutant_sites`."""
    return sys.modules["sitecustomize"]
