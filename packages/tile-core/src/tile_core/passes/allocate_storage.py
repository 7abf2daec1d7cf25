"""Offsets of tiles in the memory of a block: those that are never alive together may overlap."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.analysis.liveness import LiveInterval
from tile_core.ir.buffer import Buffer
from tile_core.records import dataclass

ALIGNMENT = 16
"""Of every tile, in bytes: the widest access of one thread."""

ALIGNMENT_OF_ATOMS = 128
"""Of tiles that can hold a swizzle's atom: banks repeat with this distance."""

ATOM = 256
"""Bytes of the smallest atom of a swizzle."""

LARGEST_ATOM = 1024
"""Bytes of the largest one: 8 rows of 128."""


@dataclass(frozen=True, slots=True)
class TileAllocation:
    """A tile that needs a place.

    Its contents matter where it is `alive`; its offset is a multiple of `alignment` bytes.
    """

    storage: Buffer
    nbytes: int
    alive: LiveInterval
    alignment: int


def alignment_of(nbytes: int, *, by_hardware: bool = False) -> int:
    """Return what the offset of a tile of `nbytes` bytes is a multiple of.

    With `by_hardware`, units of the machine find elements of swizzled tiles by the bits of their
    addresses: a tile of whole atoms, of 256, 512 or 1024 bytes, then begins where such an atom can,
    and any other where the copy engine can begin to copy.
    """
    if by_hardware and nbytes >= ATOM and nbytes % ATOM == 0:
        return max(ALIGNMENT, min(nbytes & -nbytes, LARGEST_ATOM))
    whole = nbytes >= ATOM or by_hardware
    return ALIGNMENT_OF_ATOMS if whole else ALIGNMENT


def allocate_storage(
    tiles: Sequence[TileAllocation], *, reuse: bool = True
) -> tuple[dict[Buffer, int], int]:
    """Return the byte offset of each tile by its storage, in the given order, and their room.

    Before   A_s: 8 KiB, statements 0 to 4;  B_s: 8 KiB, 1 to 4;  C_s: 16 KiB, 5 to 6
    After    A_s: 0, B_s: 8192, C_s: 0;  16 KiB

    Large tiles are placed first, each at the lowest place that is free. None overlap unless `reuse`
    is set.
    """
    placed: list[tuple[TileAllocation, int]] = []
    for tile in sorted(tiles, key=lambda t: -t.nbytes):
        rivals = [(o, o + t.nbytes) for t, o in placed if not reuse or t.alive.overlaps(tile.alive)]
        placed.append((tile, _lowest(tile, rivals)))
    offsets = {tile.storage: offset for tile, offset in placed}
    room = max((offset + tile.nbytes for tile, offset in placed), default=0)
    return {tile.storage: offsets[tile.storage] for tile in tiles}, room


def _lowest(tile: TileAllocation, taken: Sequence[tuple[int, int]]) -> int:
    """Return the lowest aligned offset where the tile meets none of the ranges `taken`."""
    offset = 0
    for start, stop in sorted(taken):
        if offset + tile.nbytes <= start:
            break
        offset = max(offset, -(-stop // tile.alignment) * tile.alignment)
    return offset
