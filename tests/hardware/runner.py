"""Case after case in processes that are replaced when they hang, die, or lose their GPU."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hardware.cases import Case
from hardware.worker import serve

LOST = ("hung", "died")
"""What costs a process, and maybe the time until a limit."""


@dataclass(frozen=True)
class Limits:
    """How long things may take.

    Parameters
    ----------
    case, start
        Seconds for the launches of a case, and until a new process is ready.
    all
        Seconds for everything: then no other case begins.
    repeats
        Launches of a case.
    give_up
        After so many lost cases whose most complex feature is the same, others of it are skipped.
    """

    case: float = 20.0
    start: float = 120.0
    all: float = 540.0
    repeats: int = 5
    give_up: int = 3


class CannotStart(Exception):
    """There is nothing to run cases on."""


class Worker:
    """A process that runs cases, one at a time.

    Raises
    ------
    CannotStart
        If it has nothing to run them on.
    """

    def __init__(self, executor: str, folder: Path, limits: Limits) -> None:
        context = multiprocessing.get_context("spawn")
        self.limits = limits
        self._orders, theirs = context.Pipe()
        self._process = context.Process(
            target=serve, args=(theirs, executor, str(folder)), daemon=True
        )
        self._process.start()
        theirs.close()
        said = self._answer(limits.start)
        if "about" not in said:
            self.stop()
            raise CannotStart(said.get("broken") or said["message"])
        self.about: str = said["about"]
        self.is_usable = True

    def run(self, case: Case) -> dict[str, Any]:
        """Return what became of a case; afterwards the worker may be of no use."""
        start = time.perf_counter()
        self._orders.send((case.line(), self.limits.repeats))
        record = self._answer(self.limits.case)
        record.setdefault("seconds", round(time.perf_counter() - start, 4))
        self.is_usable = record.pop("is_usable", False)
        if not self.is_usable:
            self.stop()
        return record

    def _answer(self, seconds: float) -> dict[str, Any]:
        """Return what the process says, or what became of it."""
        try:
            if self._orders.poll(seconds):
                said: dict[str, Any] = self._orders.recv()
                return said
        except (EOFError, ConnectionResetError):
            self._process.join(10)
            return {"status": "died", "message": _last_words(self._process.exitcode)}
        self.stop()
        return {"status": "hung", "message": f"not done after {seconds:g} seconds"}

    def stop(self) -> None:
        """End the process, whatever it does; one that a driver holds is left behind."""
        self._process.kill()
        self._process.join(10)


def _last_words(code: int | None) -> str:
    if code is not None and code < 0:
        return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process ended with status {code}"


def run_cases(
    cases: Sequence[Case],
    executor: str,
    folder: Path,
    limits: Limits,
    note: Callable[[str], None] = print,
) -> Iterator[dict[str, Any]]:
    """Yield a record for each case, in their order.

    Raises
    ------
    CannotStart
        If there is nothing to run them on, at first or after a process was lost.
    """
    begin = time.perf_counter()
    worker: Worker | None = None
    lost: Counter[str] = Counter()
    try:
        for case in cases:
            hardest = case.features[-1]
            if time.perf_counter() - begin > limits.all:
                record = {"status": "skipped", "message": "no time is left"}
            elif lost[hardest] >= limits.give_up:
                told = f"{lost[hardest]} cases with {hardest} hung or died"
                record = {"status": "skipped", "message": told}
            else:
                if worker is None or not worker.is_usable:
                    worker = Worker(executor, folder, limits)
                    note(f"on {worker.about}")
                record = worker.run(case)
                lost[hardest] += record["status"] in LOST
            yield {
                "case": case.name, "features": case.features, "lowered_for": case.lowered_for,
                **record,
            }  # fmt: skip
    finally:
        if worker is not None:
            worker.stop()
