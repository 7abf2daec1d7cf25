"""Libraries on disk that end with a checksum: a damaged one would end the process that runs it."""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from pathlib import Path

_RESIDUE = 0x2144DF1C
"""What CRC-32 is of any bytes with their CRC-32 behind them, the least significant byte first."""


def append_checksum(path: Path) -> None:
    """Write the checksum of a file behind its last byte, which loaders of libraries ignore."""
    checksum = zlib.crc32(path.read_bytes())
    with path.open("ab") as file:
        file.write(checksum.to_bytes(4, "little"))


def is_whole(path: Path) -> bool:
    """Tell whether a file is there and holds what was written, with its checksum.

    Machines that stop, full disks and bad ones leave behind files that have the right name.
    """
    with suppress(OSError):
        return os.path.exists(path) and zlib.crc32(path.read_bytes()) == _RESIDUE
    return False
