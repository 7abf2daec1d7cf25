"""Calls of the user's code are tried in a fork first: what hangs or ends its process does so there.

Only a fork has the user's functions, wherever they come from. It runs Python until it is told to
end, and returns nothing but which call it begins and which one it has finished.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress

from tile_api.autotuner.outcome import TrialOutcome, failed
from tile_api.autotuner.process import CRASHED, HUNG
from tile_core.toolchains.subprocesses import end_with_parent, ended_with

CAN_FORK = sys.platform == "linux"
"""Whether a fork may run Python: on macOS, the system's own libraries crash in forks."""

_BUSY = 0.25
"""Share of its time that a call that hangs computes, unless it waits for something."""

_STUCK = 3
"""After so many calls that wait for ever, and none that ended, it is forks that do not work."""


_LONGEST = 2**31 - 1
"""Milliseconds that the system can wait for at once: 24 days."""


def rehearsed(
    calls: Sequence[Callable[[], object]], timeout: float
) -> Generator[tuple[int, TrialOutcome | None], None, None]:
    """Yield the number of each call, and how it fails; None if it comes to an end.

    It comes to an end with an exception, too. Calls go on in the fork while those that are known
    to end are made here. A single call is not tried, and none is where there are no forks.

    A fork can fail where this process would not: of its threads it has one, and a lock that
    another one held stays locked. What ends or waits is therefore tried a second time in a new
    fork; what computes without end waits for no lock, and is not. If the first three calls wait
    for ever, forks cannot do this here, and all are left to this process.
    """
    if len(calls) < 2 or not CAN_FORK:
        yield from ((number, None) for number in range(len(calls)))
        return
    at, doubted, works = 0, -1, False
    waited: list[tuple[int, TrialOutcome]] = []
    while at < len(calls) and (works or len(waited) < _STUCK):
        with _fork(calls[at:]) as fork:
            while at < len(calls) and fork.finishes(timeout):
                works = True
                yield at, None
                at += 1
            if at == len(calls):
                break
            outcome, is_sure = fork.failure(timeout)
        if not is_sure and doubted != at:
            doubted = at
            continue
        works = works or is_sure
        if outcome.code == HUNG and not is_sure:
            waited.append((at, outcome))
        else:
            yield at, outcome
        at += 1
    yield from ((number, outcome if works else None) for number, outcome in waited)
    yield from ((number, None) for number in range(at, len(calls)))


class _Fork:
    """A fork, seen from here, and the pipe through which it tells of calls."""

    def __init__(self, process: int, pipe: int) -> None:
        self._process, self._pipe = process, pipe
        self._rest = b""
        self._began, self._used = time.monotonic(), 0.0
        self._is_over = self._is_gone = False

    def finishes(self, timeout: float) -> bool:
        """Whether the next call comes to an end within `timeout` seconds."""
        while True:
            line, end, rest = self._rest.partition(b"\n")
            if end:
                self._rest = rest
                if line == b"finished":
                    return True
                self._began, self._used = time.monotonic(), float(line)
                continue
            left = self._began + timeout - time.monotonic()
            if not self._can_read(max(0.0, left)):
                self._is_over = True
                return False
            data = os.read(self._pipe, 1 << 16)
            if not data:
                return False
            self._rest += data

    def failure(self, timeout: float) -> tuple[TrialOutcome, bool]:
        """Return what is wrong with the call that did not finish, and whether that is certain."""
        if self._is_over:
            # Read before the kill: tearing down some GiB is charged to the process as well.
            lasted, computed = time.monotonic() - self._began, _cpu_time(self._process) - self._used
            self.end()
            told = f"it did not come to an end within {timeout:g} s while it was traced"
            return failed(HUNG, told), computed > _BUSY * lasted
        told = f"it ended its process with {ended_with(self.end())} while it was traced"
        return failed(CRASHED, told), False

    def end(self) -> int:
        """End the process with all that it started; return its status."""
        for kill in (os.killpg, os.kill):  # it leads no group yet if it has only just begun
            with suppress(ProcessLookupError, PermissionError):
                kill(self._process, signal.SIGKILL)
        _, status = os.waitpid(self._process, 0)
        self._is_gone = True
        return os.waitstatus_to_exitcode(status)

    def close(self) -> None:
        """End the process unless that was done."""
        os.close(self._pipe)
        if not self._is_gone:
            self.end()

    def _can_read(self, seconds: float) -> bool:
        poll = select.poll()  # descriptors above 1023 are no matter to it
        poll.register(self._pipe, select.POLLIN)
        return bool(poll.poll(min(seconds * 1000, _LONGEST)))


def _cpu_time(process: int) -> float:
    """Return the seconds that a process has computed, as its own `time.process_time`.

    Its clock is the one of clock_getcpuclockid(3), as Linux numbers them (CPUCLOCK_SCHED).
    """
    return time.clock_gettime(~process << 3 | 2)


@contextmanager
def _fork(calls: Sequence[Callable[[], object]]) -> Iterator[_Fork]:
    """Provide a fork that makes calls in order."""
    read, write = os.pipe()
    parent = os.getpid()
    with warnings.catch_warnings():
        # Python 3.12 and JAX warn of locks that nobody opens in forks: it is waited for so long.
        warnings.filterwarnings("ignore", ".*fork", DeprecationWarning)
        warnings.filterwarnings("ignore", ".*fork", RuntimeWarning)
        process = os.fork()
    if process == 0:
        try:
            os.close(read)
            _serve(calls, write, parent)
        finally:
            os._exit(0)
    os.close(write)
    fork = _Fork(process, read)
    try:
        yield fork
    finally:
        fork.close()


def _serve(calls: Sequence[Callable[[], object]], pipe: int, parent: int) -> None:
    """Make calls, and tell of each; what they print goes nowhere: they are made once more."""
    os.setsid()
    end_with_parent(parent)
    gc.freeze()  # what the parent is to clear away is left to it
    faulthandler.disable()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1, 2):
        os.dup2(nowhere, handle)
    sys.stdout = sys.stderr = open(nowhere, "w", closefd=False)  # noqa: SIM115
    for call in calls:
        os.write(pipe, f"{time.process_time()}\n".encode())
        with suppress(BaseException):
            call()
        os.write(pipe, b"finished\n")
