"""Time budgets: how long tuning may take."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tile_core.errors import TuningError

_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h)?")
_UNITS = {"ms": 1e-3, "s": 1.0, None: 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
HINT = 'write "model", a time such as "10s" or "2m", or "full"'


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a search may do."""

    runs: bool = True  # False: nothing is run, the cost model decides
    seconds: float | None = None  # of wall-clock time; None tries every configuration

    def __str__(self) -> str:
        if not self.runs:
            return "model"
        return "full" if self.seconds is None else f"{self.seconds:g}s"


def parse_budget(text: object) -> Budget:
    """Return the budget that a spelling means, or a number of seconds.

    Examples
    --------
    >>> parse_budget("2m"), str(parse_budget("model"))
    (Budget(runs=True, seconds=120.0), 'model')
    """
    if isinstance(text, Budget):
        return text
    told = str(text).strip().lower()
    if told == "model":
        return Budget(runs=False)
    if told == "full":
        return Budget()
    found = _TIME.fullmatch(told)
    is_time = isinstance(text, str | int | float) and not isinstance(text, bool)
    if found is None or not is_time or float(found[1]) <= 0:
        raise TuningError(f"{text!r} is not a time budget", hint=HINT)
    return Budget(seconds=float(found[1]) * _UNITS[found[2]])
