"""Where compiled kernels are kept, and how much of the disk they may take."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tile_core.environment import cache_home
from tile_core.environment import environment as current_environment
from tile_core.errors import FrontendValueError
from tile_core.records import dataclass

DEFAULT_SIZE = "4GiB"
"""What kernels may take unless ``TILE_CACHE_SIZE`` says otherwise."""

COMPARED = "compared"
"""The folder, among the caches, of what was found when edited kernels were compared."""

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """What the environment says of the cache on disk; of a limit of 0 bytes nothing is kept."""

    folder: Path
    limit: int

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> CacheSettings:
        """Read the settings as they are now."""
        env = current_environment() if environment is None else environment
        size = env.get("TILE_CACHE_SIZE") or DEFAULT_SIZE
        try:
            limit = parse_size(size)
        except FrontendValueError:
            raise FrontendValueError(
                f"the environment variable TILE_CACHE_SIZE is {size!r}",
                hint="set it to a size such as 500M or 4GiB; 0 keeps nothing on disk",
            ) from None
        return cls(cache_home(env), limit)


def parse_size(text: str) -> int:
    """Return a number of bytes; K, M, G and T are powers of 1024.

    Examples
    --------
    >>> parse_size("4GiB"), parse_size("1.5k"), parse_size("0")
    (4294967296, 1536, 0)
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        raise FrontendValueError(
            f"{text!r} is not a size", hint="write a number of bytes, or 500M, or 4GiB"
        )
    return int(float(found[1]) * _UNITS[found[2].upper()])


def told_size(size: int) -> str:
    """Return a number of bytes as people read it.

    Examples
    --------
    >>> told_size(1536), told_size(12)
    ('1.5 KiB', '12 B')
    """
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
