"""Every module path and every public name of TileLang, read from the table beside this file.

A row of ``names.txt`` is a path, the key of the reason why its names have no counterpart, and, on
the lines below, the names that have none. ``language`` before the key says that the module has all
names of the language, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ModuleNames:
    """A module of TileLang.

    Parameters
    ----------
    path
        Below ``tilelang``.
    reason
        A key of `tile_api.tilelang.unsupported.REASONS`.
    is_language
        Whether it has the names of the language.
    names
        Those without counterpart, unless a table of `tile_api.tilelang.paths` has one.
    """

    path: str
    reason: str
    is_language: bool
    names: tuple[str, ...]


def read_names() -> list[ModuleNames]:
    """Return the rows of the table, in its order."""
    text = (Path(__file__).parent / "names.txt").read_text(encoding="utf-8")
    heads: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith(" "):
            heads[-1][1].extend(line.split())
        else:
            heads.append((line, []))
    return [_row(head, names) for head, names in heads]


def _row(head: str, names: list[str]) -> ModuleNames:
    path, _, kind = head.partition(": ")
    *language, reason = kind.split()
    return ModuleNames(path, reason, bool(language), tuple(names))
