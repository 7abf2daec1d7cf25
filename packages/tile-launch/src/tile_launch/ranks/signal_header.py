"""What compiled code finds beside the counters that it waits for and raises."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

LINE = 64
"""Bytes between two counters: ranks that write to one do not disturb those that wait on another."""

SLEEPERS = 4
"""Bytes from a counter to the word that tells how many sleep on it."""

_Wait = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint32)
_Wake = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class SignalHeader(ctypes.Structure):
    """The line before the counters of a rank, which only its own process reads.

    Code looks `looks` times whether a counter has come to what it waits for, then calls
    ``wait(counter, wanted)``, whose result is not 0 if it never will. If somebody sleeps on a
    counter that it has raised, it calls ``wake(counter)``.
    """

    _fields_ = (("wait", _Wait), ("wake", _Wake), ("looks", ctypes.c_uint32))


def write_header(
    address: int, wait: Callable[[int, int], int], wake: Callable[[int], None], looks: int
) -> Any:
    """Write a header and return what has to live as long as code may read it."""
    header = SignalHeader.from_address(address)
    kept = header.wait, header.wake = _Wait(wait), _Wake(wake)
    header.looks = looks
    return kept
