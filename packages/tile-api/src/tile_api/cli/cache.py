"""``tile cache``: look at the compiled kernels on disk, and remove some."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tile_api.disk_cache.location import COMPARED, parse_size, told_size
from tile_api.disk_cache.store import DiskCache, Stored, disk_cache
from tile_core.errors import TileError

_EMULATOR = "sim"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be asked of the verb."""
    parser.description = "Compiled kernels are kept in TILE_CACHE_DIR, up to TILE_CACHE_SIZE."
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    ls = actions.add_parser("ls", help="list the kernels, the most recently used first")
    ls.add_argument("--json", action="store_true", help="for programs: one list of records")
    ls.add_argument("--key", metavar="DIGEST", help="print the compile key of one kernel")
    log = actions.add_parser("log", help="tell what was found, compiled, kept and removed")
    log.add_argument("-n", "--last", type=_count, default=20, help="how many lines (20)")
    log.add_argument("--json", action="store_true", help="for programs: lines of JSON")
    prune = actions.add_parser("prune", help="remove the least recently used kernels")
    prune.add_argument("--size", type=_size, help="what may stay, as 500M or 4GiB; as by itself")
    actions.add_parser("clear", help="remove everything")


def run(args: argparse.Namespace) -> int:
    """Do what was asked; return what the process ends with."""
    cache = disk_cache()
    if args.action == "ls":
        return _key(cache, args.key) if args.key else _list(cache, as_json=args.json)
    if args.action == "log":
        return _log(cache, args.last, as_json=args.json)
    if args.action == "prune":
        removed, freed = cache.prune(args.size)
    else:
        removed, freed = _clear(cache)
    sys.stdout.write(f"removed {_files(removed)}, {told_size(freed)}\n")
    return 0


def _list(cache: DiskCache, *, as_json: bool) -> int:
    rows = [_row(cache, stored) for stored in cache.stored()]
    if as_json:
        sys.stdout.write(json.dumps(rows, indent=1) + "\n")
        return 0
    for row in rows:
        used = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row["used"]))
        sys.stdout.write(
            f"{row['digest'][:16]}  {told_size(row['size']):>10}  {used}  "
            f"{row['target'] or 'damaged':<20} {row['kernel']}\n"
        )
    total = sum(row["size"] for row in rows)
    limit = told_size(cache.limit)
    sys.stdout.write(f"{_files(len(rows))}, {told_size(total)} of {limit} in {cache.folder}\n")
    emulated = [*_emulated(cache.root)]
    if emulated:
        size = sum(path.stat().st_size for path in emulated)
        sys.stdout.write(
            f"{_files(len(emulated), 'emulated kernel')}, {told_size(size)} in "
            f"{cache.root / _EMULATOR}\n"
        )
    return 0


def _row(cache: DiskCache, stored: Stored) -> dict[str, Any]:
    entry = cache.read(stored.digest)
    return {
        "digest": stored.digest,
        "kernel": "" if entry is None else entry.kernel,
        "target": "" if entry is None else entry.target,
        "size": stored.size,
        "used": stored.used,
        "milliseconds": None if entry is None else entry.milliseconds,
    }


def _key(cache: DiskCache, start: str) -> int:
    """Print the key of the one kernel whose digest begins with `start`."""
    found = [s.digest for s in cache.stored() if s.digest.startswith(start)]
    entry = cache.read(found[0]) if len(found) == 1 else None
    if entry is None:
        which = f"{len(found)} kernels have" if found else "no kernel has"
        sys.stderr.write(f"tile cache ls: {which} a digest that begins with {start!r}\n")
        return 1
    sys.stdout.write(entry.key)
    return 0


def _log(cache: DiskCache, last: int, *, as_json: bool) -> int:
    for row in cache.journal.rows(last):
        if as_json:
            sys.stdout.write(json.dumps(row) + "\n")
            continue
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(float(row.get("time", 0))))
        took = f"{row['milliseconds']} ms" if "milliseconds" in row else ""
        parts = [row.get("kernel", ""), row.get("target", ""), took, row.get("reason", "")]
        told = "  ".join(str(part) for part in parts if part)
        event, digest = str(row.get("event", "")), str(row.get("digest", ""))
        sys.stdout.write(f"{when}  {event:<8}{digest:<18}{told}".rstrip() + "\n")
    return 0


def _clear(cache: DiskCache) -> tuple[int, int]:
    removed, freed = cache.clear()
    for path in [*_emulated(cache.root), *(cache.root / COMPARED).glob("*.json")]:
        size = path.stat().st_size
        path.unlink(missing_ok=True)
        removed, freed = removed + 1, freed + size
    cache.journal.clear()
    return removed, freed


def _emulated(root: Path) -> Iterator[Path]:
    """Yield the libraries of emulated kernels, which the emulator keeps by itself."""
    with suppress(OSError):  # a name that is too long
        yield from sorted((root / _EMULATOR).glob("*.so"))


def _files(count: int, what: str = "kernel") -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of lines")
    return int(text)


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except TileError as error:
        raise argparse.ArgumentTypeError(f"{error.message}: {error.hint}") from None
