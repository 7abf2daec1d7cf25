"""Copies of shared tiles into the shared memory of another block of the cluster."""

from __future__ import annotations

from typing import ClassVar

from tile_core.errors import DtypeMismatch, ScopeMismatch, ShapeMismatch
from tile_core.ir.buffer import Region, Scope
from tile_core.ir.expr import Expr
from tile_core.ops.operator import TileOperator
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class RemoteCopy(TileOperator):
    """Copy a shared tile to the tile `dst` of another block of the cluster.

    Parameters
    ----------
    src, dst : Region, shared, of one shape and element type
        Elements that lie side by side in rows: whole tiles, some rows of them, or part of one
        row, as in ``S[k, 8:24, :]`` or ``S[k, i, 0:32]``. `dst` names the tile as this block does.
    block
        The rank in the cluster of the block whose tile is written.
    barrier : one element of a buffer of barriers
        That block's barrier, told of the bytes as they arrive; it expects them. Without it the
        data is there once all threads of the cluster have waited for each other.

    Raises
    ------
    ScopeMismatch, DtypeMismatch, ShapeMismatch
        If the tiles are not shared, not of one type, or not whole and of one shape.
    """

    mnemonic: ClassVar[str] = "remote_copy"
    spellings: ClassVar[tuple[str, ...]] = ("copy_cluster",)
    src: Region
    dst: Region
    block: Expr
    barrier: Region | None = None

    def reads(self) -> tuple[Region, ...]:
        """Return the source."""
        return (self.src,)

    def writes(self) -> tuple[Region, ...]:
        """Return the destination: another block's, which may name the same tile as a source."""
        return (self.dst,)

    def verify(self) -> None:
        """Check scopes, element types and shapes."""
        src, dst = self.src.buffer, self.dst.buffer
        if src.scope is not Scope.SHARED or dst.scope is not Scope.SHARED:
            wrong = src if src.scope is not Scope.SHARED else dst
            raise ScopeMismatch(
                f"blocks of a cluster reach each other's shared tiles, and {wrong.name!r} is in "
                f"{wrong.scope.value} memory",
                hint="copy it into a tile of T.alloc_shared first",
            )
        if src.dtype != dst.dtype:
            raise DtypeMismatch(
                f"a copy to another block does not convert: {src.dtype} to {dst.dtype}",
                hint="give both tiles the same element type",
            )
        if inner_shape(self.src) != inner_shape(self.dst) or inner_shape(self.src) is None:
            raise ShapeMismatch(
                f"{_shown(self.src)} cannot be copied to {_shown(self.dst)} of another block",
                hint="pass tiles or parts of them, of the same extents: S[k, 0:8, 0:32]",
            )


def inner_shape(region: Region) -> tuple[int, ...] | None:
    """Return the extents of a region behind first dimensions of one element each.

    None if its elements do not lie side by side in a tile of rows: of all dimensions behind the
    first of those the region has all elements.
    """
    extents, shape = region.static_extents, region.buffer.static_shape
    if extents is None or shape is None or region.is_element:
        return None
    lead = 0
    while lead < len(extents) and extents[lead] == 1:
        lead += 1
    return extents[lead:] if extents[lead + 1 :] == shape[lead + 1 :] else None


def _shown(region: Region) -> str:
    extents, shape = (list(region.extents), list(region.buffer.shape))
    return f"{extents} of {region.buffer.name}{shape}"


def is_whole(region: Region) -> bool:
    """Whether a region is all of its tile."""
    return region.static_extents == region.buffer.static_shape
