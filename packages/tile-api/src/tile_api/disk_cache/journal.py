"""What happened in a cache, a line each: for people who wonder why something was compiled."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

LIMIT = 1 << 20
"""Bytes of a log before it makes way for a new one; the one before it is kept."""


class Journal:
    """A file of lines of JSON that several processes append to.

    Lines are written at once and are shorter than what file systems write in one piece, so they
    do not mix. Nothing here ever fails: who cannot write is silent.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, event: str, digest: str, **facts: object) -> None:
        """Append a line: the event, the time, the process, and further facts.

        Events are ``hit``, ``miss``, ``store``, ``skip``, ``discard`` and ``evict``.
        """
        row = {"time": round(time.time(), 3), "process": os.getpid(), "event": event}
        row |= {"digest": digest[:16], **facts}
        line = (json.dumps(row) + "\n").encode()
        with suppress(OSError):
            if not self.path.parent.exists():
                return  # a cache that holds nothing has no log
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, line)
                is_long = os.fstat(handle).st_size > LIMIT
            finally:
                os.close(handle)
            if is_long:
                os.replace(self.path, self._before())

    def rows(self, last: int | None = None) -> list[dict[str, Any]]:
        """Return the lines, oldest first, or the last of them; what cannot be read is left out."""
        found: list[dict[str, Any]] = []
        for path in (self._before(), self.path):
            with suppress(OSError):
                for line in path.read_text(errors="replace").splitlines():
                    with suppress(ValueError):
                        row = json.loads(line)
                        if isinstance(row, dict):
                            found.append(row)
        return found if last is None else found[-last:] if last else []

    def clear(self) -> None:
        """Forget everything."""
        for path in (self._before(), self.path):
            with suppress(OSError):
                path.unlink()

    def _before(self) -> Path:
        return self.path.with_name(f"{self.path.name}.1")
