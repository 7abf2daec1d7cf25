"""What compilations spend their time on: as tables, and as traces for browsers.

Chrome (``chrome://tracing``), Perfetto and Speedscope show such traces.

>>> from tile_api import tracing
>>> tracing.trace_of([])["traceEvents"][0]["args"]
{'name': 'tile'}
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tile_core.pass_manager.instrumentation import Event, Recording, recorded


@contextmanager
def to_file(path: str | os.PathLike[str]) -> Iterator[Recording]:
    """Write a trace of all that is traced, looked up and compiled in the block, even if it fails.

    Threads of `tile_api.par_compile` have lanes of their own.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from tile_api import tracing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "trace.json")
    ...     with tracing.to_file(path):
    ...         pass  # kernels are made here
    ...     sorted(json.loads(path.read_text()))
    ['displayTimeUnit', 'traceEvents']

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    with recorded() as recording:
        try:
            yield recording
        finally:
            write_trace(recording.events, path)


def write_trace(events: Iterable[Event], path: str | os.PathLike[str]) -> None:
    """Write events to a file; see `trace_of`."""
    Path(path).write_text(text_of_trace(events), encoding="utf-8")


def text_of_trace(events: Iterable[Event]) -> str:
    """Return `trace_of` as JSON."""
    return json.dumps(trace_of(events), indent=1) + "\n"


def trace_of(events: Iterable[Event]) -> dict[str, Any]:
    """Return events in the form that Chrome reads.

    Times are microseconds since the first event. Every event is complete (``"X"``): it has its
    duration; threads and the process have names.

    Notes
    -----
    Source: "Trace Event Format", JSON object format, complete events and metadata events.
    """
    ordered = sorted(events, key=lambda event: (event.start, -event.end))
    zero = ordered[0].start if ordered else 0.0
    process = os.getpid()
    threads = dict.fromkeys(event.thread for event in ordered)
    named: list[dict[str, Any]] = [_named("process_name", process, 0, "tile")]
    for number, thread in enumerate(threads):
        name = "main" if thread == process else f"worker {number}"
        named.append(_named("thread_name", process, thread, name))
    shown = [
        {
            "name": event.name,
            "cat": event.category,
            "ph": "X",
            "ts": round((event.start - zero) * 1e6, 3),
            "dur": round((event.end - event.start) * 1e6, 3),
            "pid": process,
            "tid": event.thread,
            "args": dict(event.details),
        }
        for event in ordered
    ]
    return {"traceEvents": [*named, *shown], "displayTimeUnit": "ms"}


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


@dataclass(frozen=True, slots=True)
class Duration:
    """How long a phase or a pass took, and in which phase it was."""

    name: str
    category: str  # of its event: ``"phase"``, ``"pass"``, ``"cache"``, …
    start_ms: float  # since the first thing that was recorded
    milliseconds: float
    depth: int = 0  # how many others it is part of


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
