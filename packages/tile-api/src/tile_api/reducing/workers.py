"""Trials in a process of their own, which is killed when it takes too long."""

from __future__ import annotations

import os
import pickle
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from tile_api.reducing.failure import CRASH, HANG, RunOutcome
from tile_api.reducing.trial import Plan
from tile_api.reducing.worker import LENGTH, LOST, READY
from tile_api.worker_process import WorkerProcess
from tile_core.environment import environment
from tile_core.errors import ToolchainError
from tile_core.ir.stmt import Kernel

_TAIL = 4000
"""Characters of a crashed process's last words that are kept."""

_START = 120.0
"""Seconds that a process may take to import the compiler."""


class Trials:
    """Tries kernels in a second process, and starts another one whenever that was lost.

    One kernel may take `timeout` seconds; the first of a process has as many more for what is
    imported when a target is used.

    Notes
    -----
    A crash counts if it is the first thing that a process does: whatever an earlier kernel may
    have done to the memory of a process is not the fault of the next one, so others are tried
    again in a fresh process.
    """

    def __init__(self, plan: Plan, timeout: float = 20.0) -> None:
        self.plan = plan
        self.timeout = timeout
        self._process: WorkerProcess | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="tile-reduce-"))
        self._is_fresh = self._was_fresh = True

    def __call__(self, kernel: Kernel) -> RunOutcome:
        """Return what becomes of a kernel."""
        outcome = self._try(kernel)
        if outcome.kind == CRASH and not self._was_fresh:
            outcome = self._try(kernel)
        return outcome

    def close(self) -> None:
        """End the process, and remove what it left in its folder."""
        self._kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _try(self, kernel: Kernel) -> RunOutcome:
        process = self._running()
        self._was_fresh, self._is_fresh = self._is_fresh, False
        limit = self.timeout * (2 if self._was_fresh else 1)
        phase = "compile"
        try:
            process.send(pickle.dumps((kernel, self.plan)))
            for kind, what in self._answers(process, time.monotonic() + limit):
                if kind == "done":
                    return cast(RunOutcome, what)
                if kind == LOST:
                    self._is_fresh = True
                    return self._crashed(phase, what)
                phase = what
        except TimeoutError:
            self._kill()
        except (BrokenPipeError, EOFError):
            return self._lost(process, phase)
        except BaseException:  # what the process says next is no answer to the next question
            self._kill()
            raise
        return RunOutcome(HANG, phase, message=f"killed after {limit:g} s")

    def _answers(self, process: WorkerProcess, deadline: float) -> Iterator[tuple[str, Any]]:
        """Yield what the process says, until the deadline, which is a `TimeoutError`."""
        waiting = b""
        while True:
            waiting += process.receive(deadline)
            while (end := _end_of_message(waiting)) is not None:
                yield pickle.loads(waiting[LENGTH:end])
                waiting = waiting[end:]

    def _running(self) -> WorkerProcess:
        if self._process is None or not self._process.is_running():
            self._kill()
            command = [sys.executable, "-m", "tile_api.reducing.worker", str(os.getpid())]
            with (self._folder / "stderr").open("wb") as log:
                variables = {**environment(), "TMPDIR": str(self._folder)}
                self._process = WorkerProcess(command, variables, log)
            self._is_fresh = True
            self._wait_until_ready(self._process)
        return self._process

    def _wait_until_ready(self, process: WorkerProcess) -> None:
        try:
            for _, what in self._answers(process, time.monotonic() + _START):
                if what == READY:
                    return
        except TimeoutError:
            told = f"it was not ready after {_START:g} s"
        except EOFError:
            told = self._lost(process, "compile").message or "it ended at once"
        self._kill()
        raise ToolchainError(
            f"the process that tries kernels does not start: {told}",
            hint="look for what is wrong with the installation: tile doctor",
        )

    def _lost(self, process: WorkerProcess, phase: str) -> RunOutcome:
        told = process.told_end()
        self._kill()
        return self._crashed(phase, told)

    def _crashed(self, phase: str, name: str) -> RunOutcome:
        text = (self._folder / "stderr").read_text(errors="replace")[-_TAIL:]
        lines = text.strip().splitlines()
        return RunOutcome(CRASH, phase, name, lines[-1] if lines else "", text)

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()


def _end_of_message(waiting: bytes) -> int | None:
    """Return where the first message ends, or None if it is not there yet."""
    end = LENGTH + int.from_bytes(waiting[:LENGTH], "little")
    return end if len(waiting) >= LENGTH and len(waiting) >= end else None
