"""Compilations as traces that Chrome (``chrome://tracing``), Perfetto and Speedscope show."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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
    """Write events to a file; see `trace_of`.

    Raises
    ------
    OSError
        If it cannot be written.
    """
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
