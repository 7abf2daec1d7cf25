"""Which copies are contiguous on both sides, and why others are not."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tile_core.arith.constraints import ConstraintSet
from tile_core.arith.in_range import prove_in_range
from tile_core.errors import LayoutError
from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.build_expr import as_expr
from tile_core.ir.expr import AddressOf, Expr, Extent
from tile_core.ir.node import Node, analysis, nodes_of, walk
from tile_core.ir.stmt import AnnotateLayout, For, Kernel, Launch, Pipelined
from tile_core.layout import Layout, operand_tile, row_major
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.ops.operator import TileOperator
from tile_core.ops.region_pairing import pair
from tile_core.passes.pipelines.loop_analysis import facts_of
from tile_core.remarks import NotApplicable

ALIGNMENT = 16
"""Bytes that places and sizes of such copies are multiples of."""

WIDEST = 256
"""Elements of a box along one dimension."""


def require_contiguous(copy: Copy, tensor: Region, tile: Region, env: ConstraintSet) -> None:
    """Refuse `copy` unless the copy engine can make it without knowing the tensor's shape.

    It then copies bytes: all that is between the first and the last, none of them outside of
    the tensor. Source: PTX ISA, "cp.async.bulk". `env` is what is known where the copy stands: see
    `within_loops`.
    """
    pairing = pair(copy.src, copy.dst)
    mine, theirs = pairing.dst_axes, pairing.src_axes
    if tile is copy.src:
        mine, theirs = theirs, mine
    extents = [static_value(extent) for extent in pairing.extents]
    known = [extent for extent in extents if extent is not None]
    if len(known) < len(extents):
        raise NotApplicable("its extents are known only at run time")
    moving = [axis for axis in mine if axis is not None and known[axis] != 1]
    if moving != [axis for axis in theirs if axis is not None and known[axis] != 1]:
        raise NotApplicable("its dimensions are not in the same order on both sides")
    nbytes = math.prod(known[axis] for axis in moving) * tensor.buffer.dtype.bits // 8
    if nbytes % ALIGNMENT:
        raise NotApplicable(f"its {nbytes} bytes are no multiple of {ALIGNMENT}")
    for region, axes in ((tensor, theirs), (tile, mine)):
        sizes = [1 if axis is None else known[axis] for axis in axes]
        _require_contiguous_box(region, sizes, env)
    for start, axis, extent in zip(tensor.starts, theirs, tensor.buffer.shape, strict=True):
        size = 1 if axis is None else known[axis]
        if not prove_in_range(as_expr(start), as_expr(extent) - size + 1, env):
            raise NotApplicable(f"it is not known to stay inside of {tensor.buffer.name!r}")


def _require_contiguous_box(region: Region, sizes: Sequence[int], env: ConstraintSet) -> None:
    """Refuse a box that is not contiguous, or does not begin where a copy of bytes may."""
    buffer = region.buffer
    if buffer.strides is not None and not _is_contiguous(buffer):
        raise NotApplicable(f"elements of {buffer.name!r} are not known to be contiguous")
    first = next((dim for dim, size in enumerate(sizes) if size != 1), len(sizes))
    for size, extent in zip(sizes[first + 1 :], buffer.shape[first + 1 :], strict=True):
        if static_value(extent) != size:
            raise NotApplicable(f"parts of rows of {buffer.name!r} are not contiguous")
    nbytes = buffer.dtype.bits // 8
    step: Extent = 1
    for start, extent in zip(reversed(region.starts), reversed(buffer.shape), strict=True):
        if env.multiple_of(as_expr(start) * step) * nbytes % ALIGNMENT:
            raise NotApplicable(
                f"it is not known to begin at a multiple of {ALIGNMENT} bytes of {buffer.name!r}"
            )
        step = step * extent


def is_computed(tensor: Buffer) -> bool:
    """Whether the kernel computes the address of a tensor."""
    return isinstance(tensor.storage.origin, Expr)


def require_alignment(tensor: Buffer, env: ConstraintSet) -> None:
    """Refuse a tensor at the address of an element of another that does not begin as it must.

    Numbers that are addresses, as those in tables, are taken to be what they must.
    """
    origin = tensor.storage.origin
    if not isinstance(origin, AddressOf):
        return
    there, step, offset = origin.buffer, as_expr(1), as_expr(0)
    strides = there.strides or (None,) * there.rank
    for index, extent, stride in reversed(
        list(zip(origin.indices, there.shape, strides, strict=True))
    ):
        offset = offset + index * (step if stride is None else stride)
        step = step * extent
    if env.multiple_of(offset) * there.dtype.bits // 8 % ALIGNMENT:
        raise NotApplicable(f"it begins at no known multiple of {ALIGNMENT} bytes")
    require_alignment(there, env)


def _is_contiguous(tensor: Buffer) -> bool:
    """Whether a tensor whose address is computed has the strides that are written out for it."""
    step: Extent = 1
    for extent, stride in zip(reversed(tensor.shape), reversed(tensor.strides or ()), strict=True):
        if static_value(stride) is None or static_value(stride) != static_value(step):
            return False
        step = step * extent
    return is_computed(tensor)


def is_row(tile: Buffer) -> bool:
    """Whether a tile has one dimension: then no chunks of its rows change places."""
    shape = tile.static_shape
    return shape is not None and sum(extent != 1 for extent in shape) <= 1


def has_rows_in_order(copy: Node, tile: Buffer, launch: Launch) -> bool:
    """Whether the rows of a shared tile may follow each other in memory.

    Users, MMAs, and others than `copy` that move it from or to tensors have requirements of
    their own, unless it has one dimension; everybody else takes what there is.
    """
    for node in walk(launch.body):
        if isinstance(node, AnnotateLayout) and node.buffer.storage is tile.storage:
            if _has_rows_in_order(node.layout):
                continue
            return False
        if is_row(tile):
            continue
        if isinstance(node, Buffer) and node.storage is tile.storage and node is not tile:
            return False
        if node is copy or not isinstance(node, TileOperator):
            continue
        scopes = {region.buffer.scope for region in (*node.reads(), *node.writes())}
        touched = {region.buffer.storage for region in (*node.reads(), *node.writes())}
        if tile.storage in touched and (isinstance(node, Gemm) or Scope.GLOBAL in scopes):
            return False
    return True


def require_annotated_boxes(tile: Buffer, launch: Launch) -> None:
    """Refuse a tile that the user stores so that the copy engine cannot copy boxes of it."""
    for node in nodes_of(launch.body, AnnotateLayout):
        if node.buffer.storage is not tile.storage:
            continue
        if not isinstance(node.layout, Layout):
            raise NotApplicable(f"the layout of {tile.name!r} is none of memory")
        *_, rows, columns = (1, *node.layout.shape)
        if _has_rows_in_order(node.layout):
            if rows > 1 and columns > WIDEST:
                raise NotApplicable(f"rows of {columns} elements are longer than {WIDEST}")
            return
        try:
            operand_tile(node.layout, tile.dtype.bits)
        except LayoutError as why:
            raise NotApplicable(why.message) from None


def _has_rows_in_order(layout: object) -> bool:
    return isinstance(layout, Layout) and layout.same_function(row_major(layout.shape))


@analysis
def facts_in_loops(kernel: Kernel, launch: Launch) -> ConstraintSet:
    """Return what is known of numbers everywhere in a launch, and in its loops of their indices."""
    return within_loops(launch, facts_of(kernel, launch))


def within_loops(launch: Launch, env: ConstraintSet) -> ConstraintSet:
    """Return what is known of numbers in the launch, and of the indices of its loops in them."""
    for node in nodes_of(launch.body, For, Pipelined):
        env = env.in_loop(node)
    return env
