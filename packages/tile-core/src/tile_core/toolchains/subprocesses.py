"""Processes that work for this one: how they are run, and what ended them."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tile_core.errors import ToolchainCrash, ToolchainError

TIME_LIMIT = 600
"""Seconds that a compiler may take for one kernel."""

_PR_SET_PDEATHSIG = 1
_CRASHED = re.compile(
    r"died due to signal|internal compiler error|PLEASE (?:submit|ATTACH)|LLVM ERROR"
    r"|(?:command|program)\b.*(?:Segmentation fault|Aborted|Killed)|Killed signal"
)
"""What drivers of compilers say of a part of theirs that crashed."""

_FULL = re.compile(r".*(?:No space left on device|Disk quota exceeded).*")


def run_program(
    command: Sequence[str], folder: Path | str | None = None, hint: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a compiler to its end, and return its exit code and what it said.

    It runs in `folder`, by default the current one; `hint` says what to do where it cannot be
    started.

    Raises
    ------
    ToolchainError
        If there is no such program.
    ToolchainCrash
        If it crashes, or does not come to an end.
    """
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            list(command),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIME_LIMIT,
            check=False,
        )
    except OSError as error:
        why = error.strerror or error
        raise ToolchainError(f"{command[0]} cannot be run: {why}", hint=hint) from error
    except subprocess.TimeoutExpired as error:
        raise crash_of(name, -signal.SIGALRM) from error
    if done.returncode and (full := _FULL.search(done.stdout + done.stderr)):
        raise ToolchainError(
            f"{name} cannot write what it compiles: {full[0].strip()}",
            hint="free that disk, or let TMPDIR and TILE_CACHE_DIR name folders on another",
        )
    if done.returncode < 0 or (done.returncode and _CRASHED.search(done.stderr)):
        raise crash_of(name, done.returncode, done.stdout + done.stderr)
    return done


def crash_of(name: str, status: int | None, said: str = "") -> ToolchainCrash:
    """Return the error that a compiler went down, or had to be ended.

    It ended with `status`, of which an alarm is the end of its time; the last lines of all that
    it `said` are shown.
    """
    if status == -signal.SIGALRM:
        return ToolchainCrash(f"{name} did not come to an end within {TIME_LIMIT} s")
    lines = "".join(f"\n{line}" for line in said.strip().splitlines()[-8:])
    return ToolchainCrash(f"{name} crashed ({ended_with(status)}){':' if lines else ''}{lines}")


def end_with_parent(parent: int) -> None:
    """Ask the system to end this process with the one that started it, where it can."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)


def ended_with(status: int | None) -> str:
    """Return what ended a process.

    Examples
    --------
    >>> ended_with(-11), ended_with(3)
    ('SIGSEGV', 'status 3')
    """
    if status is not None and status < 0:
        with suppress(ValueError):
            return signal.Signals(-status).name
    return f"status {status}"
