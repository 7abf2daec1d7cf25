"""Asynchronous copies between their issue and the wait that ends them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

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
