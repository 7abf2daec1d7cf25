"""The headers that printed kernels are compiled against."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tile_core.codegen.source import all_headers

HEADERS = Path(__file__).parent / "include"
"""Where ``tile_hip.h`` lies; ``tile.h``, which includes it, is the printer's."""


@cache
def header_texts() -> Mapping[str, str]:
    """Return the device header and those of C, by the names under which they are included."""
    return all_headers(HEADERS)
