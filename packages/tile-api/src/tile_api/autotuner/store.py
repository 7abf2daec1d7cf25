"""Where tables and logs lie: a file for each thing that was tuned."""

from __future__ import annotations

import hashlib
import os
import secrets
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tile_api.autotuner.environment import TuneSettings
from tile_api.autotuner.log import TuneLog
from tile_api.autotuner.table import (
    Place,
    Record,
    Table,
    merged,
    parse_table,
    table_of,
    text_of_table,
)
from tile_core.errors import InvalidTuningTable, TileWarning

SUFFIX = ".json"


class TuneStore:
    """Results on disk.

    Parameters
    ----------
    settings
        Say where.
    more
        Further tables to look into.
    """

    def __init__(self, settings: TuneSettings, more: Iterable[Path] = ()) -> None:
        self.folder = settings.folder
        self._keeps = settings.keeps
        self._others = (*more, *settings.tables)

    def read(self, place: Place) -> Table:
        """Return what is known of a place, from here and from further tables.

        Raises
        ------
        InvalidTuningTable
            If a further table is none. One of our own that is damaged is as good as none.
        """
        if not self._keeps:
            return Table()
        tables = [read_table(path) for path in self._others]
        with suppress(OSError, InvalidTuningTable):
            tables.append(read_table(self._path(place), missing=None))
        return merged(tables)

    def add(self, records: Iterable[Record], place: Place) -> None:
        """Keep further records of a place."""
        if not self._keeps:
            return
        path = self._path(place)
        tables = [table_of(records)]
        with suppress(OSError, InvalidTuningTable):
            tables.append(read_table(path, missing=None))
        try:
            write_table(path, merged(tables))
        except OSError as error:
            warnings.warn(
                f"results of tuning cannot be kept in {self.folder}: {error.strerror or error} "
                "(TILE_TUNE_DIR names another folder)",
                TileWarning,
                stacklevel=2,
            )

    def log(self, place: Place) -> TuneLog:
        """Return the log of the search at a place."""
        if not self._keeps:
            return TuneLog(None)
        return TuneLog(self.folder / "logs" / f"{_name(place)}.jsonl")

    def tables(self) -> list[tuple[Path, Table]]:
        """Return every table that is kept here and can be read, by name."""
        found = []
        with suppress(OSError):
            for path in sorted((self.folder / "tables").glob(f"*{SUFFIX}")):
                with suppress(InvalidTuningTable):
                    found.append((path, read_table(path)))
        return found

    def _path(self, place: Place) -> Path:
        return self.folder / "tables" / f"{_name(place)}{SUFFIX}"


def read_table(path: Path, missing: str | None = "name a file that tile tune wrote") -> Table:
    """Return the table of a file.

    Parameters
    ----------
    missing
        What to say to a file that cannot be read; None raises the system's error.

    Raises
    ------
    InvalidTuningTable
        If it is none.
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
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        aside.write_text(text_of_table(table))
        os.replace(aside, path)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise


def _name(place: Place) -> str:
    """Return what files of a place are called: the function, and a digest of the rest."""
    digest = hashlib.sha256("\0".join(place.key).encode()).hexdigest()[:16]
    plain = "".join(c if c.isalnum() or c in "_-" else "_" for c in place.name)
    return f"{plain[:40]}-{digest}"
