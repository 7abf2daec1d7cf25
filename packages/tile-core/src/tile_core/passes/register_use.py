"""How many registers a thread will need, before anybody has given out any."""

from __future__ import annotations

from tile_core.ir.buffer import Scope
from tile_core.ir.node import walk
from tile_core.ir.stmt import Alloc, Launch

OTHER_REGISTERS = 64
"""What a thread needs beside its tiles, roughly: addresses, and parts of the factors."""


def registers_wanted(launch: Launch, threads: int) -> int:
    """Return the registers of each of `threads` threads that share the tiles of a launch."""
    tiles = (n.buffer for n in walk(launch.body) if isinstance(n, Alloc))
    nbytes = sum(b.nbytes or 0 for b in tiles if b.scope is Scope.FRAGMENT)
    return nbytes // 4 // threads + OTHER_REGISTERS
