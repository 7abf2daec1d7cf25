"""What a compilation did and how long it took: for traces, tables of times, and reports.

Nothing is kept unless somebody records. `timed` then costs two readings of the clock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import Literal, ParamSpec, TypeAlias, TypeVar

from tile_core.ir.stmt import Kernel, Stmt
from tile_core.records import dataclass

P = ParamSpec("P")
R = TypeVar("R")

Category: TypeAlias = Literal["frontend", "phase", "pass", "cache", "tool", "call"]
"""Tracing Python, a phase of the compiler, a pass, a look-up, a compiler of others, a call."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that took time.

    `start` and `end` are seconds of `time.perf_counter`, `thread` is the number that the system
    gave, `details` say more, such as whether an entry was found.
    """

    name: str
    category: Category
    start: float
    end: float
    thread: int
    details: tuple[tuple[str, str], ...] = ()

    @property
    def milliseconds(self) -> float:
        """How long it took."""
        return (self.end - self.start) * 1e3


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A program as a pass left it.

    The program is the whole kernel (launch 0), or the body of a launch, counted from 1, once
    launches are lowered apart. The summary is the first sentence of the pass's documentation.
    """

    name: str
    program: Kernel | Stmt
    launch: int = 0
    milliseconds: float = 0.0
    summary: str = ""


@dataclass(slots=True)
class Recording:
    """What happened while it was open; filled by `timed` and `kept`."""

    keeps_programs: bool = False
    events: list[Event] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)


_OPEN: ContextVar[tuple[Recording, ...]] = ContextVar("tile_recordings", default=())
_LAUNCH: ContextVar[int] = ContextVar("tile_launch", default=0)


@contextmanager
def recorded(*, keeps_programs: bool = False) -> Iterator[Recording]:
    """Record what this context does; recordings may be open within others.

    Threads that are started meanwhile take part if they run in a copy of the context.
    """
    recording = Recording(keeps_programs)
    token = _OPEN.set((*_OPEN.get(), recording))
    try:
        yield recording
    finally:
        _OPEN.reset(token)


@contextmanager
def timed(name: str, category: Category, **details: str) -> Iterator[dict[str, str]]:
    """Record that the block took time, even if it fails; what is put into the result is told.

    Examples
    --------
    >>> with recorded() as recording, timed("look up", "cache") as told:
    ...     told["found"] = "no"
    >>> [(e.name, e.details) for e in recording.events]
    [('look up', (('found', 'no'),))]
    """
    told = dict(details)
    start = time.perf_counter()
    try:
        yield told
    finally:
        if recordings := _OPEN.get():
            end, thread = time.perf_counter(), threading.get_native_id()
            event = Event(name, category, start, end, thread, tuple(told.items()))
            for recording in recordings:
                recording.events.append(event)


def kept(name: str, run: Callable[..., object], program: Kernel | Stmt) -> None:
    """Tell who records programs what a pass left that `timed` was around."""
    for recording in _OPEN.get():
        if recording.keeps_programs:
            took = next((e.milliseconds for e in recording.events[-1:] if e.name == name), 0.0)
            summary = summary_of(run)
            recording.snapshots.append(Snapshot(name, program, _LAUNCH.get(), took, summary))


def summary_of(run: Callable[..., object]) -> str:
    """Return the first sentence of a function's documentation, on one line."""
    return " ".join((run.__doc__ or "").strip().partition("\n\n")[0].split())


@contextmanager
def attempted() -> Iterator[None]:
    """Forget the programs and remarks of the block if it fails: something else will be tried.

    Programs that other threads leave meanwhile stay.
    """
    from tile_core.remarks import tentative_remarks  # a kernel from the cache says nothing

    around = _OPEN.get()
    inside = tuple(Recording(recording.keeps_programs) for recording in around)
    token = _OPEN.set(inside)
    try:
        with tentative_remarks():
            yield
    except Exception:
        for recording in inside:
            recording.snapshots.clear()
        raise
    finally:
        _OPEN.reset(token)
        for recording, found in zip(around, inside, strict=True):
            recording.events.extend(found.events)
            recording.snapshots.extend(found.snapshots)


@contextmanager
def on_launch(number: int) -> Iterator[None]:
    """Note that passes of the block run on the body of one launch, counted from 1."""
    token = _LAUNCH.set(number)
    try:
        yield
    finally:
        _LAUNCH.reset(token)
