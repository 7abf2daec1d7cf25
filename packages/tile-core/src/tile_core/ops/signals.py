"""Signals between the ranks of a group: how a block of one tells a block of another."""

from __future__ import annotations

from typing import ClassVar

from tile_core.errors import DtypeMismatch, ScopeMismatch, ShapeMismatch
from tile_core.ir.buffer import Region, Scope, static_value
from tile_core.ir.expr import Expr
from tile_core.ops.operator import ControlOperator
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Signal(ControlOperator):
    """Add to a flag of some rank, after all that the block did before.

    Whoever waits for the flag and sees the sum sees those effects, too, on any rank.

    Parameters
    ----------
    flag
        One element of a buffer of flags, of shape (ranks, flags).
    value
        What is added: an integer of 32 bits, not negative.
    """

    mnemonic: ClassVar[str] = "signal"
    spellings: ClassVar[tuple[str, ...]] = ("signal", "barrier_ranks")
    flag: Region
    value: Expr

    def verify(self) -> None:
        """Check that this is one flag, and an integer."""
        require_flag(self.flag, self.value)


@dataclass(frozen=True, slots=True, eq=False)
class WaitSignal(ControlOperator):
    """Wait until a flag of the own rank is at least `value`.

    What the blocks that raised it did before their signals is visible to the whole block after.

    Parameters
    ----------
    flag
        One element of a buffer of flags, of shape (ranks, flags); the first index is the own rank.
    value
        What the flag must reach, counted from the start of the launch.
    takes
        Whether `value` is subtracted from the flag afterwards, so that it can be waited for again.
    """

    mnemonic: ClassVar[str] = "wait_signal"
    spellings: ClassVar[tuple[str, ...]] = ("wait_signal", "barrier_ranks")
    flag: Region
    value: Expr
    takes: bool = False

    def verify(self) -> None:
        """Check that this is one flag, and an integer."""
        require_flag(self.flag, self.value)


SIGNALS = (Signal, WaitSignal)
"""Operators that order all accesses of memory around them."""


def require_flag(flag: Region, value: Expr) -> None:
    """Raise a `TileError` unless a region is one flag and a value can be added to it."""
    buffer = flag.buffer
    if buffer.scope is not Scope.SIGNALS:
        raise ScopeMismatch(
            f"{buffer.name!r} holds no signals: it is in {buffer.scope.value} memory",
            hint="declare a parameter of type T.Signals((n,))",
        )
    if any(static_value(extent) != 1 for extent in flag.extents):
        raise ShapeMismatch(
            f"a signal goes to one flag of {buffer.name!r}, not to several",
            hint="name one: F[i], or F.at(p)[i]",
        )
    if not value.dtype.is_int or value.dtype.bits > 32:
        raise DtypeMismatch(
            f"flags count in integers of 32 bits, and this is {value.dtype}",
            hint="pass an integer, or convert it with T.cast(value, 'int32')",
        )
