"""Checks and measures problems, one after the other, in a process that may hang or be killed.

Started by `run.py` with the name of a file that holds a job. It appends an event to another file
before and after everything that may go wrong: whoever reads it knows what was tried last.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from checking import judge, poison, same_bits
from contestant import OURS, Absent, Contestant, ours, results_of
from families import FAMILIES
from machine import described, peaks, state
from peers import peers_of
from problem import Family, Problem, Tensors
from problems import all_problems, tiny_problems
from timing import Device, Gpu, Processor, quick_us, race

BEST = 3
"""Of our configurations, how many race with the peers."""

SETS = 8
"""Of tensors, at most: together they should be several times the cache."""

BROKEN = 3
"""The exit code after an error that leaves the GPU unusable for this process."""


class Worker:
    """Works through a job.

    Parameters
    ----------
    job
        `run.Job` as JSON.
    """

    def __init__(self, job: Mapping[str, Any]) -> None:
        self.job = job
        self.folder = Path(job["folder"])
        self.plan = json.loads((self.folder / "plan.json").read_text())
        self.device: Device = Processor() if job["rehearse"] else Gpu()

    def tell(self, event: str, **facts: Any) -> None:
        """Append an event."""
        with open(self.job["events"], "a") as file:
            file.write(json.dumps({"event": event, **facts}) + "\n")

    def work(self) -> None:
        """Measure the machine if nobody has, then each problem that there is time for."""
        if self.job["measure_machine"]:
            self.tell("begin", problem="machine", what="machine", limit=90)
            facts = {**described(self.device), "peaks": peaks(self.device)}
            self.tell("machine", **facts)
        known = {p.name: p for p in (*all_problems(), *tiny_problems())}
        for name in self.job["problems"]:
            if time.time() > self.job["deadline"]:
                self.tell("skipped", problem=name, why="no time left")
                continue
            self.solve(known[name])

    def solve(self, problem: Problem) -> None:
        """Check all contestants, time those that are right, tell the result."""
        started = time.monotonic()
        self.tell("begin", problem=problem.name, what="inputs and reference", limit=60)
        family = FAMILIES[problem.family]
        sets = self.tensors(problem, family)
        expected = family.reference(problem.sizes, sets[0][0])
        self.device.wait()
        entries = self.plan.get(problem.name, [])
        everybody = [*ours(self.folder, family, entries), *peers_of(problem)]
        told = {c.name: self.examine(problem, family, c, sets, expected) for c in everybody}
        del expected
        fit = [c for c in everybody if told[c.name]["status"] in ("right", "mark")]
        self.race(problem, racing(fit, told), sets, told)
        self.tell(
            "result",
            problem=problem.name,
            contestants=told,
            sets=len(sets),
            seconds=time.monotonic() - started,
            state=state() if self.device.name == "cuda" else {},
        )

    def tensors(self, problem: Problem, family: Family) -> list[tuple[Tensors, Tensors]]:
        """Return sets of inputs and outputs, as many as the cache needs to be of no help."""
        generator = torch.Generator(self.device.device).manual_seed(self.job["seed"])
        room = self.device.free_bytes() / 4
        most = min(SETS, max(1, int(room // problem.nbytes)))
        count = min(most, 1 + int(3 * self.device.cache_bytes // problem.nbytes))
        return [
            (
                family.inputs(problem.sizes, self.device.device, generator),
                family.outputs(problem.sizes, self.device.device),
            )
            for _ in range(count)
        ]

    def examine(
        self, problem: Problem, family: Family, one: Contestant, sets: Any, expected: Tensors
    ) -> dict[str, Any]:
        """Return whether a contestant is right, and about how fast; errors are results."""
        skipped = self.job["skip"].get(problem.name, {}).get(one.name)
        if skipped:
            return {"status": skipped["status"], "why": skipped["why"]}
        limit = 30 if one.name.startswith(OURS) else 120  # peers compile
        self.tell("begin", problem=problem.name, what=one.name, limit=limit)
        try:
            return self._examined(problem, family, one, sets, expected)
        except Absent as reason:
            return {"status": "absent", "why": str(reason)}
        except Exception as error:
            why = f"{type(error).__name__}: {error}".partition("\n")[0][:300]
            self.require_device(why)
            return {"status": "error", "why": why}

    def _examined(
        self, problem: Problem, family: Family, one: Contestant, sets: Any, expected: Tensors
    ) -> dict[str, Any]:
        inputs, outputs = sets[0]
        poison(outputs)
        run = one.make(problem.sizes, inputs, outputs)
        first = [tensor.clone() for tensor in results_of(run, outputs)]
        self.device.wait()
        found: dict[str, Any] = {"status": "mark"}
        if one.is_exact:
            verdict = judge(first, expected, family)
            found = {"status": "right", "relative": verdict.relative}
            if verdict.problem:
                return {**found, "status": "wrong", "why": verdict.problem}
        poison(outputs)
        again = results_of(run, outputs)
        self.device.wait()
        found["repeats"] = same_bits(first, again) or not family.is_repeatable
        found["quick_us"] = quick_us(self.device, [run])
        return found

    def require_device(self, why: str) -> None:
        """End the process if the GPU cannot be used any more: a fresh one goes on."""
        try:
            self.device.wait()
        except Exception:
            self.tell("broken", why=why)
            os._exit(BROKEN)

    def race(
        self, problem: Problem, who: Sequence[Contestant], sets: Any, told: dict[str, Any]
    ) -> None:
        """Measure contestants by turns, and add what was measured to what is told of them."""
        if "race" in self.job["skip"].get(problem.name, {}) or not who:
            return
        self.tell("begin", problem=problem.name, what="race", limit=60 + self.job["race_s"])
        runs = {
            c.name: [c.make(problem.sizes, inputs, outputs) for inputs, outputs in sets]
            for c in who
        }
        no_graph = [c.name for c in who if not c.can_record]
        for name, sample in race(self.device, runs, self.job["race_s"], no_graph).items():
            told[name]["sample"] = asdict(sample)


def racing(fit: Sequence[Contestant], told: Mapping[str, Any]) -> list[Contestant]:
    """Return who races: the best few of our configurations, and all peers."""
    own = [c for c in fit if c.name.startswith(OURS)]
    best = sorted(own, key=lambda c: told[c.name]["quick_us"])[:BEST]
    return [*best, *(c for c in fit if not c.name.startswith(OURS))]


if __name__ == "__main__":
    Worker(json.loads(Path(sys.argv[1]).read_text())).work()
