"""Where tables and logs lie: a file for each thing that was tuned.

Nobody waits for anybody and there are no locks. A file of results never changes: its name tells
its contents. Who has further results writes them as one more file, together with what others
hold, and then removes those others. Where two processes do that at once two files stay, which
hold everything between them, since merging tables loses nothing whatever the order; the next one
takes both in. Whoever dies on the way leaves a file that says what another one says, too, or one
that nobody looks for.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tile_api.autotuner.log import TuneLog
from tile_api.autotuner.options import TuneSettings
from tile_api.autotuner.table import (
    Record,
    Table,
    TuningKey,
    merged,
    parse_table,
    table_of,
    text_of_table,
)
from tile_api.disk_cache.atomic_write import remove_abandoned, write_whole
from tile_core.errors import InvalidTuningTable, TileWarning

SUFFIX = ".json"


class TuneStore:
    """Results on disk, and `more` tables to look into."""

    def __init__(self, settings: TuneSettings, more: Iterable[Path] = ()) -> None:
        self.folder = settings.folder
        self._keeps = settings.keeps
        self._others = (*more, *settings.tables)

    def read(self, place: TuningKey) -> Table:
        """Return what is known of a place, from here and from further tables.

        Of tables of our own, one that is damaged is as good as none.
        """
        if not self._keeps:
            return Table()
        return merged([*(read_table(path) for path in self._others), self._own(place)[0]])

    def add(self, records: Iterable[Record], place: TuningKey) -> None:
        """Keep further records of a place."""
        if not self._keeps:
            return
        known, files = self._own(place)
        text = text_of_table(merged([table_of(records), known]))
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        path = self._folder / f"{_name(place)}.{digest}{SUFFIX}"
        try:
            write_whole(path, text.encode(), must_last=True)
        except OSError as error:
            warnings.warn(
                f"results of tuning cannot be kept in {self.folder}: {error.strerror or error} "
                "(TILE_TUNE_DIR names another folder)",
                TileWarning,
                stacklevel=2,
            )
            return
        for other in files:
            if other != path:
                with suppress(OSError):
                    other.unlink()
        remove_abandoned(self._folder)

    def log(self, place: TuningKey) -> TuneLog:
        """Return the log of the search at a place."""
        if not self._keeps:
            return TuneLog(None)
        return TuneLog(self.folder / "logs" / f"{_name(place)}.jsonl")

    def tables(self) -> list[tuple[Path, Table]]:
        """Return every table that is kept here and can be read, by name."""
        found = []
        with suppress(OSError):
            for path in sorted(self._folder.glob(f"*{SUFFIX}")):
                with suppress(OSError, InvalidTuningTable):
                    found.append((path, read_table(path, missing=None)))
        return found

    @property
    def _folder(self) -> Path:
        return self.folder / "tables"

    def _own(self, place: TuningKey) -> tuple[Table, list[Path]]:
        """Return what is kept of a place, and the files that hold it.

        A file that is gone was taken in by another one, so its folder is looked at again: until
        all that stood there could be read, and still stands there. What is damaged counts as
        nothing, and stays.
        """
        while True:
            tables: dict[Path, Table] = {}
            before = self._files(place)
            for path in before:
                with suppress(OSError, InvalidTuningTable):
                    tables[path] = read_table(path, missing=None)
            if self._files(place) == before:
                return merged(tables.values()), [*tables]

    def _files(self, place: TuningKey) -> list[Path]:
        with suppress(OSError):  # a name that is too long
            return sorted(self._folder.glob(f"{_name(place)}.*{SUFFIX}"))
        return []


def read_table(path: Path, missing: str | None = "name a file that tile tune wrote") -> Table:
    """Return the table of a file.

    If it cannot be read and `missing` says nothing of that, the system's error is raised.
    """
    try:
        text = path.read_text()
    except OSError as error:
        if missing is None:
            raise
        told = f"{path} cannot be read: {error.strerror or error}"
        raise InvalidTuningTable(told, hint=missing) from None
    except UnicodeDecodeError:
        raise InvalidTuningTable(f"{path} is not text", hint=missing) from None
    return parse_table(text, str(path))


def write_table(path: Path, table: Table) -> None:
    """Write a table; whoever reads meanwhile finds the old file or the new one."""
    write_whole(path, text_of_table(table).encode(), must_last=True)


def add_to_table(path: Path, table: Table) -> None:
    """Add records to those of a file, which need not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _held(path.parent):
        known = [read_table(path)] if path.exists() else []
        write_table(path, merged([*known, table]))


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold a folder: others that want to hold it wait. The system lets go of it for the dead.

    Where folders cannot be held, nobody waits.
    """
    handle = None
    with suppress(ImportError, OSError):
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _name(place: TuningKey) -> str:
    """Return what files of a place are called: the function, and a digest of the rest."""
    digest = hashlib.sha256("\0".join(place.key).encode()).hexdigest()[:16]
    plain = "".join(c if c.isalnum() or c in "_-" else "_" for c in place.name)
    return f"{plain[:40]}-{digest}"
