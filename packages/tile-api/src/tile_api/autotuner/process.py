"""A worker, seen from outside: asked, waited for, and killed if it does not answer."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tile_core.toolchains.subprocesses import ended_with

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.stdin.readline()); "
    "from tile_api.autotuner.worker import main; main(int(sys.argv[1]))"
)

CRASHED, HUNG, CANCELLED = "crashed", "hung", "cancelled"
"""Codes of replies that the worker itself could not give."""

START_TIMEOUT = 300.0
"""Seconds for a process to start, and to load the compiler."""


class Worker:
    """A process of `tile_api.autotuner.worker`, started when it is asked first.

    The `opening` is a request that it gets whenever it was started, such as ``{"do": "warm",
    ...}``: the time for it is not counted as that of a candidate.
    """

    def __init__(self, environment: Mapping[str, str], opening: Mapping[str, Any]) -> None:
        self._environment = dict(environment)
        self._opening = dict(opening)
        self._process: subprocess.Popen[bytes] | None = None
        self._is_open = self._has_ended = False
        self._rest = b""
        self._starting = threading.Lock()

    def start(self) -> None:
        """Start the process unless it runs; nothing is waited for.

        Raises
        ------
        OSError
            If there can be no such process, or it ended at once.
        """
        if self._process is not None and self._process.poll() is None:
            return
        self.kill()
        self._rest, self._is_open = b"", False
        with self._starting:
            if self._has_ended:
                raise BrokenPipeError("there is nobody to ask any more")
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._environment,
                start_new_session=True,
            )
        self._send([entry or os.getcwd() for entry in sys.path])
        self._send(self._opening)

    def ask(self, do: str, timeout: float, **arguments: Any) -> dict[str, Any]:
        """Return the reply to a request to `Bench`; ``reply["ok"]`` tells whether it went well.

        After `timeout` seconds the process is killed; the time it takes to start is extra.
        """
        try:
            self.start()
            if not self._is_open:
                opened = self._reply(START_TIMEOUT)
                if opened.get("code") in (CRASHED, HUNG):
                    return opened
                self._is_open = True
            self._send({"do": do, **arguments})
        except OSError:
            return self._ended()
        return self._reply(timeout)

    def _reply(self, timeout: float) -> dict[str, Any]:
        """Wait for a line, but not longer than `timeout` seconds."""
        assert self._process is not None, "it was started"
        out = self._process.stdout
        assert out is not None, "it has a pipe"
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(out, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    self.kill()
                    told = f"it did not come to an end within {timeout:g} s"
                    return {"ok": False, "code": HUNG, "message": told}
                data = os.read(out.fileno(), 1 << 16)
                if not data:
                    return self._ended()
                self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def end(self) -> None:
        """Kill the process for good: another thread that waits for its reply is told of its end."""
        with self._starting:
            self._has_ended = True
            self._signal()

    def kill(self) -> None:
        """End the process at once, whatever it does; it is started anew when it is asked."""
        if self._process is None:
            return
        self._signal()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        self._process.wait()
        self._process = None

    def _signal(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _send(self, message: object) -> None:
        assert self._process is not None, "it was started"
        assert self._process.stdin is not None, "it has a pipe"
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _ended(self) -> dict[str, Any]:
        """Return what is known of the end of the process."""
        if self._process is None:
            return {"ok": False, "code": CRASHED, "message": "the process could not be started"}
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        status = self._process.returncode
        self.kill()
        return {
            "ok": False,
            "code": CRASHED,
            "message": f"the process ended with {ended_with(status)}",
        }
