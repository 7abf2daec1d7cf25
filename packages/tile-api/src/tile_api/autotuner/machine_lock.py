"""The lock of the machine: two searches on it do not look at the clock at once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]


@contextmanager
def machine_lock() -> Iterator[None]:
    """Wait until no other search of this user measures; others wait inside of the block.

    The lock is the system's and ends with its process, however that ends. Where there is none, or
    no file can be written, nobody waits.
    """
    handle = None
    with suppress(OSError):
        handle = os.open(_place(), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if handle is not None and fcntl is not None:
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _place() -> Path:
    owner = os.getuid() if hasattr(os, "getuid") else 0
    return Path(tempfile.gettempdir(), f"tile-measuring-{owner}.lock")
