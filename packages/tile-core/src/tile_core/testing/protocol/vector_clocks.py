"""What a role knows of everybody: vector clocks with an entry for each thing that can end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tile_core.testing.protocol.events import COPIES, PRODUCTS, STORES, BarrierId, Init, Program

Clock = npt.NDArray[np.int32]

ENGINES = (PRODUCTS, STORES, COPIES)

ENTRIES = 3 + len(ENGINES)
"""Of a role."""


@dataclass(frozen=True, slots=True)
class Known:
    """That something has come to an end: entry `at` of a clock is at least `value`."""

    at: int
    value: int

    def is_in(self, clock: Clock) -> bool:
        """Whether a clock tells so."""
        return bool(clock[self.at] >= self.value)


class Layout:
    """Where the entries of a clock are: for each role its steps, fences and what engines do.

    Of copies that a role began there are two entries: how many are over, and how many were when
    it last fenced. Behind all of these stand how many phases of each barrier are known to be over.
    """

    def __init__(self, program: Program) -> None:
        self.roles = len(program.roles)
        self.phases = {p: ENTRIES * self.roles + k for k, p in enumerate(program.arrivals)}
        self.named = {e.barriers for r in program.roles for e in r.events if isinstance(e, Init)}

    def zero(self) -> Clock:
        """Return the clock of who knows nothing."""
        return np.zeros(ENTRIES * self.roles + len(self.phases), np.int32)

    def fenced(self, role: int) -> int:
        """Return where the last fence of a role stands."""
        return self.roles + role

    def settled(self, role: int, engine: str) -> int:
        """Return where it stands how much of what an engine does for a role is over."""
        return (2 + ENGINES.index(engine)) * self.roles + role

    def fenced_copies(self, role: int) -> int:
        """Return where it stands how many copies were over when a role fenced last."""
        return (ENTRIES - 1) * self.roles + role

    def phase(self, place: BarrierId) -> int:
        """Return where the phases of a barrier stand."""
        return self.phases[place]

    def is_in_memory(self, place: BarrierId) -> bool:
        """Whether a barrier must be made ready."""
        return place[0] in self.named
