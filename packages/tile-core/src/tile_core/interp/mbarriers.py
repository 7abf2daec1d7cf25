"""What threads wait for: barriers in shared memory, asynchronous copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(slots=True, eq=False)
class Signal:
    """A barrier in shared memory, which completes one phase after the other."""

    name: str  # what the program calls it, for messages
    count: int  # arrivals that a phase needs
    phase: int = 0  # the number of the phase that is not complete
    arrived: int = 0  # arrivals in it so far
    nbytes: int = 0  # bytes that copies were announced to bring, less those that they brought

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


Arrival: TypeAlias = Callable[[], None]
"""What happens when a copy arrives."""


@dataclass(slots=True, eq=False)
class PendingCopy:
    """The copies of a block that have not arrived, in groups."""

    groups: list[list[Arrival]] = field(default_factory=list)  # closed groups, oldest first
    # The copies of the group that is still open.
    issued: list[Arrival] = field(default_factory=list)

    def close(self) -> None:
        """Close the open group."""
        self.groups.append(self.issued)
        self.issued = []

    def wait(self, pending: int) -> None:
        """Let copies arrive until `pending` closed groups are left."""
        done = max(len(self.groups) - pending, 0)
        arrived, self.groups = self.groups[:done], self.groups[done:]
        for group in arrived:
            for arrive in group:
                arrive()

    def land(self) -> None:
        """Let all copies arrive, those of the open group too; groups stay as many as they are."""
        begun = [arrive for group in (*self.groups, self.issued) for arrive in group]
        self.groups, self.issued = [[] for _ in self.groups], []
        for arrive in begun:
            arrive()
