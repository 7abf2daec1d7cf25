"""Compiled files on disk, named by what they were made from; safe among processes."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tile_core.environment import cache_home
from tile_core.errors import ToolchainError
from tile_launch.checksums import append_checksum, is_whole

LIMIT = 10_000
"""Files that are kept, about 30 KiB each: more than a run of all tests makes, for a cache that is
smaller than what comes back in turn finds nothing."""

WRITES_TO_CLEANING = 32
"""Of so many new files one, chosen by its name, pays for looking through the whole folder."""

ABANDONED_AFTER = 3600.0
"""Seconds after which what a process that was killed left behind is removed."""


def cache_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return where compiled files stay: ``sim`` in the folder of caches."""
    return cache_home(environment) / "sim"


def digest_of(parts: Iterable[str | bytes]) -> str:
    """Return a name for the sequence `parts`: equal only for equal sequences."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.hexdigest()[:24]


def cached(name: str, make: Callable[[Path], None], folder: Path | None = None) -> Path:
    """Return the file called `name` in the cache; `make` writes it if it is not there.

    One process makes it while others that want it wait. It appears complete or not at all: it is
    written beside its place and then renamed; one that was damaged since is made anew. About the
    `LIMIT` files used last are kept. The name has a digest of everything that decides the contents.

    Raises
    ------
    ToolchainError
        If the folder cannot be written; and whatever `make` raises.
    """
    folder = cache_folder() if folder is None else folder
    path = folder / name
    if _is_used(path):
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _alone(folder / f"{name}.lock"):
            if not is_whole(path):
                _write(path, make)
                if zlib.crc32(name.encode()) % WRITES_TO_CLEANING == 0:
                    _forget_the_oldest(folder)
                    _forget_the_abandoned(folder)
    except OSError as error:
        raise ToolchainError(
            f"compiled kernels cannot be stored in {folder}: {error.strerror or error}",
            hint="point TILE_CACHE_DIR at a folder that you may write",
        ) from error
    return path


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the lock file `path`; the system lets go of it if the process dies."""
    with path.open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _write(path: Path, make: Callable[[Path], None]) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=".tmp")
    os.close(handle)
    try:
        make(Path(temporary))
        append_checksum(Path(temporary))
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _is_used(path: Path) -> bool:
    """Tell whether `path` is there, undamaged; if so, it has been used now."""
    with suppress(OSError):  # as in a cache of somebody else, filled in advance
        os.utime(path)
    with suppress(OSError):
        facts = path.stat()
        file = (path, facts.st_ino, facts.st_size)
        if file in _READ_BEFORE:
            return True
        if is_whole(path):
            if facts.st_size >= LARGE:
                _READ_BEFORE.add(file)
            return True
    return False


LARGE = 1 << 20
"""Bytes from which a process reads a file once: compiled headers and the runtime, of some MiB, are
asked for with each kernel."""
_READ_BEFORE: set[tuple[Path, int, int]] = set()


def _forget_the_oldest(folder: Path) -> None:
    """Remove the files used longest ago; a library in use stays until its process ends."""
    ages: list[tuple[int, Path]] = []
    for path in folder.glob("*.so"):
        with suppress(FileNotFoundError):  # another process was faster
            ages.append((path.stat().st_mtime_ns, path))
    for _, path in sorted(ages)[:-LIMIT]:
        path.unlink(missing_ok=True)


def _forget_the_abandoned(folder: Path) -> None:
    """Remove files of locks and half-made libraries of processes that were killed.

    Should one belong to somebody after all, who is very slow, a library is made twice.
    """
    for pattern in ("*.lock", ".*.tmp"):
        for path in folder.glob(pattern):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > ABANDONED_AFTER:
                    path.unlink()
