"""TL65xx: what the reference interpreter and the emulator find."""

from __future__ import annotations

from tile_launch.errors import TileError


class OutOfBounds(TileError, IndexError):
    """A tile access left its buffer."""

    code = "TL6501"


class UninitialisedRead(TileError):
    """A kernel read an element that nothing had written."""

    code = "TL6502"


class DataRace(TileError):
    """Two threads touched one element without synchronisation in between."""

    code = "TL6503"


class Deadlock(TileError):
    """Threads wait for each other, or did not all reach one barrier."""

    code = "TL6504"


class UndefinedOperation(TileError, ArithmeticError):
    """An operation without a defined result ran: a division by zero, an overlong shift."""

    code = "TL6505"


class MissingWait(TileError):
    """A kernel touched data whose asynchronous copy was not waited for."""

    code = "TL6506"


class MisalignedAccess(TileError, ValueError):
    """A vector was accessed at an address that is no multiple of its size."""

    code = "TL6507"


class BarrierMisuse(TileError):
    """A barrier in shared memory, or a cluster, was used against its rules."""

    code = "TL6508"


class MissingFence(TileError):
    """Threads and the async proxy shared memory or registers without a fence."""

    code = "TL6509"


class UnknownInstruction(TileError):
    """The assembly of a kernel holds an instruction that its interpreter does not know."""

    code = "TL6510"


class InstructionHazard(TileError):
    """Machine instructions follow each other more closely than the machine allows."""

    code = "TL6511"
