"""Kernels that run on every rank of a group, with tensors that exist once on each.

Such a kernel has two scalar parameters more than its user sees, the last ones: the rank that runs
it, and how many there are. The copies of a symmetric tensor lie side by side in one range of
addresses: it is a tensor whose first dimension counts ranks, and whose first stride is known at run
time.
"""

from __future__ import annotations

from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Var
from tile_core.ir.stmt import Kernel, Launch
from tile_launch.contract import Contract

RANK, RANKS = "rank", "ranks"
"""Names of the scalar parameters that say which rank runs a kernel, and how many there are."""
MOST_RANKS = 1 << 16
"""Ranks of a group: with a limit, sums of ranks do not wrap."""
OWN_RANK = Var(RANK, dtype_of("int32"), Contract(high=MOST_RANKS - 1))
RANK_COUNT = Var(RANKS, dtype_of("int32"), Contract(low=1, high=MOST_RANKS))
"""These parameters, of all kernels that are traced."""
FLAG_STRIDE = 16
"""Elements from one flag to the next: each has 64 bytes for itself."""


def rank_parameters(kernel: Kernel) -> tuple[Var, Var] | None:
    """Return the parameters for the own rank and the number of ranks; None if there are none."""
    match kernel.params:
        case (*_, Var(name="rank") as rank, Var(name="ranks") as ranks):
            return rank, ranks
    return None


def spans_ranks(launch: Launch) -> bool:
    """Whether the last index of a block is its rank: a grid has the blocks of all ranks."""
    match launch.block_vars, launch.grid:
        case (*_, Var(name="rank")), (*_, Var(name="ranks")):
            return True
    return False


def is_symmetric(buffer: Buffer, kernel: Kernel) -> bool:
    """Whether a parameter exists on every rank, within reach of the others; flags do."""
    found = rank_parameters(kernel)
    return found is not None and buffer.rank > 0 and buffer.shape[0] is found[1]
