"""The log of a search: a line of JSON for each thing that is known, so that it can go on later."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tile_api.autotuner.outcome import OK, TrialOutcome


class TuneLog:
    """A file that only grows, until the search is over.

    A line is written at once. One that a crash cut short is left out when the log is read, and so
    is whatever cannot be understood. Without a path nothing is kept.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def note(self, config: str, outcome: TrialOutcome) -> None:
        """Append what is known of a configuration by now; `config` is its key."""
        row: dict[str, Any] = {"config": json.loads(config), "status": outcome.status}
        if outcome.status == OK:
            row |= {"visits": [round(v, 6) for v in outcome.visits]}
        else:
            row |= {"code": outcome.code, "message": outcome.message}
        self._append(row)

    def known(self) -> dict[str, TrialOutcome]:
        """Return what earlier searches found, by the text of the configuration."""
        found: dict[str, TrialOutcome] = {}
        for row in self.rows():
            with suppress(KeyError, TypeError, ValueError):
                key = json.dumps(row["config"], sort_keys=True, separators=(",", ":"))
                visits = tuple(float(v) for v in row.get("visits", ()))
                if row["status"] == OK and not visits:
                    continue
                found[key] = TrialOutcome(
                    str(row["status"]), row.get("code", ""), row.get("message", ""), visits
                )
        return found

    def rows(self) -> list[dict[str, Any]]:
        """Return the lines that can be read, oldest first."""
        if self.path is None:
            return []
        try:
            lines = self.path.read_text(errors="replace").splitlines()
        except OSError:
            return []
        found = []
        for line in lines:
            with suppress(ValueError):
                row = json.loads(line)
                if isinstance(row, dict):
                    found.append(row)
        return found

    def close(self) -> None:
        """Forget the search: it is over, and its results are in a table."""
        if self.path is not None:
            with suppress(OSError):
                self.path.unlink()

    def _append(self, row: Mapping[str, Any]) -> None:
        if self.path is None:
            return
        line = json.dumps({**row, "time": round(time.time(), 3)}) + "\n"
        with suppress(OSError):  # who cannot write tunes all the same
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                size = os.fstat(handle).st_size
                is_torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
                os.write(handle, ("\n" * is_torn + line).encode())
            finally:
                os.close(handle)
