"""Memory that the ranks of a group share: a nameless file for each rank, mapped side by side.

Nothing of it has a name in a file system, so nothing remains when processes end, however they do.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tile_launch.errors import RankError

_ADD_SEALS, _SEAL, _SHRINK, _GROW = 1033, 1, 2, 4
_FIXED, _NORESERVE = 0x10, 0x4000
_FAILED = ctypes.c_void_p(-1).value


def _library() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64,
    )  # fmt: skip
    library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return library


_libc = _library()


def whole_pages(size: int) -> int:
    """Return `size` rounded up to pages, of which there is at least one."""
    return -(-max(size, 1) // mmap.PAGESIZE) * mmap.PAGESIZE


def _available() -> int:
    """Return how many bytes the system can give without taking them from programs."""
    with open("/proc/meminfo", encoding="ascii") as told:
        (line,) = (text for text in told if text.startswith("MemAvailable:"))
    return int(line.split()[1]) * 1024


def new_segment(size: int) -> int:
    """Return the descriptor of `size` bytes of zeros, whole pages, that can be shared.

    They are allocated at once, near the processor at hand. Nobody can shorten the file later, which
    would end whoever reads there.

    Raises
    ------
    OSError
        If there is less memory than that: the system would end the process that asks for it.
    """
    if size > _available():
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
    descriptor = os.memfd_create("tile", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.posix_fallocate(descriptor, 0, size)
        fcntl.fcntl(descriptor, _ADD_SEALS, _SHRINK | _GROW | _SEAL)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def segment_of(process: int, descriptor: int) -> int:
    """Return a descriptor for a segment that a process of the same user has open.

    Raises
    ------
    RankError
        If the system does not let it be seen.
    """
    try:
        return os.open(f"/proc/{process}/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise RankError(
            f"the memory of process {process} cannot be opened: {error.strerror}",
            hint="run the ranks as one user, in one container (one name space of processes)",
        ) from None


class Mapping:
    """Segments of equal size, mapped one after the other: that of rank r begins at ``at(r)``.

    The memory is unmapped when nothing refers to this any more; arrays of it do.
    """

    def __init__(self, descriptors: Sequence[int], size: int) -> None:
        total = size * len(descriptors)
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
        self.size = size
        self.base = _mapped(None, total, 0, private, -1)
        weakref.finalize(self, _libc.munmap, self.base, total).atexit = False
        for rank, descriptor in enumerate(descriptors):
            flags = mmap.MAP_SHARED | _FIXED
            _mapped(self.at(rank), size, mmap.PROT_READ | mmap.PROT_WRITE, flags, descriptor)

    def at(self, rank: int) -> int:
        """Return the address of a rank's segment."""
        return self.base + rank * self.size

    def read(self, address: int, size: int) -> bytes:
        """Return bytes out of the segments."""
        return ctypes.string_at(address, size)

    def write(self, address: int, data: bytes) -> None:
        """Write bytes into a segment."""
        ctypes.memmove(address, data, len(data))


@contextmanager
def shared_by_all(
    size: int, exchange: Callable[[int], Iterable[tuple[int, int]]]
) -> Iterator[Mapping]:
    """Make a segment, and yield those of all ranks, mapped.

    The block waits until all others have mapped them, too. `exchange` tells them of a descriptor,
    and returns the process and the descriptor of each rank.

    Raises
    ------
    RankError
        If there is no memory, or it cannot be shared.
    """
    whole, opened = whole_pages(size), []
    try:
        own = new_segment(whole)
    except OSError as error:
        raise RankError(
            f"{whole} bytes that ranks share could not be made: {error.strerror}",
            hint="make smaller tensors, or give the processes more memory",
        ) from None
    try:
        for process, descriptor in exchange(own):
            opened.append(segment_of(process, descriptor))
        yield Mapping(opened, whole)
    finally:
        for descriptor in (own, *opened):
            os.close(descriptor)


def _mapped(address: int | None, size: int, access: int, flags: int, descriptor: int) -> int:
    found = _libc.mmap(address, size, access, flags, descriptor, 0)
    if found == _FAILED:
        number = ctypes.get_errno()
        raise OSError(number, f"mapping {size} bytes: {os.strerror(number)}")
    return int(found)
