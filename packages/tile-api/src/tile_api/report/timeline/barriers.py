"""Barriers and groups of copies while a program is acted out: when what is waited for is done."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class PhaseBarrier:
    """A barrier in shared memory: `needed` arrivals, and bytes, complete each of its phases."""

    needed: int
    completed: list[float] = field(default_factory=list)
    arrivals: int = 0
    expected: int = 0
    landed: int = 0
    latest: float = 0.0

    def arrive(self, time: float, count: int = 1, nbytes: int = 0) -> None:
        """Count arrivals, and bytes that must land before the phase is complete."""
        self.arrivals += count
        self.expected += nbytes
        self._count(time)

    def land(self, time: float, nbytes: int, *, expects: bool = False) -> None:
        """Count bytes that will have arrived at `time`."""
        self.expected += nbytes if expects else 0
        self.landed += nbytes
        self._count(time)

    def passed(self, parity: int) -> float | None:
        """Return when the phase of `parity` was completed; None if that is still to come."""
        if (len(self.completed) - 1) % 2 != parity:
            return None
        return self.completed[-1] if self.completed else 0.0

    def _count(self, time: float) -> None:
        self.latest = max(self.latest, time)
        if self.arrivals >= self.needed and self.landed >= self.expected:
            self.completed.append(self.latest)
            self.arrivals = self.expected = self.landed = 0
            self.latest = 0.0


@dataclass(slots=True)
class Meeting:
    """A barrier with a number, at which so many threads meet again and again."""

    done: list[float] = field(default_factory=list)
    arrived: int = 0
    latest: float = 0.0

    def arrive(self, time: float, threads: int, needed: int) -> int:
        """Count threads, and return the number of the meeting that they take part in."""
        meeting = len(self.done)
        self.arrived += threads
        self.latest = max(self.latest, time)
        if self.arrived >= needed:
            self.done.append(self.latest)
            self.arrived, self.latest = 0, 0.0
        return meeting

    def over(self, meeting: int) -> float | None:
        """Return when a meeting was over; None if that is still to come."""
        return self.done[meeting] if meeting < len(self.done) else None
