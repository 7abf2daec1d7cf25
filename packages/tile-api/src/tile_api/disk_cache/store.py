"""Files named by compile keys: written aside and renamed, the least recently used go first.

Nobody waits for anybody and there are no locks. A reader finds a whole file or none: a file gets
its name when it is complete, and a checksum finds out what a crash of the machine cut short. Two
processes that compile one kernel at once write the same thing, and the last one's stays. A file
that is removed while it is read stays readable to who has opened it. Whoever dies while writing
leaves a file that nobody looks for, which the next `prune` removes.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from tile_api.disk_cache.entry import Entry, decode, encode
from tile_api.disk_cache.journal import Journal
from tile_api.disk_cache.location import CacheSettings
from tile_core.errors import TileWarning
from tile_core.records import dataclass

SUFFIX = ".kernel"
_ROUNDS_PER_LIMIT = 16  # how often, while as much as fits is written, one looks for the oldest
_LEFT_AFTER_PRUNING = 0.9  # so that not each new kernel has to look for the oldest


@dataclass(frozen=True, slots=True)
class Stored:
    """A file in the cache: bytes, and when it was last used, in seconds since 1970."""

    digest: str
    size: int
    used: float


class DiskCache:
    """Compiled kernels in a folder.

    Whatever goes wrong with the disk, compiling goes on: what cannot be read is compiled, what
    cannot be written is not kept, and the first such failure of a process is a warning. The folder
    appears when something is kept; a limit of 0 bytes keeps nothing.
    """

    def __init__(self, root: Path, limit: int) -> None:
        self.root, self.limit = root, limit
        self.folder = root / "kernels"
        self.journal = Journal(root / "log.jsonl")
        self._written = limit  # the first kernel of a process looks for the oldest ones
        self._has_warned = False

    def find(self, digest: str, key: str) -> Entry | None:
        """Return the entry of a compile key, or None; it then counts as used now.

        An entry of another key with its digest is as good as none.
        """
        path = self._path(digest)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        entry = decode(data)
        if entry is None or entry.key != key:
            self.discard(digest, "it was damaged")
            return None
        with suppress(OSError):  # a cache that somebody else filled, and we may only read
            os.utime(path)
        return entry

    def keep(self, digest: str, entry: Entry) -> bool:
        """Store an entry, and make room if there is too much; return whether it was stored."""
        if not self.limit:
            return False
        try:
            size = self._write(self._path(digest), encode(entry))
        except OSError as error:
            self._warn(error)
            return False
        self._written += size
        if self._written * _ROUNDS_PER_LIMIT > self.limit:
            self._written = 0
            self.prune()
        return True

    def discard(self, digest: str, reason: str) -> None:
        """Remove an entry."""
        with suppress(OSError):
            self._path(digest).unlink()
        self.journal.note("discard", digest, reason=reason)

    def stored(self) -> list[Stored]:
        """Return what is there, the most recently used first."""
        return sorted(self._stored(), key=lambda s: (-s.used, s.digest))

    def read(self, digest: str) -> Entry | None:
        """Return an entry to look at; it does not count as used."""
        with suppress(OSError):
            return decode(self._path(digest).read_bytes())
        return None

    def prune(self, limit: int | None = None) -> tuple[int, int]:
        """Remove abandoned files, and the least recently used kernels beyond the limit.

        The limit is that of this cache unless one is given; returned is how many kernels were
        removed, and their bytes.
        """
        from tile_api.disk_cache.atomic_write import remove_abandoned

        remove_abandoned(self.folder)
        found = self.stored()
        most = self.limit if limit is None else limit
        total = sum(s.size for s in found)
        removed = freed = 0
        if total <= most:
            return 0, 0
        room = most * _LEFT_AFTER_PRUNING if limit is None else most
        while found and total - freed > room:
            oldest = found.pop()
            with suppress(OSError):
                self._path(oldest.digest).unlink()
                self.journal.note("evict", oldest.digest, reason="the cache was full")
                removed += 1
            freed += oldest.size
        return removed, freed

    def clear(self) -> tuple[int, int]:
        """Remove every kernel; return how many there were, and their bytes."""
        return self.prune(-1)

    # Inside --------------------------------------------------------------------------------

    def _path(self, digest: str) -> Path:
        return self.folder / f"{digest}{SUFFIX}"

    def _stored(self) -> Iterator[Stored]:
        for entry in self._files(SUFFIX):
            with suppress(OSError):  # removed by somebody meanwhile
                facts = entry.stat()
                yield Stored(entry.name.removesuffix(SUFFIX), facts.st_size, facts.st_mtime)

    def _files(self, suffix: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self.folder) as entries:
                yield from (e for e in entries if e.name.endswith(suffix))
        except OSError:
            return

    def _write(self, path: Path, data: bytes) -> int:
        """Give `data` the name `path` once they are complete.

        They are not forced onto the disk: should the machine stop, the checksum tells, and the
        kernel is compiled again. A kernel is not worth the wait.
        """
        from tile_api.disk_cache.atomic_write import write_whole

        write_whole(path, data)
        return len(data)

    def _warn(self, error: OSError) -> None:
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"compiled kernels cannot be kept in {self.root}: {error.strerror or error}; "
                "they are compiled anew in each process (TILE_CACHE_DIR names another folder, "
                "TILE_CACHE_SIZE=0 silences this)",
                TileWarning,
                stacklevel=2,
            )


@lru_cache(maxsize=8)
def _opened(root: Path, limit: int) -> DiskCache:
    return DiskCache(root, limit)


def disk_cache(settings: CacheSettings | None = None) -> DiskCache:
    """Return the cache that the environment names; one for each folder and limit.

    Raises
    ------
    FrontendValueError
        If the environment names a size that is none.
    """
    found = CacheSettings.from_environment() if settings is None else settings
    return _opened(found.folder, found.limit)
