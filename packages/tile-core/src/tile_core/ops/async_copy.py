"""Explicit control of copies in flight: grouping them, waiting for a group, telling a barrier."""

from __future__ import annotations

from typing import ClassVar

from tile_core.errors import FrontendValueError
from tile_core.ir.buffer import Region
from tile_core.ir.stmt import Seq, Stmt
from tile_core.ops.operator import ControlOperator
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class CopyCommit(ControlOperator):
    """Close a group: it holds the asynchronous copies issued since the last one.

    Machines whose copies are synchronous do nothing.
    """

    mnemonic: ClassVar[str] = "copy_commit"
    spellings: ClassVar[tuple[str, ...]] = ("ptx_commit_group",)

    def serial_form(self) -> Stmt:
        """Return nothing: copies are complete when they are met."""
        return Seq(())


@dataclass(frozen=True, slots=True, eq=False)
class CopyWait(ControlOperator):
    """Wait until at most `pending` groups of asynchronous copies are in flight.

    The data of the others is visible to every thread of the block afterwards. Machines whose
    copies are synchronous do nothing.
    """

    mnemonic: ClassVar[str] = "copy_wait"
    spellings: ClassVar[tuple[str, ...]] = ("ptx_wait_group",)
    pending: int = 0

    def serial_form(self) -> Stmt:
        """Return nothing: copies are complete when they are met."""
        return Seq(())

    def verify(self) -> None:
        """Check that the number of groups is not negative."""
        if self.pending < 0:
            raise FrontendValueError(
                f"cannot wait until {self.pending} groups are in flight", hint="pass 0 or more"
            )


@dataclass(frozen=True, slots=True, eq=False)
class CopyArrive(ControlOperator):
    """Let the asynchronous copies that each thread began so far arrive at a barrier by themselves.

    Once for each thread that runs this, when all of them are complete; the thread goes on at
    once. Whoever waits for the phase sees what they wrote, and nothing else that the thread did.
    Engines do not see it: no thread was there to fence when it was complete.

    Parameters
    ----------
    barrier
        One element of a buffer of barriers.
    """

    mnemonic: ClassVar[str] = "copy_arrive"
    barrier: Region
