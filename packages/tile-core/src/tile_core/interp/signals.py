"""Barriers in shared memory, and clusters of blocks: what threads that go apart wait for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tile_core.interp.machine import Block


@dataclass(slots=True, eq=False)
class Signal:
    """A barrier in shared memory, which completes one phase after the other.

    Parameters
    ----------
    name
        What the program calls it, for messages.
    count
        Arrivals that a phase needs.
    phase
        The number of the phase that is not complete.
    arrived
        Arrivals in it so far.
    nbytes
        Bytes that copies were announced to bring, less those that they brought.
    """

    name: str
    count: int
    phase: int = 0
    arrived: int = 0
    nbytes: int = 0

    def arrive(self, times: int = 1) -> None:
        """Count arrivals."""
        while times > 0:
            taken = min(times, self.count - self.arrived)
            self.arrived += taken
            times -= taken
            if not self._settle() and taken == 0:
                self.arrived += times
                return

    def expect(self, nbytes: int) -> None:
        """Expect so many bytes more; a negative number tells of bytes that came."""
        self.nbytes += nbytes
        self._settle()

    def has_completed(self, parity: int) -> bool:
        """Whether the phase of `parity` before the one that is not complete was the last."""
        return self.phase % 2 != parity

    def _settle(self) -> bool:
        if self.arrived < self.count or self.nbytes:
            return False
        self.phase += 1
        self.arrived -= self.count
        return True

    def lacks(self) -> str:
        """Return what the phase that is not complete waits for, in words."""
        lacking = []
        if self.arrived < self.count:
            lacking.append(f"{self.count - self.arrived} of {self.count} arrivals")
        if self.nbytes > 0:
            lacking.append(f"{self.nbytes} bytes")
        elif self.nbytes:
            lacking.append(f"word of {-self.nbytes} bytes that came")
        what = " and ".join(lacking) or "nothing, but comes after the one waited for"
        return f"phase {self.phase} of {self.name} lacks {what}"


@dataclass(slots=True, eq=False)
class Cluster:
    """Blocks that run at the same time.

    Parameters
    ----------
    size, threads
        How many blocks there are, and the threads of each.
    blocks
        Those that have begun, by rank.
    phase, arrived
        How often all threads have met, and how many have arrived since.
    """

    size: int
    threads: int
    blocks: dict[int, Block] = field(default_factory=dict)
    phase: int = 0
    arrived: int = 0

    def arrive(self, times: int, next_epoch: Callable[[], int]) -> int:
        """Count arrivals; return the phase that they belong to."""
        mine = self.phase
        self.arrived += times
        if self.arrived >= self.size * self.threads:
            self.phase, self.arrived = self.phase + 1, 0
            epoch = next_epoch()
            for block in self.blocks.values():
                block.epoch = block.thread_epoch = epoch
        return mine
