"""Which code it is that compiles: versions of packages, and what stands in for one in checkouts."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tile_core.installed import Distribution, distribution


@lru_cache(maxsize=64)
def version_of(package: str) -> str:
    """Return text that changes whenever the code of an import package does.

    Installed from a wheel, it is the version and a digest of the wheel's own list of files and
    their digests. In a checkout, which has one version for all its states, it is the version and
    a digest of names, sizes and times of all files. A process asks once.

    Examples
    --------
    >>> version_of("no_such_package")
    'unknown'
    """
    found = distribution(package)
    version = "" if found is None else found.version
    if found is not None and not _is_editable(found):
        record = found.read_text("RECORD")
        if record:
            return f"{version}+{_short(record)}"
    folder = _folder_of(package)
    if folder is None:
        return version or "unknown"
    return f"{version}+files.{_short(json.dumps(sorted(_facts(folder))))}"


def _is_editable(found: Distribution) -> bool:
    told = found.read_text("direct_url.json")
    return bool(told and json.loads(told).get("dir_info", {}).get("editable"))


def _folder_of(package: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)


def _facts(place: Path) -> Iterator[tuple[str, int, int]]:
    """Yield name, size and time of each file; of a module that is one file, its own."""
    if place.is_file():
        facts = place.stat()
        yield place.name, facts.st_size, facts.st_mtime_ns
        return
    yield from _facts_inside(os.fspath(place), "")


def _facts_inside(folder: str, before: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                facts = entry.stat()
                yield before + entry.name, facts.st_size, facts.st_mtime_ns
            elif entry.name != "__pycache__":
                yield from _facts_inside(entry.path, f"{before}{entry.name}/")


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
