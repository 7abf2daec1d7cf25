"""The number of a block in its cluster."""

from __future__ import annotations

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.device import device
from tile_core.ir.expr import Call
from tile_core.records import replace
from tile_core.simt.context import SimtContext

RANK = "block_rank_in_cluster"


def cluster_rank(expr: Call, ctx: SimtContext) -> Call:
    """Return what the device header calls the rank of a block.

    Raises
    ------
    UnsupportedOnTarget
        If the machine has no clusters.
    """
    if not ctx.machine.has("clusters"):
        raise UnsupportedOnTarget(
            f"T.{RANK} is not an instruction of {ctx.machine.name}",
            span=expr.span,
            hint="leave cluster_dims out, or compile for a GPU with clusters of blocks",
        )
    return replace(device("cluster_rank"), span=expr.span)
