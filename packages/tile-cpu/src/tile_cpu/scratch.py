"""How much memory the tiles of one block may take."""

from __future__ import annotations

import math

from tile_core.errors import Note, OutOfScratch
from tile_core.ir.buffer import Buffer
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Alloc, Kernel, Launch

LIMIT_BYTES = 1 << 30
"""Every thread has the tiles of its block at once; offsets inside them are 32 bits wide."""


def require_scratch(kernel: Kernel) -> None:
    """Check that the tiles of a block fit the memory that a thread gets.

    Raises
    ------
    OutOfScratch
        If the tiles of one launch take more than `LIMIT_BYTES`; the notes name the largest.
    """
    for launch in nodes_of(kernel.body, Launch):
        _require(launch)


def _require(launch: Launch) -> None:
    tiles = [
        (bytes_of(node.buffer), node.buffer)
        for node in nodes_of(launch.body, Alloc)
        if not node.buffer.scope.is_global
    ]
    total = sum(size for size, _ in tiles)
    if total <= LIMIT_BYTES:
        return
    largest = sorted(tiles, key=lambda tile: -tile[0])[:3]
    raise OutOfScratch(
        f"the tiles of one block take {_spelt(total)}, and a block on the CPU has "
        f"{_spelt(LIMIT_BYTES)}",
        span=largest[0][1].span or launch.span,
        notes=tuple(Note(f"{b.name} takes {_spelt(size)}", b.span) for size, b in largest),
        hint="choose smaller tiles and loop over them, or a narrower element type; T.alloc_global "
        "makes a workspace of any size",
    )


def bytes_of(buffer: Buffer) -> int:
    """Return the size of a tile, counting elements known only at run time as one."""
    return math.prod(buffer.static_shape or (1,)) * buffer.dtype.bytes


def _spelt(size: int) -> str:
    for unit, width in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << width:
            return f"{size / (1 << width):.1f} {unit}".replace(".0 ", " ")
    return f"{size} bytes"
