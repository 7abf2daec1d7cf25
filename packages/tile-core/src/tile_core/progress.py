"""A line on a terminal that tells how far long work has come; elsewhere there is silence."""

from __future__ import annotations

import shutil
import sys
import time
from typing import IO

_WIDTH = 20
_PAUSE = 0.1


class Progress:
    """The line about work of `total` parts, if the stream is a terminal; gone when it is closed.

    `doing` says what is done, such as ``"tuning gemm"``, `seconds` how long it may take at most.
    """

    def __init__(
        self,
        doing: str,
        total: int,
        seconds: float | None = None,
        stream: IO[str] | None = None,
    ) -> None:
        self._doing, self._total, self._seconds = doing, total, seconds
        self._stream = sys.stderr if stream is None else stream
        self._is_seen = bool(getattr(self._stream, "isatty", lambda: False)())
        self._start = time.monotonic()
        self._last = 0.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def tell(self, done: int, what: str = "", best: str = "") -> None:
        """Draw the line anew, but not more often than anybody reads."""
        now = time.monotonic()
        if not self._is_seen or now - self._last < _PAUSE:
            return
        self._last = now
        filled = _WIDTH * done // max(1, self._total)
        bar = "█" * filled + "·" * (_WIDTH - filled)
        spent = f"{now - self._start:.0f} s" + (f" of {self._seconds:g} s" if self._seconds else "")
        text = f"{self._doing} {bar} {done}/{self._total} {spent}"
        if what:
            text += f", {what}"
        if best:
            text += f"; best {best}"
        columns = shutil.get_terminal_size().columns
        self._stream.write(f"\r\x1b[K{text[: columns - 1]}")
        self._stream.flush()

    def close(self) -> None:
        """Remove the line."""
        if self._is_seen:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
