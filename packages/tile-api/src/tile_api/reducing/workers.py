"""Trials in a process of their own, which is killed when it takes too long."""

from __future__ import annotations

import os
import pickle
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from tile_api.reducing.failure import CRASH, HANG, RunOutcome
from tile_api.reducing.trial import Plan
from tile_api.reducing.worker import LENGTH, LOST, READY
from tile_core.environment import environment
from tile_core.errors import ToolchainError
from tile_core.ir.stmt import Kernel
from tile_core.toolchains.subprocesses import ended_with

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
        self._process: subprocess.Popen[bytes] | None = None
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
            requests = cast(BinaryIO, process.stdin)
            pickle.dump((kernel, self.plan), requests)
            requests.flush()
            for kind, what in self._answers(process, time.monotonic() + limit):
                if kind == "done":
                    return cast(RunOutcome, what)
                if kind == LOST:
                    self._is_fresh = True
                    return self._crashed(phase, what)
                phase = what
        except (BrokenPipeError, EOFError):
            return self._lost(process, phase)
        except BaseException:  # what the process says next is no answer to the next question
            self._kill()
            raise
        self._kill()
        return RunOutcome(HANG, phase, message=f"killed after {limit:g} s")

    def _answers(
        self, process: subprocess.Popen[bytes], deadline: float
    ) -> Iterator[tuple[str, Any]]:
        """Yield what the process says, until the deadline."""
        pipe = cast(BinaryIO, process.stdout).fileno()
        waiting = b""
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while selector.select(max(0.0, deadline - time.monotonic())):
                some = os.read(pipe, 1 << 16)
                if not some:
                    raise EOFError
                waiting += some
                while (end := _end_of_message(waiting)) is not None:
                    yield pickle.loads(waiting[LENGTH:end])
                    waiting = waiting[end:]

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._kill()
            with (self._folder / "stderr").open("wb") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tile_api.reducing.worker", str(os.getpid())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env={**environment(), "TMPDIR": str(self._folder)},
                    start_new_session=True,  # Ctrl-C is for who waits, not for the worker
                )
            self._is_fresh = True
            self._wait_until_ready(self._process)
        return self._process

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        try:
            for _, what in self._answers(process, time.monotonic() + _START):
                if what == READY:
                    return
            told = f"it was not ready after {_START:g} s"
        except EOFError:
            told = self._lost(process, "compile").message or "it ended at once"
        self._kill()
        raise ToolchainError(
            f"the process that tries kernels does not start: {told}",
            hint="look for what is wrong with the installation: tile doctor",
        )

    def _lost(self, process: subprocess.Popen[bytes], phase: str) -> RunOutcome:
        try:
            code = process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            code = 0
        self._kill()
        return self._crashed(phase, ended_with(code))

    def _crashed(self, phase: str, name: str) -> RunOutcome:
        text = (self._folder / "stderr").read_text(errors="replace")[-_TAIL:]
        lines = text.strip().splitlines()
        return RunOutcome(CRASH, phase, name, lines[-1] if lines else "", text)

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError, PermissionError):  # the latter where all have ended
            os.killpg(process.pid, signal.SIGKILL)  # the fork that tries kernels, too
        process.wait()
        for pipe in (process.stdin, process.stdout):
            try:
                cast(BinaryIO, pipe).close()
            except BrokenPipeError:  # unsent bytes for a process that is gone
                continue


def _end_of_message(waiting: bytes) -> int | None:
    """Return where the first message ends, or None if it is not there yet."""
    end = LENGTH + int.from_bytes(waiting[:LENGTH], "little")
    return end if len(waiting) >= LENGTH and len(waiting) >= end else None


@contextmanager
def trials(plan: Plan, timeout: float = 20.0) -> Iterator[Trials]:
    """Provide `Trials`, and end their process afterwards."""
    made = Trials(plan, timeout)
    try:
        yield made
    finally:
        made.close()
