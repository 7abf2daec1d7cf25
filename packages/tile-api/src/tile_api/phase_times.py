"""How long phases and passes of compilations take, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tile_core.pass_manager.instrumentation import Event


@dataclass(frozen=True, slots=True)
class Duration:
    """How long a phase or a pass took, and in which phase it was.

    Parameters
    ----------
    category
        Of its `tile_core.pass_manager.instrumentation.Event`: ``"phase"``, ``"pass"``,
        ``"cache"``, …
    start_ms
        Milliseconds since the first thing that was recorded.
    depth
        How many others it is part of.
    """

    name: str
    category: str
    start_ms: float
    milliseconds: float
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Timings:
    """What a compilation spent its time on; ``str`` gives a table."""

    durations: tuple[Duration, ...]

    def __iter__(self) -> Iterator[Duration]:
        return iter(self.durations)

    def __len__(self) -> int:
        return len(self.durations)

    @property
    def milliseconds(self) -> float:
        """From the first beginning to the last end."""
        return max((d.start_ms + d.milliseconds for d in self.durations), default=0.0)

    def __str__(self) -> str:
        names = [("  " * d.depth + d.name, d) for d in self.durations]
        width = max((len(name) for name, _ in names), default=0)
        lines = [f"{name:<{width}}  {d.milliseconds:9.2f} ms  {d.category}" for name, d in names]
        return "\n".join([*lines, f"{'all':<{width}}  {self.milliseconds:9.2f} ms"])


def timings_of(events: Iterable[Event]) -> Timings:
    """Return what happened in the thread of the first event, wholes before their parts."""
    ordered = sorted(events, key=lambda event: (event.start, -event.end))
    if not ordered:
        return Timings(())
    zero, thread = ordered[0].start, ordered[0].thread
    under_way: list[Event] = []
    found = []
    for event in ordered:
        if event.thread != thread:
            continue
        while under_way and under_way[-1].end <= event.start:
            under_way.pop()
        start = (event.start - zero) * 1e3
        depth = len(under_way)
        found.append(Duration(event.name, event.category, start, event.milliseconds, depth))
        under_way.append(event)
    return Timings(tuple(found))
