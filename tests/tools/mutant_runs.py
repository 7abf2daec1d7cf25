"""A plugin of pytest that runs tests on mutants: collected once, a process is forked for each.

A few files of tests at a time, those first that are near a mutant. Each file runs without a mutant,
in a process of its own, so that no cache that another file filled hides which of its tests come by
which mutant. Then each mutant that lives is switched on, and these tests run until one fails.
``$MUTANT_PLAN`` names the file of what is asked, beside which the journal lies: what it has of the
same files is not run again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import groupby
from math import ceil, inf
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from tools.mutant_sites import in_order, runners_of_sites

SURVIVED, KILLED = range(2)
NO_MUTANT = -1
SLOWER, PATIENCE = 10, 20
"""A test hangs that takes so many times as long, and so many seconds more."""
STARTING = 60
"""Seconds more for a process of its own."""
LONGEST = 600
"""Seconds of a test that has no mutant."""
BATCH = 2
"""Files of tests for each process at a time."""


class Journal:
    """What tests found, a line for each few files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = path.read_text() if path.exists() else ""
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]

    def write(self, **line: Any) -> None:
        """Add a line."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self.lines.append(line)

    @property
    def tests(self) -> set[str]:
        """Those that have run."""
        return {test for line in self.lines for test in line["tests"]}

    @property
    def killed(self) -> set[int]:
        """The mutants that a test noticed."""
        return {number for line in self.lines for number in line["killed"]}

    @property
    def passed(self) -> Counter[int]:
        """By mutant the seconds of tests that did not notice it."""
        found: Counter[int] = Counter()
        for line in self.lines:
            found.update({int(number): seconds for number, seconds in line["passed"].items()})
        return found


@dataclass(frozen=True)
class Judge:
    """What is asked: a tests' session on the mutants of a plan."""

    path: Path

    @cached_property
    def plan(self) -> dict[str, Any]:
        """Files near each mutant, seconds for each mutant, processes at a time."""
        found: dict[str, Any] = json.loads(self.path.read_text())
        return found

    @cached_property
    def near(self) -> dict[int, list[str]]:
        """By mutant the files of tests that import it, the nearest first."""
        return {int(number): files for number, files in self.plan["near"].items()}

    @cached_property
    def journal(self) -> Journal:
        """What earlier runs found."""
        return Journal(self.path.with_name("journal"))

    @cached_property
    def imported(self) -> set[int]:
        """Mutants that imports meet: in a process that is forked later it is too late for them."""
        return {number for number, tests in self.told().items() if "" in tests}

    def told(self) -> dict[int, list[str]]:
        """Return which tests came by which mutant since this was asked last."""
        log = Path(os.environ["MUTANT_LOG"])
        found = runners_of_sites(log.read_text() if log.exists() else "")
        log.unlink(missing_ok=True)
        return found

    def alive(self) -> list[int]:
        """Return the mutants for which there is time, and which no test noticed."""
        killed, passed = self.journal.killed, self.journal.passed
        return [n for n in self.near if n not in killed and passed[n] < self.plan["seconds"]]

    def files(self, items: Iterable[pytest.Item]) -> list[list[pytest.Item]]:
        """Return tests that have not run, by file, those first that are near a mutant."""
        known = self.journal.tests
        new = [item for item in items if _name(item) not in known]
        rank: dict[str, int] = {}
        for number in self.alive():
            for place, file in enumerate(self.near[number]):
                rank[file] = min(place, rank.get(file, place))
        found = [list(some) for _, some in groupby(new, key=lambda item: item.path)]
        return sorted(found, key=lambda some: rank.get(_file(some[0]), inf))

    def judge(self, files: Sequence[Sequence[pytest.Item]]) -> None:
        """Run tests without a mutant, then on those that live; write down what they found."""
        times = self.path.with_name("times")
        times.write_text("")
        self._forked([partial(_recorded, items, times) for items in files])
        lines = [line.partition(" ") for line in times.read_text().splitlines()]
        seconds = {test: float(taken) for taken, _, test in lines}
        items = {item.nodeid: item for some in files for item in some}
        jobs = self._jobs(items, seconds)
        codes = dict(zip(jobs, self._forked([*jobs.values()]), strict=True))
        self.journal.write(
            tests=[_name(item) for item in items.values()],
            killed=[n for n, (code, _) in codes.items() if code != SURVIVED],
            passed={n: round(took, 1) for n, (code, took) in codes.items() if code == SURVIVED},
        )

    def _jobs(
        self, items: Mapping[str, pytest.Item], seconds: Mapping[str, float]
    ) -> dict[int, Callable[[], int]]:
        """Return by mutant what runs those of the tests on it that may notice it."""
        came, files = self.told(), {*map(_file, items.values())}
        failing = [f"--deselect={test}" for test in items if test not in seconds]
        jobs: dict[int, Callable[[], int]] = {}
        for n in self.alive():
            tests = [items[test] for test in in_order(came.get(n, ()), seconds)]
            near = files.intersection(self.near[n])
            if n in self.imported and (near or tests):
                arguments = (*sorted(near.union(map(_file, tests))), *failing)
                jobs[n] = partial(_in_its_own_process, n, arguments, sum(seconds.values()))
            elif tests:
                jobs[n] = partial(_judged, n, tests, seconds)
        return jobs

    def _forked(self, jobs: Sequence[Callable[[], int]]) -> list[tuple[int, float]]:
        return _forked(jobs, self.plan["jobs"])


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Run the tests on the mutants, while one lives; write what became of each."""
    judge = Judge(Path(os.environ["MUTANT_PLAN"]))
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # one for all
    session.config.pluginmanager.unregister(name="terminalreporter")  # dots of forked processes
    assert judge.imported is not None  # before another test comes by
    files = judge.files(session.items)
    size = BATCH * judge.plan["jobs"]
    for begin in range(0, len(files), size):
        if not judge.alive():
            break
        judge.judge(files[begin : begin + size])
        done, alive = min(begin + size, len(files)), judge.alive()
        print(f"{done} of {len(files)} files of tests, {len(alive)} mutants live", flush=True)
    return True


def _forked(jobs: Sequence[Callable[[], int]], at_once: int) -> list[tuple[int, float]]:
    """Run each job in a process of its own; return their codes, negative for signals, and times."""
    done = [(SURVIVED, 0.0)] * len(jobs)
    running: dict[int, tuple[int, float]] = {}

    def wait() -> None:
        pid, status = os.wait()
        _end_group(pid)  # what it started
        if pid in running:
            place, began = running.pop(pid)
            done[place] = (os.waitstatus_to_exitcode(status), time.monotonic() - began)

    try:
        for place, job in enumerate(jobs):
            while len(running) >= at_once:
                wait()
            pid = os.fork()
            if not pid:
                _run_and_exit(job)
            running[pid] = (place, time.monotonic())
        while running:
            wait()
    finally:
        for pid in running:
            _end_group(pid)
    return done


def _run_and_exit(job: Callable[[], int]) -> None:
    code = KILLED
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        code = job()
    finally:
        os._exit(code)


def _end_group(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


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


def _judged(number: int, items: Sequence[pytest.Item], seconds: Mapping[str, float]) -> int:
    """Run tests on a mutant until one fails, or hangs, which ends the process."""
    _switch().active, _switch().log = number, ""
    os.environ |= {"MUTANT": str(number), "MUTANT_LOG": ""}
    for item, following in _with_next(items):
        signal.alarm(ceil(SLOWER * seconds[item.nodeid]) + PATIENCE)
        if not _passes(item, following):
            return KILLED
    return SURVIVED


def _in_its_own_process(number: int, arguments: Sequence[str], seconds: float) -> int:
    """Run tests on a mutant that imports meet, in a process that begins with it."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *arguments]

    def passes(number: int) -> bool:
        names = {"MUTANT": str(number), "MUTANT_LOG": ""}
        done = subprocess.run(command, env=os.environ | names, check=False)
        return done.returncode in (0, pytest.ExitCode.NO_TESTS_COLLECTED)

    signal.alarm(ceil(SLOWER * seconds) + STARTING)
    return SURVIVED if passes(number) or not passes(NO_MUTANT) else KILLED


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


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _name(item: pytest.Item) -> str:
    """Return the name of a test with the text of its file: one that is written anew runs again."""
    return f"{_crc(item.path):08x} {item.nodeid}"


@cache
def _crc(path: Path) -> int:
    return crc32(path.read_bytes())


def _switch() -> Any:
    """Return the module that all processes load at their start; see `mutant_sites`."""
    return sys.modules["sitecustomize"]
