"""Which global tensors can be read as matrices without staging them first."""

from __future__ import annotations

from tile_core.ir.buffer import Buffer, static_value


def axis_of(axes: tuple[int | None, ...], wanted: int) -> int | None:
    """Return the dimension that moves along the iteration axis `wanted`, or None."""
    return next((k for k, axis in enumerate(axes) if axis == wanted), None)


def has_contiguous_rows(buffer: Buffer) -> bool:
    """Tell whether neighbours along the last dimension are neighbours in memory."""
    return buffer.strides is None or static_value(buffer.strides[-1]) == 1


def is_plain_source(source: Buffer, tile: Buffer) -> bool:
    """Tell whether elements of `source` are what a copy would put into `tile`."""
    is_plain = source.scope.is_global and source.dtype.packing == 1 and source.origin is None
    return is_plain and source.dtype == tile.dtype and has_contiguous_rows(source)
