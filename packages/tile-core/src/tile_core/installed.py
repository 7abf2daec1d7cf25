"""What is installed beside us, read off the folders that installers write.

`importlib.metadata` tells the same; it loads a parser of mail and a network library for it, which
takes longer than finding a kernel in the cache. It is asked where something is installed in
another way than as a folder: in an archive, an egg, or by an importer of its own.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache, reduce
from importlib import import_module
from importlib.machinery import PathFinder
from typing import Any, Protocol

from tile_core.records import dataclass

_KINDS = (".dist-info", ".egg-info")
_DASHES = re.compile(r"[-_.]+")


class Distribution(Protocol):
    """An installed distribution, as far as `importlib.metadata.Distribution` is used here."""

    @property
    def version(self) -> str:
        """As the metadata states it."""

    def read_text(self, filename: str) -> str | None:
        """Return a file of the metadata, None if there is none of that name."""


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """A name for an object of an installed distribution: ``name = module:attribute [extras]``."""

    name: str
    value: str

    def load(self) -> Any:
        """Import the module and return the object.

        Raises
        ------
        ImportError, AttributeError
            If there is no such object, and whatever importing the module raises.
        """
        module, _, attributes = self.value.partition("[")[0].strip().partition(":")
        names = filter(None, attributes.strip().split("."))
        return reduce(getattr, names, import_module(module.strip()))


@dataclass(frozen=True, slots=True)
class _Folder:
    path: str

    @property
    def version(self) -> str:
        told = self.read_text("METADATA") or self.read_text("PKG-INFO") or self.read_text("") or ""
        for line in told.partition("\n\n")[0].splitlines():
            name, _, value = line.partition(":")
            if name.lower() == "version":
                return value.strip()
        return ""

    def read_text(self, filename: str) -> str | None:
        try:
            with open(f"{self.path}/{filename}" if filename else self.path, "rb") as file:
                return file.read().decode(errors="replace").replace("\r\n", "\n")
        except OSError:
            return None


def distribution(name: str) -> Distribution | None:
    """Return the distribution of a name, the first along ``sys.path``, None if there is none.

    Examples
    --------
    >>> distribution("no-such-package") is None
    True
    """
    folders = _folders()
    if folders is None:
        from importlib.metadata import PackageNotFoundError
        from importlib.metadata import distribution as find

        try:
            return find(name)
        except PackageNotFoundError:
            return None
    path = folders.get(_normal(name))
    return None if path is None else _Folder(path)


def copies(name: str) -> list[tuple[str, str]]:
    """Return the versions and the places of all distributions of a name along ``sys.path``.

    Examples
    --------
    >>> copies("no-such-package")
    []
    """
    found: dict[str, tuple[str, str]] = {}
    for place in (path or "." for path in sys.path):
        with suppress(OSError):
            facts = os.stat(place)
            inside = _inside(place, (facts.st_dev, facts.st_ino, facts.st_mtime_ns)) or ()
            for known, path in inside:
                if known == _normal(name):
                    found.setdefault(os.path.realpath(path), (_Folder(path).version, place))
    return list(found.values())


def entry_points(group: str) -> list[EntryPoint]:
    """Return the entry points of a group, in the order of ``sys.path``.

    Of distributions of one name, the first hides the others.
    """
    folders = _folders()
    if folders is None:
        from importlib.metadata import entry_points as find

        return [EntryPoint(entry.name, entry.value) for entry in find(group=group)]
    texts = (_Folder(path).read_text("entry_points.txt") for path in folders.values())
    return [entry for text in texts if text for entry in _entries(text, group)]


def _entries(text: str, group: str) -> Iterator[EntryPoint]:
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = line.strip("[]")
        elif section == group and line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield EntryPoint(name.strip(), value.strip())


def _folders() -> dict[str, str] | None:
    """Return the folders of metadata by name; None if there may be others that are no folders."""
    if any(hasattr(f, "find_distributions") and f is not PathFinder for f in sys.meta_path):
        return None
    found: dict[str, str] = {}
    for place in (path or "." for path in sys.path):
        try:
            facts = os.stat(place)
            inside = _inside(place, (facts.st_dev, facts.st_ino, facts.st_mtime_ns))
        except NotADirectoryError:
            return None
        except OSError:
            continue
        if inside is None:
            return None
        for name, path in inside:
            found.setdefault(name, path)
    return found


@lru_cache(maxsize=64)
def _inside(place: str, state: tuple[int, int, int]) -> list[tuple[str, str]] | None:
    """Return names and folders of metadata in a place, read once per state; None for an egg."""
    found = []
    for name in os.listdir(place):
        stem, kind = os.path.splitext(name.lower())
        if kind in _KINDS:
            found.append((_normal(stem.partition("-")[0]), f"{place}/{name}"))
        elif stem == "egg-info":
            return None
    return found


def _normal(name: str) -> str:
    return _DASHES.sub("_", name).lower()
