"""Room for functions that descend into expressions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

DEEPEST = 8_000
"""Calls in one another, as many as the largest expressions nest."""


class _Raised:
    """How many blocks need the limit, which is one for all threads, and what it was before."""

    def __init__(self) -> None:
        self.lock, self.count, self.before = Lock(), 0, 0


_raised = _Raised()


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Let functions on expressions descend as deep as the largest expressions nest.

    The last of the blocks that are running, on whatever thread, restores the limit.
    """
    with _raised.lock:
        if not _raised.count:
            _raised.before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_raised.before, DEEPEST))
        _raised.count += 1
    try:
        yield
    finally:
        with _raised.lock:
            _raised.count -= 1
            if not _raised.count:
                sys.setrecursionlimit(_raised.before)
