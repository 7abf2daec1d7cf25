"""The search: compile the promising, measure each a little, and the best few again and again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tile_api.autotuner.log import TuneLog
from tile_api.autotuner.options import TuneOptions
from tile_api.autotuner.outcome import UNTRIED, Candidate, TrialOutcome, failed, failure_of
from tile_api.autotuner.process import CANCELLED
from tile_api.settings.budget import Budget
from tile_core.errors import TileError
from tile_core.logs import log
from tile_core.progress import Progress

if TYPE_CHECKING:
    from tile_api.autotuner.inputs import Inputs
    from tile_api.autotuner.session import TuningSession

FINALISTS = 8
"""Candidates that are measured in turns, after each was measured by itself."""

ROUNDS = 7
"""Turns of the first finalists; half of them have as many again, and so on to two."""

_VISITS = 5
"""Into so many visits the time is cut that a candidate is measured for in each stage."""

_COMPILED_BY, _MEASURED_BY = 0.7, 0.8
"""Shares of the time after which nothing more is compiled, and nothing measured at first."""

_PER_WAVE = 3


@dataclass(slots=True)
class Search:
    """One search among candidates, the most promising first; jobs are files, by number."""

    candidates: list[Candidate]
    jobs: dict[int, Path]
    bench: TuningSession
    checker: Inputs
    log: TuneLog
    progress: Progress
    options: TuneOptions
    budget: Budget
    start: float = 0.0

    def run(self) -> list[Candidate]:
        """Return the candidates with what is known of them, the best first."""
        self.start = self.start or time.monotonic()
        self._resume()
        first = self._deadline(_COMPILED_BY)
        while self._untried() and not self._is_over(first):
            self._wave(first)
        self._find_one()
        self._finals()
        return sorted(self.candidates, key=lambda c: c.rank)

    @property
    def best(self) -> Candidate | None:
        """The fastest so far."""
        found = min(self.candidates, key=lambda c: c.rank, default=None)
        return found if found is not None and found.score < float("inf") else None

    # First: each by itself -----------------------------------------------------------------

    def _resume(self) -> None:
        """Take over what an earlier search found before it was ended."""
        known = self.log.known()
        for at, candidate in enumerate(self.candidates):
            outcome = known.get(candidate.config.key)
            if outcome is not None and candidate.outcome.status == UNTRIED:
                self.candidates[at] = candidate.with_outcome(outcome)

    def _untried(self) -> list[int]:
        return [n for n, c in enumerate(self.candidates) if c.outcome.status == UNTRIED]

    def _wave(self, deadline: float | None) -> None:
        """Compile the next few at once, then measure each.

        The first are as few as can be: until one works the time is not kept to.
        """
        few = 1 if self.best is None and self.budget.seconds is not None else _PER_WAVE
        chosen = self._untried()[: self.bench.count * few]
        jobs = [str(self.jobs[self.candidates[n].number]) for n in chosen]
        cut = None if deadline is None or self.best is None else deadline
        compiled = []
        for at, reply in zip(
            chosen, self.bench.compile(jobs, self.options.timeout, cut), strict=True
        ):
            self._tell("compiling")
            if reply["ok"]:
                compiled.append(at)
            elif reply["code"] == CANCELLED:
                self._settle(at, TrialOutcome(UNTRIED, CANCELLED), note=False)
            else:
                self._settle(at, failure_of(reply))
        end = self._deadline(_MEASURED_BY)
        for at in compiled:
            if self._is_over(end) and self.best is not None:
                return
            self._first_visit(at)

    def _find_one(self) -> None:
        """See to it that one candidate works, however short the time is."""
        for at in self._untried():
            if self.best is not None:
                return
            job = str(self.jobs[self.candidates[at].number])
            reply = next(iter(self.bench.compile([job], self.options.timeout, None)))
            if reply["ok"]:
                self._first_visit(at)
            else:
                self._settle(at, failure_of(reply))

    def _first_visit(self, at: int) -> None:
        candidate = self.candidates[at]
        self._tell("measuring")
        problem = self.checker.check(candidate, str(self.jobs[candidate.number]), self.bench)
        if problem is not None:
            self._settle(at, problem)
            return
        self._visit(at, min(self.options.warmup, 5.0), min(self.options.rep, 40.0), final=False)

    # Then: the best in turns ---------------------------------------------------------------

    def _finals(self) -> None:
        """Measure the best in turns, halving their number, so that all see the same machine."""
        ranked = sorted(range(len(self.candidates)), key=lambda n: self.candidates[n].score)
        alive = [n for n in ranked if self.candidates[n].score < float("inf")][:FINALISTS]
        if self.options.early_stop and alive:
            most = self.candidates[alive[0]].score * max(1.0, self.options.early_stop_factor)
            alive = [n for n in alive if self.candidates[n].score <= most]
        end = self._deadline(1.0)
        while alive:
            for turn in range(ROUNDS):
                if self._is_over(end) and turn:
                    return
                for at in alive:
                    self._tell("comparing the best")
                    self._visit(at, 2.0, self.options.rep / _VISITS, final=True)
            alive = sorted(
                (n for n in alive if self.candidates[n].score < float("inf")),
                key=lambda n: self.candidates[n].score,
            )
            if len(alive) <= 2 or self._is_over(end):
                return
            alive = alive[: max(2, len(alive) // 2)]

    def _visit(self, at: int, warmup: float, rep: float, *, final: bool) -> None:
        """Look at the clock once more for a candidate."""
        candidate = self.candidates[at]
        reply = self.bench.ask_meter(
            "time",
            self.options.timeout,
            job=str(self.jobs[candidate.number]),
            inputs=self.checker.file(candidate),
            warmup=warmup,
            rep=rep,
            most=self._too_long(),
        )
        if not reply["ok"]:
            self._settle(at, failure_of(reply))
            return
        # Whatever else the machine does makes calls longer and none shorter.
        quarter = sorted(reply["times"])[(len(reply["times"]) - 1) // 4]
        self._settle(at, candidate.outcome.visited(quarter, final=final))

    # Inside --------------------------------------------------------------------------------

    def _too_long(self) -> float | None:
        """Return milliseconds of a call after which one call is enough to know."""
        best = self.best
        if best is None or not self.options.early_stop:
            return None
        return best.score * max(1.0, self.options.early_stop_factor)

    def _settle(self, at: int, outcome: TrialOutcome, *, note: bool = True) -> None:
        candidate = self.candidates[at].with_outcome(outcome)
        self.candidates[at] = candidate
        told = f"{outcome.milliseconds:.4g} ms" if outcome.visits else outcome.message
        log("tune", lambda: f"{candidate.config}: {outcome.status} {outcome.code} {told}".rstrip())
        if note:
            self.log.note(candidate.config.key, outcome)

    def _deadline(self, share: float) -> float | None:
        seconds = self.budget.seconds
        return None if seconds is None else self.start + seconds * share

    def _is_over(self, deadline: float | None) -> bool:
        return deadline is not None and time.monotonic() >= deadline

    def _tell(self, what: str) -> None:
        best = self.best
        told = f"{best.score:.4g} ms, {best.config}" if best is not None else ""
        done = sum(c.outcome.status != UNTRIED for c in self.candidates)
        self.progress.tell(done, what, told)


def untraced(error: BaseException) -> TrialOutcome:
    """Return the outcome of a candidate that could not even be traced or priced."""
    code = str(error.code) if isinstance(error, TileError) else type(error).__name__
    text = str(getattr(error, "message", "") or error).strip().partition("\n")[0]
    return failed(code, text or type(error).__name__)
