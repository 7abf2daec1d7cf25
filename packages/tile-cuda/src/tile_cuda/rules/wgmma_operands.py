"""Operands of warpgroup MMAs: tiles that instructions read on their own, and parts of fragments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from tile_core.arith.constraints import ConstraintSet
from tile_core.errors import LayoutError
from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.expr import Extent
from tile_core.layout import Fragment, Layout, OperandTile, boxed_operand, operand_tile
from tile_core.records import dataclass
from tile_core.remarks import NotApplicable
from tile_core.simt.context import SimtContext
from tile_core.simt.subbyte_access import storage_dtype

LayoutOf: TypeAlias = Callable[[Buffer], "Layout | Fragment | None"]
"""The layout already fixed for a buffer, if any."""


@dataclass(frozen=True, slots=True)
class SharedOperand:
    """An operand that instructions read from shared memory.

    Descriptors see the buffer as `tile`; `is_k_last` tells whether neighbours along K are
    neighbours in its last dimension (K-major).
    """

    region: Region
    tile: OperandTile
    is_k_last: bool

    @property
    def origin(self) -> tuple[Extent, Extent]:
        """Where the region begins: first `x` (row of A, column of B), first `k`."""
        first, second = self.region.starts[-2:]
        return (first, second) if self.is_k_last else (second, first)

    @property
    def first_steps(self) -> Sequence[int]:
        """First elements along K that stand for all: parts begin in a box as from one of them."""
        first = self.origin[1]
        apart = known_multiple(first)
        if static_value(first) is not None or not self.is_k_last or apart == 0:
            return (apart,)
        return range(0, math.lcm(apart, self.tile.span_elements), apart)

    def require_starts(self, x: int, k: int) -> None:
        """Refuse a region at some multiples of `x` and `k` in which instructions cannot begin."""
        first_x, first_k = (known_multiple(start) for start in self.origin)
        for dx, dk in ((0, 0), (x, k)):
            why = self.tile.misfit(first_x + dx, first_k + dk, is_k_last=self.is_k_last)
            if why is not None:
                name = self.region.buffer.name
                raise NotApplicable(f"a part of {name!r} is out of place: {why}")


def known_multiple(start: Extent) -> int:
    """Return where a region begins; what it is known to be a multiple of, if that varies."""
    fixed = static_value(start)
    return ConstraintSet().multiple_of(start) if fixed is None else fixed


def shared_operand(region: Region, is_k_last: bool, layout_of: LayoutOf) -> SharedOperand:
    """Return an operand as its tile is stored.

    Tiles of which nothing is known are in the widest boxes.

    Raises
    ------
    NotApplicable
        Why no descriptor describes it.
    """
    buffer = region.buffer
    bits = width_of(buffer)
    known = layout_of(buffer)
    try:
        layout = (
            known if isinstance(known, Layout) else boxed_operand(buffer.static_shape or (), bits)
        )
        return SharedOperand(region, operand_tile(layout, bits), is_k_last)
    except LayoutError as why:
        reason = f"no descriptor describes {buffer.name!r}: {why.message}"
        raise NotApplicable(reason) from None


def settled_layouts(ctx: SimtContext) -> LayoutOf:
    """Return where tiles are in memory and in registers, now that it is settled."""

    def layout_of(buffer: Buffer) -> Layout | Fragment:
        place: Layout | Fragment = (
            ctx.fragment_of(buffer) if buffer.scope is Scope.FRAGMENT else ctx.layout_of(buffer)
        )
        return place

    return layout_of


def width_of(buffer: Buffer) -> int:
    """Return the bits of an element in memory."""
    bits: int = storage_dtype(buffer.dtype, buffer.scope).bits
    return bits


COLUMNS = 8
"""Sums of so many columns are registers that follow each other."""


@dataclass(frozen=True, slots=True)
class Part:
    """Neighbours along one dimension of a fragment, all along the other one.

    The fragment goes as far as `all`.
    """

    first: int
    extent: int
    all: int

    @property
    def is_whole(self) -> bool:
        """Whether the part is all of the fragment."""
        return self.extent == self.all

    def is_made_of(self, step: int) -> bool:
        """Whether the part, and what is before and behind it, are whole steps."""
        return self.first % step == 0 and self.extent % step == 0 and self.all % step == 0


def part_of(region: Region, *, along: int = -1) -> Part | None:
    """Return which part of a fragment a region is.

    The dimension `along` which it may be a part is the last, or the one before. None if it is a
    part along the other one too, or its place is not known.
    """
    shape, extents = region.buffer.static_shape, region.static_extents
    first = static_value(region.starts[along])
    other = -3 - along
    if shape is None or extents is None or first is None or shape[other] != extents[other]:
        return None
    return Part(first, extents[along], shape[along])
