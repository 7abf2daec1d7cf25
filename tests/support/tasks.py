"""Tasks for other processes, which find them by name; some kill theirs."""

from __future__ import annotations

import os
import signal

from tile_core.errors import ShapeMismatch


def square(n: int) -> int:
    return n * n


def square_unless_first(folder: str, n: int) -> int:
    """Kill the process that runs it when number 5 runs for the first time."""
    if n == 5:
        try:
            os.close(os.open(f"{folder}/ran", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return n * n
        os.kill(os.getpid(), signal.SIGKILL)
    return n * n


def kill_at_three(n: int) -> int:
    if n == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return n * n


def refused(n: int) -> int:
    if n == 2:
        raise ShapeMismatch("two is no shape", hint="take one")
    return n
