"""Processes that work for this one, and may go down: sent to, listened to, and killed."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import BinaryIO, cast

from tile_core.toolchains.subprocesses import ended_with


class WorkerProcess:
    """A process in a session of its own: sent bytes, listened to for a while, and killed."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        stderr: int | BinaryIO = subprocess.DEVNULL,
    ) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment,
            start_new_session=True,  # Ctrl-C is for who waits, not for the worker
        )
        self.pid = self._process.pid
        self._stdin = cast(BinaryIO, self._process.stdin)
        self._stdout = cast(BinaryIO, self._process.stdout)

    def is_running(self) -> bool:
        """Whether it has not ended by itself."""
        return self._process.poll() is None

    def send(self, data: bytes) -> None:
        """Write to its standard input."""
        self._stdin.write(data)
        self._stdin.flush()

    def receive(self, deadline: float) -> bytes:
        """Return what it says next; raise `EOFError` if it ended, `TimeoutError` if it is late."""
        left = deadline - time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            if left <= 0 or not selector.select(left):
                raise TimeoutError
        data = os.read(self._stdout.fileno(), 1 << 16)
        if not data:
            raise EOFError
        return data

    def told_end(self) -> str:
        """Return how it ended, in words; it has closed its output."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        return ended_with(self._process.returncode)

    def signal(self) -> None:
        """Kill it with all that it started; who listens to it is told of its end."""
        with suppress(ProcessLookupError, PermissionError):  # the latter where all have ended
            os.killpg(self.pid, signal.SIGKILL)

    def kill(self) -> None:
        """Kill it, and leave nothing of it."""
        self.signal()
        for pipe in (self._stdin, self._stdout):
            with suppress(OSError):  # unsent bytes for a process that is gone
                pipe.close()
        self._process.wait()
