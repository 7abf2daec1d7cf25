"""Forks of a process: threads of OpenMP do not live on in them.

A fork has the thread that made it, and GNU's OpenMP, which takes its other threads for alive, waits
for them for ever. Parallel loops therefore run on one thread where such a library was loaded before
the fork. LLVM's and Intel's start new threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

_MAPS = "/proc/self/maps"
_hearers: list[Callable[[], None]] = []
_lost = False


def has_lost_threads() -> bool:
    """Whether this process is a fork in which threads of GNU's OpenMP may be missing."""
    return _lost


def when_forked(hearer: Callable[[], None]) -> None:
    """Call `hearer` in every fork of this process, before anything else runs there."""
    _hearers.append(hearer)


def is_gnu(openmp: Any) -> bool:
    """Whether a library for OpenMP, or None, is GNU's."""
    return "libgomp" in os.path.basename(getattr(openmp, "_name", None) or "")


def _forked() -> None:
    global _lost
    _lost = _lost or _has_gomp()
    for hearer in _hearers:
        hearer()


def _has_gomp() -> bool:
    try:
        with open(_MAPS, "rb") as file:
            return b"libgomp" in file.read()
    except OSError:  # nobody knows
        return True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
