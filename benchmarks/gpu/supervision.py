"""Watches the process that measures: ends it when it hangs, goes on without the culprit."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WORKER = Path(__file__).with_name("worker.py")
STARTING = 120.0
"""Seconds until a process has imported torch and says something."""

TRIES = 40
"""Processes that are started at most."""


class Supervisor:
    """Lets workers do a job until it is done.

    Parameters
    ----------
    job
        What a worker is told; what is added here is which problems are left, whether the
        machine is to be measured, and who is left out: ``skip[problem][contestant]``.
    place
        A folder for files.
    results
        Is filled: ``machine``, ``problems`` by name, ``skipped`` by name.
    keep
        Is called with the results, and the name of what is new, whenever something is.
    end
        When to stop, whatever is under way; as `time.time` tells it.
    command
        Starts a worker; the name of the job's file comes behind it.
    """

    def __init__(
        self,
        job: dict[str, Any],
        place: Path,
        results: dict[str, Any],
        keep: Callable[[dict[str, Any], str], None],
        end: float,
        command: tuple[str, ...] = (sys.executable, str(WORKER)),
    ) -> None:
        self.job = {**job, "skip": {}}
        self.place = place
        self.results = results
        self.keep = keep
        self.end = end
        self.command = command
        self.open: dict[str, Any] = {}
        self.why = ""

    def finish(self) -> None:
        """Start workers, one after the other, until all is done or the time is over."""
        for number in range(TRIES):
            left = self.left()
            if not left or time.time() > self.end:
                break
            self.open, self.why = {}, ""
            status = self.watch(number, left)
            if status != 0 and (self.open or self.left() == left):
                self.blame(status)
        for name in self.left():
            self.results["skipped"][name] = "no time left"

    def left(self) -> list[str]:
        """Return the problems that nothing is known of."""
        done = {*self.results["problems"], *self.results["skipped"]}
        return [name for name in self.job["problems"] if name not in done]

    def watch(self, number: int, left: list[str]) -> int | str:
        """Run a worker; return its exit code, or the word for why it was ended."""
        events, told = self.place / f"events{number}", self.place / f"job{number}"
        events.touch()
        measure = not self.results["machine"] and "machine" not in self.job["skip"]
        job = {**self.job, "problems": left, "events": str(events), "measure_machine": measure}
        told.write_text(json.dumps(job))
        process = subprocess.Popen([*self.command, str(told)])
        limit = time.time() + STARTING
        with open(events) as file:
            while True:
                status = process.poll()
                for line in file:
                    limit = self.note(json.loads(line), limit)
                if status is not None:
                    return status
                if time.time() > min(limit, self.end):
                    process.kill()
                    process.wait()
                    return "over time" if time.time() > self.end else "hung"
                time.sleep(0.05)

    def note(self, event: dict[str, Any], limit: float) -> float:
        """Take in an event; return until when the next one must have come."""
        kind = event.pop("event")
        if kind == "begin":
            self.open = event
            return time.time() + float(event["limit"])
        if kind == "broken":
            self.why = event["why"]
            return limit
        if kind == "machine":
            self.results["machine"] = event
            self.keep(self.results, "machine")
        elif kind == "skipped":
            self.results["skipped"][event["problem"]] = event["why"]
        else:
            name = event.pop("problem")
            self.results["problems"][name] = event
            self.keep(self.results, name)
        self.open = {}
        return time.time() + STARTING

    def blame(self, status: int | str) -> None:
        """Leave out whoever was at work when a worker ended; without one, the next problem."""
        if status == "over time":
            return
        crashed = f"crashed ({status})"
        word = {"hung": "hung", 3: "error"}.get(status, crashed)
        why = self.why or (
            f"after {self.open.get('limit', STARTING):.0f} s" if word == "hung" else word
        )
        if not self.open:
            self.results["skipped"][self.left()[0]] = f"its process {word}"
            return
        problem, what = self.open["problem"], self.open["what"]
        if problem == "machine":
            self.job["skip"]["machine"] = {"status": word, "why": why}
        elif what == "inputs and reference":
            self.results["skipped"][problem] = f"{what}: {word}"
        else:
            culprits = self.job["skip"].setdefault(problem, {})
            culprits[what] = {"status": word, "why": why}
