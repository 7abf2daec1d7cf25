"""The emulated global memory: regions with gaps between them, every access checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.errors import Note, OutOfBounds
from tile_sim.gfx9.arrays import Array

if TYPE_CHECKING:
    from tile_sim.gfx9.assembly_text import Line

BASE = 0x0000_7000_0000_0000
_GAP = 4096
_NEAR = 1 << 20
_ALIGNMENT = 256
_FAR = 255
_U64 = np.uint64


@dataclass(frozen=True, slots=True)
class MemoryRegion:
    """A buffer of the launch, or data of the program."""

    name: str
    address: int
    size: int
    is_writable: bool


def addresses_of(sizes: list[int]) -> list[int]:
    """Return where regions of some sizes will lie, and the end behind them."""
    place, found = BASE + _GAP, []
    for size in sizes:
        found.append(place)
        place += -(-size // _ALIGNMENT) * _ALIGNMENT + _GAP
    return [*found, place]


class Arena:
    """All memory that a launch may touch, of names, bytes, and whether these may be written."""

    def __init__(self, contents: list[tuple[str, Array, bool]]) -> None:
        *starts, end = addresses_of([data.nbytes for _, data, _ in contents])
        place = end - BASE
        self.regions: list[MemoryRegion] = [
            MemoryRegion(name, start, data.nbytes, is_writable)
            for start, (name, data, is_writable) in zip(starts, contents, strict=True)
        ]
        self.bytes: Array = np.full(place, 0xFF, np.uint8)
        self._words: Array = self.bytes.view(np.uint32)
        # How many bytes may be accessed from each byte on, up to a limit beyond any access.
        self._readable: Array = np.zeros(place, np.uint8)
        self._writable: Array = np.zeros(place, np.uint8)
        for region, (_, data, is_writable) in zip(self.regions, contents, strict=True):
            start, end = region.address - BASE, region.address - BASE + region.size
            self.bytes[start:end] = data
            reach = np.minimum(np.arange(region.size, 0, -1), _FAR)
            self._readable[start:end] = reach
            if is_writable:
                self._writable[start:end] = reach

    def content(self, index: int) -> Array:
        """Return the bytes of a region as they are now."""
        region = self.regions[index]
        start = region.address - BASE
        return self.bytes[start : start + region.size]

    def scalar(self, address: int, words: int, line: Line) -> list[int]:
        """Return consecutive words at an address that all lanes share."""
        start = address - BASE
        inside = 0 <= start <= len(self.bytes) - 4 * words
        if not inside or self._readable[start] < min(4 * words, _FAR):
            raise self.outside(address, 4 * words, line, 0)
        found = self.bytes[start : start + 4 * words].view(np.uint32)
        return [int(word) for word in found]

    def read(self, addresses: Array, size: int, line: Line) -> Array:
        """Return `size` bytes at each address, as ``(lanes, words)`` or narrow numbers."""
        start = self._offsets(addresses, size, self._readable, line)
        if size % 4 == 0 and not (start & 3).any():
            if size == 4:
                return self._words[start >> 2][:, None]
            return self._words[(start >> 2)[:, None] + np.arange(size // 4)]
        raw = self.bytes[start[:, None] + np.arange(size)]
        return raw.view({1: np.uint8, 2: np.uint16}.get(size, np.uint32))

    def write(self, addresses: Array, values: Array, line: Line) -> None:
        """Write a row of `values` at each address."""
        size = values.shape[1] * values.itemsize
        start = self._offsets(addresses, size, self._writable, line)
        if values.itemsize == 4 and not (start & 3).any():
            self._words[(start >> 2)[:, None] + np.arange(size // 4)] = values
        else:
            raw = np.ascontiguousarray(values).view(np.uint8)
            self.bytes[start[:, None] + np.arange(size)] = raw

    def places(self, addresses: Array, size: int, line: Line) -> Array:
        """Return positions in `bytes` of what will be written; raise `OutOfBounds` now."""
        return self._offsets(addresses, size, self._writable, line)

    def _offsets(self, addresses: Array, size: int, reach: Array, line: Line) -> Array:
        start = addresses - _U64(BASE)
        if len(start) and (
            int(start.max()) > len(reach) - size or not (reach[start.view(np.int64)] >= size).all()
        ):
            self._check_each(addresses, size, reach, line)
        return start.view(np.int64)

    def _check_each(self, addresses: Array, size: int, reach: Array, line: Line) -> None:
        """Raise the error of the first access outside, if there is one.

        A word on a multiple of four bytes may reach beyond the end: memory is allocated in
        whole words, and there are no narrower atomic operations.
        """
        for position, address in enumerate(addresses.tolist()):
            start = address - BASE
            needs = 1 if size == 4 and start % 4 == 0 else size
            if not 0 <= start <= len(reach) - size or reach[start] < needs:
                raise self.outside(address, size, line, position)

    def outside(self, address: int, size: int, line: Line, position: int) -> OutOfBounds:
        """Return the error of an access that no region holds."""
        near = min(self.regions, key=lambda r: _distance(r, address), default=None)
        notes: tuple[Note, ...] = ()
        if near is not None and _distance(near, address) < _NEAR:
            place = address - near.address
            kind = "" if near.is_writable else ", which is only read"
            notes = (Note(f"it is byte {place} of {near.name}, of {near.size} bytes{kind}"),)
        return OutOfBounds(
            f"{line}: access {position} of {size} bytes at {address:#x} is in no buffer",
            notes=notes,
        )


def _distance(region: MemoryRegion, address: int) -> int:
    end = region.address + region.size
    return max(region.address - address, address - end, 0)


def atomic(
    view: Any, places: Array, operands: Array, combine: Any, compared: Array | None = None
) -> Array:
    """Change numbers one lane after the other; return what each was before.

    `places` are positions in memory as numbers, ``combine(old, operand)`` the new number; if there
    are `compared`, only numbers that equal these are changed.
    """
    before = np.empty_like(operands)
    for lane, place in enumerate(places.tolist()):
        old = view[place]
        before[lane] = old
        if compared is None or old == compared[lane]:
            view[place] = combine(old, operands[lane])
    return before
