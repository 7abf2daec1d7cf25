"""Random programs run by several processes: what they find is what one finds."""

from __future__ import annotations

import time

from fuzz.farm import Asked, outcomes

ASKED = Asked("--arrays ", 3, ("equations",), None)


def found(workers: int) -> list[tuple[int, object]]:
    """Return what became of each program, without how long it took."""
    limit = time.monotonic() + 1000
    return [
        (number, outcome if isinstance(outcome, str) else outcome.findings)
        for number, outcome in outcomes(ASKED, 5, 12, limit, workers)
    ]


def test_several_processes_find_what_one_finds() -> None:
    one = found(1)
    assert [number for number, _ in one] == [*range(5, 17)]
    assert found(2) == one


def test_the_time_is_over() -> None:
    assert [*outcomes(ASKED, 0, None, time.monotonic() - 1, 1)] == []
