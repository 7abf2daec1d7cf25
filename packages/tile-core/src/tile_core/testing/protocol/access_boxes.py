"""Which elements of tiles a statement touches, and what tells their contents apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.build_expr import as_expr
from tile_core.ir.effects import Access, Mode, accesses
from tile_core.ir.expr import AddressOf, Load
from tile_core.ir.node import walk
from tile_core.ir.stmt import Leaf, Stmt, Store
from tile_core.ir.visitor import bound_variables
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.ops.copy import Copy
from tile_core.ops.region_pairing import boxes, pair
from tile_core.testing.protocol.events import Box, Content
from tile_core.testing.protocol.values import Unknown, Values


@dataclass(frozen=True, slots=True)
class Touched:
    """One tile that a statement reads or writes: in a region, or at indices of its own.

    `operand` tells apart what a statement reads: the place of the region, or which of the tiles
    that it touches it is. Copies of the statement may have tiles of other names.
    """

    tile: Buffer
    access: Access
    writes: bool
    operand: object


def touched(stmt: Stmt) -> tuple[Touched, ...]:
    """Return the shared tiles that a statement touches, each access once."""
    found = []
    numbers: dict[Buffer, int] = {}
    for access in accesses(stmt):
        tile = access.buffer.storage
        if tile.scope is Scope.SHARED:
            operand = _operand(access, numbers.setdefault(tile, len(numbers)))
            found.append(Touched(tile, access, access.mode is not Mode.READ, operand))
            if access.mode is Mode.ATOMIC:
                found.append(Touched(tile, access, False, operand))
    return tuple(found)


def _operand(access: Access, number: int) -> object:
    if access.region is None or not isinstance(access.node, Leaf):
        return "tile", number
    regions = [*access.node.reads()]
    return next((k for k, r in enumerate(regions) if r is access.region), ("tile", number))


def box_of(touch: Touched, values: Values, stmt: Stmt) -> Box:
    """Return the elements of the storage that an access touches, or more.

    Whatever an index inside of the statement decides counts as all of its dimension.
    """
    region = touch.access.region
    if isinstance(stmt, (Copy, BulkCopy)) and region is not None and region.is_element:
        src, dst = boxes(stmt.src, stmt.dst)  # with its extents
        region = src if region is stmt.src else dst
    if region is not None:
        return region_box(region, values)
    node = touch.access.node
    assert isinstance(node, (Load, Store, AddressOf))
    inner = bound_variables(stmt)
    starts: list[int | None] = []
    for index in node.indices:
        depends = any(n in inner for n in walk(index))
        starts.append(None if depends else _known(index, values))
    if isinstance(node, AddressOf):
        starts = [None] * len(starts)
    return _in_storage(touch.access.buffer, tuple((s, 1) for s in starts))


def region_box(region: Region, values: Values) -> Box:
    """Return the elements of the storage that a region has, or more."""
    sizes = zip(region.starts, region.extents, strict=True)
    return _in_storage(
        region.buffer, tuple((_known(start, values), _known(e, values)) for start, e in sizes)
    )


def _in_storage(buffer: Buffer, sizes: tuple[tuple[int | None, int | None], ...]) -> Box:
    """Return the box in the storage; of views only a first index is kept that both have."""
    storage = buffer.storage
    extents = storage.static_shape or (1,) * storage.rank
    if buffer is not storage:
        same = buffer.rank > 1 and storage.rank > 1 and buffer.static_shape is not None
        if not same or static_value(buffer.shape[0]) != extents[0]:
            return tuple((0, extent) for extent in extents)
        sizes = (sizes[0], *((None, None) for _ in extents[1:]))
    return tuple(
        (0, extent) if start is None or size is None else (start, start + size)
        for (start, size), extent in zip(sizes, extents, strict=True)
    )


def _known(extent: object, values: Values) -> int | None:
    try:
        return int(values.of(extent))
    except Unknown:
        return None


def content_of(stmt: Stmt, values: Values, turn: int) -> Content:
    """Return what tells apart what a statement writes.

    Of a copy out of a tensor: where in the tensor the tile begins, which is the same for each
    part of a tile. Else the elements of tensors that the statement reads first; or how often
    it has been run, if there are none.
    """
    if isinstance(stmt, (Copy, BulkCopy)) and stmt.src.buffer.scope is Scope.GLOBAL:
        return (stmt.src.buffer.storage.name, *_origin(stmt, values))
    for var in bound_variables(stmt):
        values.vars[var] = 0
    where = []
    for node in walk(stmt):
        if isinstance(node, Load) and node.buffer.scope is Scope.GLOBAL:
            where.append((node.buffer.name, *(_known(index, values) for index in node.indices)))
        elif isinstance(node, Leaf):
            for region in node.reads():
                if region.buffer.scope is Scope.GLOBAL:
                    starts = (_known(start, values) for start in region.starts)
                    where.append((region.buffer.name, *starts))
    return (stmt.span, *where) if where else (stmt.span, turn)


def _origin(copy: Copy | BulkCopy, values: Values) -> Iterator[int | None]:
    pairing = pair(copy.src, copy.dst)
    there = {axis: d for d, axis in enumerate(pairing.dst_axes) if axis is not None}
    for start, axis in zip(copy.src.starts, pairing.src_axes, strict=True):
        mine = _known(as_expr(start), values)
        if axis in there and mine is not None and static_value(pairing.extents[axis]) != 1:
            offset = _known(copy.dst.starts[there[axis]], values)
            mine = None if offset is None else mine - offset
        yield mine
