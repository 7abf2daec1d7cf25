"""Shared memory of a workgroup: bytes, who touched them since the last barrier, what arrives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tile_core.errors import DataRace, MissingWait, Note, OutOfBounds
from tile_sim.gfx9.arena import Arena
from tile_sim.gfx9.arrays import Array
from tile_sim.gfx9.assembly_text import Line

_MANY, _ATOMIC, _STRIDE = 31, 30, 32


class SharedMemory:
    """Shared memory with a detector of races.

    The only thing that orders waves is the barrier: two waves that touch one place between two
    barriers, one of them writing, race. Operations in flight count at both their ends. Programs in
    which waves sleep until others have written order them so: they are not watched. Places are told
    apart by the `grain`, the bytes of the narrowest access of the program; of `waves` that share
    it, one alone races with nobody; `reach` are the bits of M0 that address it.
    """

    def __init__(
        self, size: int, grain: int, waves: int, reach: int, *, sleeps: bool = False
    ) -> None:
        self.size, self.reach = size, reach
        self.epoch = 0
        padded = -(-size // 16) * 16
        self.bytes: Array = np.full(padded, 0xFF, np.uint8)
        self.words: Array = self.bytes.view(np.uint32)
        self._grain, self._is_watched = grain, waves > 1 and not sleeps
        count = padded // grain
        self._writers: Array = np.full(count, -1, np.int32)
        self._readers: Array = np.full(count, -1, np.int32)
        self._arriving: Array = np.zeros(count, np.int16)
        self._in_flight = 0

    def check(self, places: Array, width: int, line: Line) -> None:
        """Raise `OutOfBounds` if an access of `width` bytes leaves the memory."""
        if places.size and int(places.max()) + width > self.size:
            outside = int(places.max())
            raise OutOfBounds(
                f"{line}: {width} bytes at byte {outside} leave the {self.size} bytes of "
                "shared memory"
            )

    def grains(self, places: Array, width: int) -> Array:
        """Return the places that accesses of `width` bytes touch."""
        first = places // self._grain
        count = max(1, width // self._grain)
        if count == 1:
            return first
        return first[..., None] + np.arange(count)

    def read(self, wave: int, places: Array, width: int, line: Line) -> Array:
        """Note a read and return the touched grains."""
        grains = self.grains(places, width)
        self.note_read(wave, grains, line)
        return grains

    def note_read(self, wave: int, grains: Array, line: Line) -> None:
        """Note that a wave reads, now."""
        if self._in_flight:
            self._check_arriving(wave, grains, line)
        if not self._is_watched:
            return
        base = self.epoch * _STRIDE
        own = base + wave
        writers = self._writers[grains]
        bad = (writers >= base) & (writers != own)
        if bad.any():
            raise self._race(wave, grains[bad], line, "reads", int(writers[bad][0]) - base)
        readers = self._readers[grains]
        many = (readers >= base) & (readers != own)
        self._readers[grains] = np.where(many, base + _MANY, own)

    def write(self, wave: int, places: Array, width: int, line: Line) -> Array:
        """Note a write and return the touched grains."""
        grains = self.grains(places, width)
        self.note_write(wave, grains, line)
        return grains

    def note_write(self, wave: int, grains: Array, line: Line, *, is_atomic: bool = False) -> None:
        """Note that a wave writes, now; atomic operations do not race with each other."""
        if self._in_flight:
            self._check_arriving(wave, grains, line)
        if not self._is_watched:
            return
        base = self.epoch * _STRIDE
        own = base + wave
        writers, readers = self._writers[grains], self._readers[grains]
        bad = (writers >= base) & (writers != own)
        if is_atomic:
            bad &= writers != base + _ATOMIC
        read = (readers >= base) & (readers != own)
        if bad.any():
            raise self._race(wave, grains[bad], line, "writes", int(writers[bad][0]) - base)
        if read.any():
            raise self._race(wave, grains[read], line, "writes", int(readers[read][0]) - base)
        self._writers[grains] = base + _ATOMIC if is_atomic else own

    def arrive_later(self, wave: int, places: Array, line: Line) -> None:
        """Poison what a load in flight will write."""
        grains = self.grains(places, 4)
        self.note_write(wave, grains, line)
        self._arriving[grains] = wave + 1
        self._in_flight += 1
        self.words[places >> 2] = 0xFFFFFFFF

    def arrived(self, wave: int, places: Array, words: Array, line: Line) -> None:
        """Write what a load has brought."""
        grains = self.grains(places, 4)
        self._arriving[grains] = 0
        self._in_flight -= 1
        self.note_write(wave, grains, line)
        self.words[places >> 2] = words

    def _check_arriving(self, wave: int, grains: Array, line: Line) -> None:
        arriving = self._arriving[grains]
        if arriving.any():
            place = int(grains[arriving > 0].flat[0]) * self._grain
            other = int(arriving[arriving > 0].flat[0]) - 1
            raise MissingWait(
                f"{line}: byte {place} of shared memory is accessed while a load into it is "
                "in flight",
                notes=(Note(f"in wave {wave}; wave {other} has started the load"),),
                hint="the wave that loads must wait with s_waitcnt vmcnt, then all must meet",
            )

    def _race(self, wave: int, grains: Array, line: Line, verb: str, other: int) -> DataRace:
        place = int(np.asarray(grains).flat[0]) * self._grain
        who = {_MANY: "several other waves", _ATOMIC: "an atomic operation"}.get(
            other, f"wave {other}"
        )
        return DataRace(
            f"{line}: wave {wave} {verb} byte {place} of shared memory, which {who} has "
            "touched since the last barrier",
            hint="an s_barrier must stand between them, and before it a wait for both",
        )


@dataclass(frozen=True, slots=True)
class GroupMemory:
    """What the waves of one workgroup share, and how much each lane has for itself."""

    arena: Arena
    shared: SharedMemory
    private_bytes: int
