"""Regions of tile buffers as matrices that the product kernels read and write."""

from __future__ import annotations

from typing import Any

from tile_core.errors import InternalError
from tile_core.ir.buffer import Region, static_value
from tile_core.ir.build_expr import as_expr, binary, cast, maximum, minimum
from tile_core.ir.expr import BinaryOp
from tile_core.passes.guards.registry import note_guard
from tile_cpu.lowering.context import Context
from tile_cpu.lowering.overflow import may_leave_tile
from tile_cpu.lowering.types import all_of
from tile_cpu.tir.build import bind
from tile_cpu.tir.nodes import PrimExpr
from tile_cpu.vectors import Matrix


def matrix_of(ctx: Context, region: Region, rows: int) -> Matrix:
    """Return `region` as a matrix; rows run along dimension `rows`, columns along the last.

    The start of the region is computed once, before the statement being emitted.
    """
    place = ctx.place(region.buffer)
    is_by_rows = place.layout is None and place.packing == 1
    if not is_by_rows or place.strides[-1] != 1:
        raise InternalError(f"{region.buffer.name!r} cannot be read as a matrix")
    start = place.offset([ctx.index(s, place.index) for s in region.starts])
    origin, statement = bind("origin", start)
    ctx.run(statement)
    step = place.strides[rows]

    def at(row: Any, column: Any) -> list[Any]:
        return [origin + row * step + column]

    return Matrix(place.flat, at, element_name(region))


def element_name(region: Region) -> str:
    """Return the element type under the name that the product kernels use."""
    dtype = region.buffer.dtype
    return "float32" if dtype.base == "tfloat32" else str(dtype.base)


def valid_extent(ctx: Context, region: Region, dimension: int) -> PrimExpr | None:
    """Return how much of `region` exists along `dimension`, or None if certainly all."""
    buffer = region.buffer
    extent = static_value(region.extents[dimension])
    if extent is None:
        raise InternalError(f"a tile of {buffer.name!r} has a run-time extent")
    if not buffer.scope.is_global:
        return None
    start, size = as_expr(region.starts[dimension]), as_expr(buffer.shape[dimension])
    end = binary(BinaryOp.ADD, start, extent)
    if ctx.env.proves(binary(BinaryOp.LE, end, size)):
        return None
    note_guard(buffer, dimension, binary(BinaryOp.SUB, end, 1), ctx.env)
    room = maximum(minimum(binary(BinaryOp.SUB, size, start), extent), 0)
    value, statement = bind("valid", ctx.index(cast(room, "int32")))
    ctx.run(statement)
    return value


def exists(ctx: Context, region: Region, rows: int) -> PrimExpr | None:
    """Return whether `region` lies inside along all but its rows and columns; None: certainly.

    Of tiles, along these as well: only a wrong program reaches beyond.
    """
    if not region.buffer.scope.is_global:
        return _is_in_tile(ctx, region)
    others = [d for d in range(region.buffer.rank - 1) if d != rows]
    found = [valid for d in others if (valid := valid_extent(ctx, region, d)) is not None]
    return all_of([valid > 0 for valid in found])


def _is_in_tile(ctx: Context, region: Region) -> PrimExpr | None:
    """Return whether a region of a tile leaves it nowhere; None: certainly."""
    if not ctx.settings.guarded:
        return None
    conditions: list[PrimExpr] = []
    for start, extent, size in zip(region.starts, region.extents, region.buffer.shape, strict=True):
        room = binary(BinaryOp.SUB, as_expr(size), as_expr(extent) - 1)
        if may_leave_tile(ctx, as_expr(start), static_value(room) or room):
            at = ctx.index(start, "int64")
            conditions += [at >= 0, at < ctx.index(room, "int64")]
    return all_of(conditions)
