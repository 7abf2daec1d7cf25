"""What became of each candidate."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tile_api.autotuner.configs import Config

OK, WRONG, FAILED, UNTRIED = "ok", "wrong", "failed", "untried"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration and the kernel that it makes.

    `func` is the traced function, None if tracing failed; `estimate` are the milliseconds that the
    cost model expects, None if it cannot tell. Candidates with one `program` are the same machine
    code, and one of them is tried; an empty one is not known.
    """

    number: int
    config: Config
    func: Any = field(default=None, repr=False)
    estimate: float | None = None
    program: str = ""
    outcome: TrialOutcome = field(default_factory=lambda: TrialOutcome())

    def with_outcome(self, outcome: TrialOutcome) -> Candidate:
        """Return the candidate with what is known of it by now."""
        return replace(self, outcome=outcome)

    @property
    def score(self) -> float:
        """Milliseconds; infinite for what cannot be chosen."""
        found = self.outcome
        return found.milliseconds if found.status == OK and found.visits else float("inf")

    @property
    def rank(self) -> tuple[bool, bool, float, str]:
        """What candidates are ordered by, as records of tables are: those of last rounds first.

        The others were measured at another time, maybe beside other work.
        """
        score = self.score
        return (score == float("inf"), not self.outcome.is_final, score, self.config.key)


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What is known of a candidate.

    `code` and `message` tell why it failed: a code of an error, ``crashed``, ``hung``, or the name
    of an exception. `visits` are milliseconds of a call, the lower quartile of each visit of the
    clock; `is_final` says that it took part in the last rounds.
    """

    status: str = UNTRIED
    code: str = ""
    message: str = ""
    visits: tuple[float, ...] = ()
    is_final: bool = False

    @property
    def milliseconds(self) -> float:
        """The median of the visits, in whole nanoseconds: as tables have it, who order alike."""
        return round(statistics.median(self.visits), 6)

    def visited(self, milliseconds: float, *, final: bool = False) -> TrialOutcome:
        """Return the outcome with one more visit."""
        visits = (*self.visits, milliseconds)
        return replace(self, status=OK, visits=visits, is_final=self.is_final or final)


def failed(code: str, message: str) -> TrialOutcome:
    """Return the outcome of a candidate that does not work."""
    return TrialOutcome(FAILED, code, message)


def failure_of(reply: Mapping[str, Any]) -> TrialOutcome:
    """Return the outcome that a reply of a worker tells of."""
    code, message = str(reply.get("code", "")), str(reply.get("message", ""))
    return TrialOutcome(WRONG if code == "AssertionError" else FAILED, code, message)
