"""Tiles that pass through shared memory in batches, where all of one does not fit at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tile_core.ir.buffer import Region
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.expr import BinaryOp, Expr
from tile_core.records import dataclass
from tile_core.simt.context import SimtContext


@dataclass(frozen=True, slots=True)
class Batch:
    """The elements of a tile with indices ``first <= i < first + count`` in one dimension."""

    dim: int
    first: int
    count: int

    def has(self, index: Expr) -> Expr:
        """Return whether `index` in the dimension is one of the batch."""
        last = binary(BinaryOp.LT, index, self.first + self.count)
        return binary(BinaryOp.AND, binary(BinaryOp.GE, index, self.first), last)

    def of(self, region: Region, dim: int) -> Region:
        """Return the elements of `region` that belong to the batch along its dimension `dim`."""
        starts, extents = list(region.starts), list(region.extents)
        starts[dim] = binary(BinaryOp.ADD, as_expr(starts[dim]), self.first)
        extents[dim] = self.count
        return Region(region.buffer, tuple(starts), tuple(extents), span=region.span)


def batches(
    shape: Sequence[int], nbytes: int, dims: Iterable[int], ctx: SimtContext
) -> list[Batch]:
    """Return the batches in which a tile passes through a block's shared memory.

    None where all of it fits beside the kernel's tiles, or where not even one index of the
    longest dimension does: the memory plan then says what is missing.

    Before   exchange 131072 bytes, of 65536
    After    exchange 65536 bytes; barrier; exchange 65536 bytes

    Parameters
    ----------
    shape
        Of the tile.
    nbytes
        What all of it takes there.
    dims
        The dimensions along which it may be cut; the longest one is.
    """
    dim = max(dims, key=lambda d: shape[d], default=None)
    if dim is None or ctx.exchange_bytes is None or nbytes <= ctx.exchange_bytes:
        return []
    count = ctx.exchange_bytes * shape[dim] // nbytes
    if count < 1:
        return []
    return [Batch(dim, at, min(count, shape[dim] - at)) for at in range(0, shape[dim], count)]
