"""Two groups of warps that do the same work in turns."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from tile_core.ir.buffer import Region
from tile_core.ir.expr import Expr
from tile_core.ops.operator import TileOperator
from tile_core.records import dataclass

GROUP = 128
"""Threads of a group."""


class PingPongStep(Enum):
    """What a group does about the turn."""

    OFFER = "offer"  # the second group lets the first one begin
    TAKE = "take"  # wait until the other group has given the turn away
    GIVE = "give"  # give the turn to the other group


@dataclass(frozen=True, slots=True, eq=False)
class PingPongOrder(TileOperator):
    """Let the two halves of the running threads take turns, the first one first.

    Between `TAKE` and `GIVE` of one half the other waits at its own `TAKE`. `OFFER` stands once
    in front. Results do not change: only when each half does its work.

    Parameters
    ----------
    goes_on
        Whether another turn follows. The second half keeps the last one: nobody would take it.
    """

    mnemonic: ClassVar[str] = "ping_pong"
    step: PingPongStep
    goes_on: Expr | None = None

    def reads(self) -> tuple[Region, ...]:
        """Nothing."""
        return ()

    def writes(self) -> tuple[Region, ...]:
        """Nothing."""
        return ()
