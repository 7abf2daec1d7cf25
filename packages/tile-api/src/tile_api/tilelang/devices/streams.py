"""Events and streams of a device whose work is done when a call returns."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any


class Event:
    """A point in time; takes the arguments of `torch.cuda.Event`."""

    cuda_event = 0

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self._at: float | None = None

    def record(self, stream: Any = None) -> None:
        """Note the time: everything before is done."""
        self._at = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        """Return the milliseconds from this event to another one.

        Raises
        ------
        RuntimeError
            If one of the two was not recorded, as torch does.
        """
        if self._at is None or end._at is None:
            raise RuntimeError("both events must be recorded before their time is asked for")
        return (end._at - self._at) * 1e3

    def query(self) -> bool:
        """Tell that it has happened."""
        return True

    def synchronize(self) -> None:
        """Wait for nothing."""

    def wait(self, stream: Any = None) -> None:
        """Wait for nothing."""


class Stream:
    """A queue in which nothing waits; takes the arguments of `torch.cuda.Stream`."""

    cuda_stream = 0
    device_index = 0
    stream_id = 0
    priority = 0

    def __init__(self, *args: Any, **keywords: Any) -> None:
        pass

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one if none is given, and return it."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Wait for nothing."""

    def wait_stream(self, stream: Any) -> None:
        """Wait for nothing."""

    def query(self) -> bool:
        """Tell that all is done."""
        return True

    def synchronize(self) -> None:
        """Wait for nothing."""


class DeviceContext:
    """A device as a context manager: ``with torch.cuda.device(0)``."""

    def __init__(self, device: Any = None) -> None:
        self.idx = 0
        self.prev_idx = 0

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass
