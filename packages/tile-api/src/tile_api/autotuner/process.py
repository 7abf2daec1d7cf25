"""A worker, seen from outside: asked, waited for, and killed if it does not answer."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from tile_api.worker_process import WorkerProcess

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
        self._process: WorkerProcess | None = None
        self._is_open = self._has_ended = False
        self._rest = b""
        self._starting = threading.Lock()

    def start(self) -> None:
        """Start the process unless it runs; nothing is waited for."""
        if self._process is not None and self._process.is_running():
            return
        self.kill()
        self._rest, self._is_open = b"", False
        with self._starting:
            if self._has_ended:
                raise BrokenPipeError("there is nobody to ask any more")
            command = [sys.executable, "-c", _BOOT, str(os.getpid())]
            self._process = WorkerProcess(command, self._environment)
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
        deadline = time.monotonic() + timeout
        try:
            while b"\n" not in self._rest:
                self._rest += self._process.receive(deadline)
        except TimeoutError:
            self.kill()
            told = f"it did not come to an end within {timeout:g} s"
            return {"ok": False, "code": HUNG, "message": told}
        except EOFError:
            return self._ended()
        line, _, self._rest = self._rest.partition(b"\n")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def end(self) -> None:
        """Kill the process for good: another thread that waits for its reply is told of its end."""
        with self._starting:
            self._has_ended = True
            if self._process is not None and self._process.is_running():
                self._process.signal()

    def kill(self) -> None:
        """End the process at once, whatever it does; it is started anew when it is asked."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _send(self, message: object) -> None:
        assert self._process is not None, "it was started"
        self._process.send(json.dumps(message).encode() + b"\n")

    def _ended(self) -> dict[str, Any]:
        """Return what is known of the end of the process."""
        if self._process is None:
            return {"ok": False, "code": CRASHED, "message": "the process could not be started"}
        told = f"the process ended with {self._process.told_end()}"
        self.kill()
        return {"ok": False, "code": CRASHED, "message": told}


def failure(error: BaseException) -> dict[str, Any]:
    """Return the reply to a request that went wrong."""
    code = getattr(error, "code", type(error).__name__)
    return {"ok": False, "code": code, "message": _told(error)}


def _told(error: BaseException) -> str:
    text = str(getattr(error, "message", "") or error)
    return text.strip().partition("\n")[0] or type(error).__name__
