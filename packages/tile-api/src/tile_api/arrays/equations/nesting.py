"""Room for functions that descend into expressions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def descending() -> Iterator[None]:
    """Let functions on expressions descend as deep as the largest expressions nest."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 8_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
