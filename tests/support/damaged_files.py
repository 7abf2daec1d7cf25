"""What bad disks and machines that stop do to a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def _flip(place: float) -> Callable[[Path], None]:
    def flip(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[int(place * (len(data) - 1))] ^= 0xFF
        path.write_bytes(data)

    return flip


def _cut(share: float) -> Callable[[Path], None]:
    def cut(path: Path) -> None:
        data = path.read_bytes()
        path.write_bytes(data[: int(share * len(data))])

    return cut


DAMAGES: dict[str, Callable[[Path], None]] = {
    "nothing is left": lambda path: path.write_bytes(b""),
    "half is left": _cut(0.5),
    "the end is gone": _cut(0.99),
    "the first byte": _flip(0),
    "a byte in the middle": _flip(0.6),
    "the last byte": _flip(1),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
}
"""Functions that damage a file, by what they do."""
