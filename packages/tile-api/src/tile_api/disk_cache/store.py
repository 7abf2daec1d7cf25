"""Files named by compile keys: written aside and renamed, the least recently used go first.

Nobody waits for anybody and there are no locks. A reader finds a whole file or none: a file gets
its name when it is complete, and a checksum finds out what a crash of the machine cut short. Two
processes that compile one kernel at once write the same thing, and the last one's stays. A file
that is removed while it is read stays readable to who has opened it. Whoever dies while writing
leaves a file that nobody looks for, which the next `prune` removes.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from tile_api.disk_cache.entry import Entry, decode, encode
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
        from tile_api.disk_cache.atomic_write import write_whole

        data = encode(entry)
        try:
            write_whole(self._path(digest), data)  # the checksum tells if the machine stops
        except OSError as error:
            self._warn(error)
            return False
        self._written += len(data)
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
        found = []
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.name.endswith(SUFFIX):
                    with suppress(OSError):  # removed by somebody meanwhile
                        facts, digest = entry.stat(), entry.name.removesuffix(SUFFIX)
                        found.append(Stored(digest, facts.st_size, facts.st_mtime))
        return sorted(found, key=lambda s: (-s.used, s.digest))

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
    """Return the cache that the environment names; one for each folder and limit."""
    found = CacheSettings.from_environment() if settings is None else settings
    return _opened(found.folder, found.limit)


LIMIT = 1 << 20
"""Bytes of a log before it makes way for a new one; the one before it is kept."""


class Journal:
    """A file of lines of JSON that several processes append to.

    Lines are written at once and are shorter than what file systems write in one piece, so they
    do not mix. Nothing here ever fails: who cannot write is silent.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, event: str, digest: str, **facts: object) -> None:
        """Append a line: the event, the time, the process, and further facts.

        Events are ``hit``, ``miss``, ``store``, ``skip``, ``discard`` and ``evict``.
        """
        row = {"time": round(time.time(), 3), "process": os.getpid(), "event": event}
        row |= {"digest": digest[:16], **facts}
        line = (json.dumps(row) + "\n").encode()
        with suppress(OSError):
            if not self.path.parent.exists():
                return  # a cache that holds nothing has no log
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, line)
                is_long = os.fstat(handle).st_size > LIMIT
            finally:
                os.close(handle)
            if is_long:
                os.replace(self.path, self._before())

    def rows(self, last: int | None = None) -> list[dict[str, Any]]:
        """Return the lines, oldest first, or the last of them; what cannot be read is left out."""
        found: list[dict[str, Any]] = []
        for path in (self._before(), self.path):
            with suppress(OSError):
                for line in path.read_text(errors="replace").splitlines():
                    with suppress(ValueError):
                        row = json.loads(line)
                        if isinstance(row, dict):
                            found.append(row)
        return found if last is None else found[-last:] if last else []

    def clear(self) -> None:
        """Forget everything."""
        for path in (self._before(), self.path):
            with suppress(OSError):
                path.unlink()

    def _before(self) -> Path:
        return self.path.with_name(f"{self.path.name}.1")
