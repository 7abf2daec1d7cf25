"""Which copies a copy engine can make, as boxes or as one bulk 1-D copy, and why not the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import Enum

from tile_core.arith.constraints import ConstraintSet
from tile_core.errors import LayoutError
from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.build_expr import as_expr
from tile_core.ir.expr import Expr
from tile_core.ir.gpu_intrinsics import COPY_ENGINE_WORDS
from tile_core.ir.node import Node, contains
from tile_core.ir.stmt import Launch
from tile_core.layout.copy_engine_boxes import START, Starts, boxes_of, layout_in_boxes
from tile_core.ops.copy import Copy
from tile_core.ops.region_pairing import pair
from tile_core.ops.signals import SIGNALS
from tile_core.passes.pipelines.asynchronous_copies import strides_of
from tile_core.passes.warp_specialisation.contiguous_copies import (
    WIDEST,
    has_rows_in_order,
    is_computed,
    is_row,
    require_alignment,
    require_annotated_boxes,
    require_contiguous,
)
from tile_core.remarks import NotApplicable
from tile_launch.tensor_maps import MAX_EXTENT, MAX_STRIDE

ALIGNMENT = 16
"""Bytes that rows of tensors and tiles are multiples of."""

GROUP = 8
"""Rows after which the pattern of boxes side by side repeats: others follow each other."""

MOST_DIMENSIONS = 5


class BulkCopyKind(Enum):
    """How the copy engine makes a copy."""

    TENSOR = "boxes of the tensor, which a map of it describes"
    CONTIGUOUS = "bytes that are contiguous on both sides: a bulk 1-D copy"


def bulk_way(
    copy: Copy,
    env: ConstraintSet,
    safe_values: Mapping[Buffer, Expr],
    launch: Launch,
    made_for: Node | None = None,
    *,
    asked: bool = False,
) -> BulkCopyKind:
    """Return how the copy engine can make `copy`, or raise `NotApplicable` if it cannot.

    Rows of one dimension are bulk 1-D copies where they can be: these need no map. Tiles of rows
    are boxes, whose chunks may be exchanged for those who read them; where there are no boxes, as
    with rows of 24 bytes, or only such of 16 bytes, and nobody minds, the tile is one bulk 1-D copy
    of whole rows. Blocks of a cluster can share boxes. `env` is what is known of numbers within the
    loops of `launch`. The copy is a part of a statement of the launch that it is `made_for`, if it
    is none itself; `asked` is as of `require_boxes`.
    """
    _require_transfer(copy)
    if contains(launch, *SIGNALS):
        raise NotApplicable("signals do not order what the copy engine does")
    tensor, tile = _sides(copy)
    if is_computed(tensor.buffer) and asked:
        require_alignment(tensor.buffer, env)
        require_contiguous(copy, tensor, tile, env)
        return BulkCopyKind.CONTIGUOUS
    misfit = None
    try:
        require_boxes(copy, env, safe_values, asked=asked)
        require_annotated_boxes(tile.buffer, launch)
        if not _are_narrow(tile.buffer, launch):
            return BulkCopyKind.TENSOR
    except NotApplicable as why:
        if is_computed(tensor.buffer):
            raise
        misfit = why
    with suppress(NotApplicable):
        require_contiguous(copy, tensor, tile, env)
        if has_rows_in_order(made_for or copy, tile.buffer, launch):
            return BulkCopyKind.CONTIGUOUS
    if misfit is not None:
        raise misfit
    return BulkCopyKind.TENSOR


def _are_narrow(tile: Buffer, launch: Launch) -> bool:
    """Whether boxes are hardly worth a map: they are single rows, or of 16 bytes."""
    if is_row(tile):
        return max(launch.cluster, default=1) == 1
    columns = static_value(tile.shape[-1]) or 0
    return columns * tile.dtype.bits // 8 % (2 * ALIGNMENT) != 0


def _sides(copy: Copy) -> tuple[Region, Region]:
    """Return the tensor and the tile of a copy."""
    is_load = copy.src.buffer.scope is Scope.GLOBAL
    return (copy.src, copy.dst) if is_load else (copy.dst, copy.src)


def require_boxes(
    copy: Copy, env: ConstraintSet, safe_values: Mapping[Buffer, Expr], *, asked: bool = False
) -> None:
    """Refuse `copy` unless the copy engine can make it as boxes of a tensor.

    The copy is between a tensor and a shared tile; the `safe_values` are what loads outside of
    tensors give, where the program says so. If the program `asked` for the copy engine, rows or
    columns of the tile may be copied in part: which parts are boxes depends on how the tile is
    stored, see `tile_core.layout.copy_engine_boxes.boxes_of`. And a tensor at an address that the
    kernel computes may be one bulk 1-D copy: nobody checks that address at the launch. The base
    address of a tensor is checked at the launch, which knows it. Source: CUDA Driver API,
    cuTensorMapEncodeTiled.
    """
    _require_transfer(copy)
    tensor, tile = _sides(copy)
    outside = safe_values.get(tensor.buffer)
    if is_computed(tensor.buffer):
        raise NotApplicable(f"the kernel computes the address of {tensor.buffer.name!r}")
    if outside is not None and static_value(outside) != 0:
        raise NotApplicable(f"elements outside of {tensor.buffer.name!r} are not zero")
    _require_rows(copy, tensor, tile, asked)
    _require_strides(tensor.buffer, env)


def _require_transfer(copy: Copy) -> None:
    """Refuse a copy that no copy engine can make."""
    if copy.disable_bulk:
        raise NotApplicable("the program asks for another way")
    if copy.prefer_instruction is not None and copy.prefer_instruction not in COPY_ENGINE_WORDS:
        raise NotApplicable(f"the program asks for {copy.prefer_instruction!r}")
    src, dst = copy.src.buffer, copy.dst.buffer
    tensor, tile = _sides(copy)
    if tensor.buffer.scope is not Scope.GLOBAL or tile.buffer.scope is not Scope.SHARED:
        raise NotApplicable("it is not between a tensor and a shared tile")
    if src.dtype != dst.dtype:
        raise NotApplicable(f"it converts {src.dtype} to {dst.dtype}")
    if src.dtype.bits % 8:
        raise NotApplicable(f"elements of {src.dtype} share bytes in tensors, and do not in tiles")


def _require_rows(copy: Copy, tensor: Region, tile: Region, asked: bool) -> None:
    """Refuse copied elements that are no boxes of both sides."""
    pairing = pair(copy.src, copy.dst)
    extents = [static_value(e) for e in pairing.extents]
    if None in extents:
        raise NotApplicable("its extents are known only at run time")
    mine, theirs = pairing.dst_axes, pairing.src_axes
    if tile is copy.src:
        mine, theirs = theirs, mine
    moving = [a for a in mine if a is not None and extents[a] != 1]
    there = [a for a in theirs if a is not None and extents[a] != 1]
    if moving != there or moving != sorted(moving) or len(moving) != sum(n != 1 for n in extents):
        raise NotApplicable("its dimensions are not in the same order on both sides")
    if not moving or mine[-1] != moving[-1] or theirs[-1] != moving[-1]:
        raise NotApplicable("rows of the tile are not rows of the tensor")
    if tensor.buffer.rank > MOST_DIMENSIONS:
        raise NotApplicable(
            f"a tensor has {tensor.buffer.rank} dimensions, of which {MOST_DIMENSIONS} can move"
        )
    columns = extents[moving[-1]] or 0
    copied = tuple(1 if axis is None else extents[axis] or 0 for axis in mine)
    in_part = is_part(tile.buffer, copied)
    if in_part and not asked:
        raise NotApplicable("it fills rows or columns of the tile in part")
    rows = static_value((1, *tile.buffer.shape)[-2]) or 0
    if not in_part and rows > 1 and rows % GROUP and columns > WIDEST:
        raise NotApplicable(f"rows of {columns} elements are longer than the {WIDEST} of a box")
    if columns * tile.buffer.dtype.bits // 8 % ALIGNMENT:
        raise NotApplicable(f"rows of {columns} elements are no multiple of {ALIGNMENT} bytes")
    if not in_part:
        _require_tiling(tile.buffer, copied)


def _require_tiling(tile: Buffer, extents: tuple[int, ...]) -> None:
    """Refuse a tile that cannot be made of boxes although nobody else has a demand on it."""
    shape, bits = tile.static_shape, tile.dtype.bits
    if shape is None:
        raise NotApplicable("the shape of its tile is known only at run time")
    try:
        boxes_of(layout_in_boxes(shape, bits, extents), bits, extents)
    except LayoutError as why:
        raise NotApplicable(why.message) from None


def is_part(tile: Buffer, copied: Sequence[int]) -> bool:
    """Whether a copy of so many elements fills rows or columns of a tile in part."""
    return [static_value(extent) for extent in tile.shape[-2:]] != list(copied[-2:])


def starts_of(tile: Region, multiple_of: Callable[[Expr], int]) -> Starts:
    """Return the coordinates at which a part of a tile may begin, for all that is known.

    `multiple_of` returns a number known to divide a coordinate, 0 if that is 0.
    """
    found = []
    for start, size, extent in zip(tile.starts, tile.extents, tile.buffer.shape, strict=True):
        known, room = static_value(start), (static_value(extent) or 0) - (static_value(size) or 0)
        if known is None:
            step = multiple_of(as_expr(start)) or room + 1
            found.append(range(0, room + 1, step))
        else:
            found.append(range(known, known + 1))
    return tuple(found)


def require_aligned_versions(elements: int, tile: Buffer) -> None:
    """Refuse a tile of whose versions, of so many elements, some begin where no copy may."""
    nbytes = elements * tile.dtype.bits // 8
    if nbytes % START:
        raise NotApplicable(f"parts of {nbytes} bytes do not begin at multiples of {START}")


def _require_strides(tensor: Buffer, env: ConstraintSet) -> None:
    """Refuse a tensor from row to row of which the copy engine cannot step."""
    nbytes = tensor.dtype.bits // 8
    strides = strides_of(tensor)
    for extent in map(static_value, tensor.shape):
        if extent is not None and extent > MAX_EXTENT:
            raise NotApplicable(
                f"{tensor.name!r} has {extent} elements along a dimension, more than 2^31"
            )
    if static_value(strides[-1]) != 1:
        raise NotApplicable(f"elements of {tensor.name!r} are not contiguous")
    for stride in strides[:-1]:
        if (static_value(stride) or 0) * nbytes >= MAX_STRIDE:
            raise NotApplicable(f"rows of {tensor.name!r} are 2^40 bytes apart or more")
        if env.multiple_of(stride) * nbytes % ALIGNMENT:
            raise NotApplicable(
                f"rows of {tensor.name!r} are not known to begin at multiples of {ALIGNMENT} bytes"
            )
