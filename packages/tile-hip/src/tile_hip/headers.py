"""The headers that printed kernels are compiled against."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tile_core.codegen.source import C_HEADERS, INCLUDE_DIRECTORY

HEADERS = Path(__file__).parent / "include"
"""Where ``tile_hip.h`` lies; ``tile.h``, which includes it, is the printer's."""


@cache
def header_texts() -> Mapping[str, str]:
    """Return the device header and those of C, by the names under which they are included."""
    own = {p.relative_to(HEADERS).as_posix(): p for p in sorted(HEADERS.rglob("*.h"))}
    shared = {p.name: p for p in sorted(INCLUDE_DIRECTORY.glob("*.h"))}
    standard = {p.name: p for p in sorted(C_HEADERS.glob("*.h"))}
    return {name: path.read_text() for name, path in (own | shared | standard).items()}
