"""Several ways to do one thing, timed interleaved: what disturbs the machine disturbs all."""

from __future__ import annotations

from collections.abc import Mapping

from tile_api.timing.bench import measure
from tile_api.timing.devices import Clock, Run
from tile_api.timing.record import Timing

ROUNDS = 5


def timed_interleaved(
    calls: Mapping[str, Run], clock: Clock, rep: float = 200
) -> dict[str, Timing]:
    """Return the times of each call, which has about `rep` milliseconds in `ROUNDS` turns.

    Examples
    --------
    >>> from tile_api.timing.devices import HostClock
    >>> found = timed_interleaved({"sum": lambda: sum(range(9)), "nothing": int}, HostClock(), 1)
    >>> [name for name, timing in found.items() if timing.median > 0]
    ['sum', 'nothing']
    """
    rounds = [
        {name: measure(call, rep / 10, rep / ROUNDS, clock=clock) for name, call in calls.items()}
        for _ in range(ROUNDS)
    ]
    return {
        name: Timing(
            tuple(ms for each in rounds for ms in each[name].milliseconds),
            rounds[0][name].clock,
            rounds[0][name].is_flushed,
        )
        for name in calls
    }
