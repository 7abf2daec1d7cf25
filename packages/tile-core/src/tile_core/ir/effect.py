"""What an intrinsic does besides returning a value."""

from __future__ import annotations

from enum import Flag, auto


class Effect(Flag):
    """What an intrinsic does besides returning a value."""

    NONE = 0
    READS = auto()  # through an AddressOf argument
    WRITES = auto()  # through an AddressOf argument
    ATOMIC = auto()  # reads and writes one element indivisibly
    WARP = auto()  # exchanges values between the threads of a warp
    BLOCK = auto()  # waits for all threads of the block
    OUTPUT = auto()  # prints, traps
    STATE = auto()  # reads or advances hidden per-thread state
