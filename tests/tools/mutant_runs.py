"""A plugin of pytest that runs tests on mutants: collected once, a process is forked for each.

First on each mutant the files of tests nearest to it, at last all, a few files at a time. A file
runs once without a mutant, in a process of its own, so that no cache that another file filled hides
which of its tests come by which mutant. Then each mutant that lives is switched on, and these tests
run until one fails.
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
from typing import Any, NamedTuple
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
REACHES = (1, 4, 16, inf)
"""So many files near a mutant run on it before others do: most mutants die in the nearest."""
BATCH = 2
"""Files of tests for each process at a time."""


class Met(NamedTuple):
    """The seconds of a test without a mutant, None if it fails; and the mutants it comes by."""

    seconds: float | None
    numbers: Sequence[int] = ()


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

    def asked(self) -> dict[str, set[int]]:
        """Return by test the mutants that it has met, or that did not come by."""
        found: dict[str, set[int]] = {}
        for line in self.lines:
            for tests, numbers in line["asked"]:
                for test in tests:
                    found.setdefault(test, set()).update(numbers)
        return found

    def met(self) -> dict[str, Met]:
        """Return what is known of the tests that ran without a mutant."""
        found = (line.get("met", {}) for line in self.lines)
        return {test: Met(*told) for some in found for test, told in some.items()}

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
        """Mutants that imports meet: where tests do not, a process that is forked is too late."""
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

    def wanted(self, file: str, reach: float) -> set[int]:
        """Return the mutants that live for which a file is among the nearest, up to `reach`."""
        alive = self.alive()
        return {n for n in alive if reach == inf or file in self.near[n][: int(reach)]}

    def run(self, items: Iterable[pytest.Item], reach: float) -> None:
        """Run tests on the mutants that they have not met, a few files at a time."""
        files = [list(some) for _, some in groupby(items, key=lambda item: item.path)]
        asked = self.journal.asked()
        batch: list[tuple[list[pytest.Item], set[int]]] = []
        for place, some in enumerate(files, 1):
            wanted = self.wanted(_file(some[0]), reach)
            new = [item for item in some if not wanted <= asked.get(_name(item), set())]
            if new:
                batch.append((new, wanted))
            if len(batch) == BATCH * self.plan["jobs"] or (batch and place == len(files)):
                self.judge(batch)
                batch = []
                told = f"{place} of {len(files)} files of tests, {len(self.alive())} mutants live"
                print(f"{told}; of each the {reach} nearest", flush=True)

    def judge(self, batch: Sequence[tuple[list[pytest.Item], set[int]]]) -> None:
        """Run tests without a mutant, then on those that are wanted; write down what they find."""
        met = self.journal.met()
        new = [items for items, _ in batch if not {*map(_name, items)} <= met.keys()]
        told = self.recorded(new)
        met |= told
        all_items = {_name(item): item.nodeid for items, _ in batch for item in items}
        ran = {test: met[name] for name, test in all_items.items()}
        seconds = {test: one.seconds for test, one in ran.items() if one.seconds is not None}
        jobs = {}
        for n in sorted(set().union(*(numbers for _, numbers in batch))):
            items = [item for some, numbers in batch if n in numbers for item in some]
            came = [test for test, one in ran.items() if n in one.numbers]
            job = self._job(n, {item.nodeid: item for item in items}, came, seconds)
            if job is not None:
                jobs[n] = job
        codes = dict(zip(jobs, self._forked([*jobs.values()]), strict=True))
        self.journal.write(
            asked=[([*map(_name, items)], sorted(numbers)) for items, numbers in batch],
            killed=[n for n, (code, _) in codes.items() if code != SURVIVED],
            passed={n: round(took, 1) for n, (code, took) in codes.items() if code == SURVIVED},
            met=told,
        )

    def recorded(self, files: Sequence[Sequence[pytest.Item]]) -> dict[str, Met]:
        """Run tests without a mutant; return how long they take, and which mutants they come by."""
        times = self.path.with_name("times")
        times.write_text("")
        self._forked([partial(_recorded, items, times) for items in files])
        lines = [line.partition(" ") for line in times.read_text().splitlines()]
        seconds = {test: float(taken) for taken, _, test in lines}
        numbers: dict[str, list[int]] = {}
        for number, tests in self.told().items():
            for test in tests:
                numbers.setdefault(test, []).append(number)
        return {
            _name(item): Met(seconds.get(item.nodeid), numbers.get(item.nodeid, ()))
            for items in files
            for item in items
        }

    def _job(
        self,
        number: int,
        items: Mapping[str, pytest.Item],
        came: Iterable[str],
        seconds: Mapping[str, float],
    ) -> Callable[[], int] | None:
        """Return what runs those of the tests on a mutant that may notice it."""
        known = {test: taken for test, taken in seconds.items() if test in items}
        tests = [items[test] for test in in_order(came, known)]
        if tests:
            return partial(_judged, number, tests, known)
        near = {*map(_file, items.values())}.intersection(self.near[number])
        if number not in self.imported or not near:
            return None
        failing = [f"--deselect={test}" for test in items if test not in known]
        return partial(_in_its_own_process, number, [*sorted(near), *failing], sum(known.values()))

    def _forked(self, jobs: Sequence[Callable[[], int]]) -> list[tuple[int, float]]:
        return _forked(jobs, self.plan["jobs"])


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Run the tests on the mutants, while one lives; write what became of each."""
    judge = Judge(Path(os.environ["MUTANT_PLAN"]))
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # one for all
    session.config.pluginmanager.unregister(name="terminalreporter")  # dots of forked processes
    assert judge.imported is not None  # before another test comes by
    for reach in REACHES:
        judge.run(session.items, reach)
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
