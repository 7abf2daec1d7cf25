"""Processes that work for this one: how they end."""

from __future__ import annotations

import ctypes
import os
import signal
from contextlib import suppress

_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """Ask the system to end this process with the one that started it, where it can.

    Parameters
    ----------
    parent
        The number of that process, which may have ended already.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)


def ended_with(status: int | None) -> str:
    """Return what ended a process.

    Parameters
    ----------
    status
        What it ended with; negative if a signal ended it.

    Examples
    --------
    >>> ended_with(-11), ended_with(3)
    ('SIGSEGV', 'status 3')
    """
    if status is not None and status < 0:
        with suppress(ValueError):
            return signal.Signals(-status).name
    return f"status {status}"
