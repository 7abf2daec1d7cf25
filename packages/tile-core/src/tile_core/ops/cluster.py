"""Clusters: blocks that run at the same time and reach each other's shared memory."""

from __future__ import annotations

from typing import ClassVar

from tile_core.ir.buffer import Region
from tile_core.ops.operator import TileOperator
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class ClusterSync(TileOperator):
    """Wait until all threads of all blocks of the cluster arrive.

    What they wrote to shared memory before is visible to all of them after.
    """

    mnemonic: ClassVar[str] = "cluster_sync"

    def reads(self) -> tuple[Region, ...]:
        """Nothing by itself; it orders what others read."""
        return ()

    def writes(self) -> tuple[Region, ...]:
        """Nothing."""
        return ()
