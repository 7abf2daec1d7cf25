"""Several elements at once: slices as vectors, and buffers whose elements are vectors."""

from __future__ import annotations

from typing import Any

from tile_api.frontend.builder import here
from tile_api.frontend.indexing import resolve_index
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import Const, Expr, Load, Ramp


def has_step(index: Any) -> bool:
    """Whether the last part of an index is a slice ``a:b:step`` and all others are numbers."""
    parts = index if isinstance(index, tuple) else (index,)
    last = parts[-1] if parts else None
    if not isinstance(last, slice) or last.step is None or last.step is Ellipsis:
        return False
    step = last.step.value if isinstance(last.step, Const) else last.step
    numbers = not any(part is Ellipsis or isinstance(part, slice) for part in parts[:-1])
    return numbers and isinstance(step, int) and not isinstance(step, bool) and step > 1


def slice_indices(buffer: Buffer, index: Any) -> tuple[Expr, ...] | None:
    """Return the indices of the elements that an index with a slice selects, as a vector.

    None if that is no vector: if another dimension than the last is sliced, or how many
    elements there are is known only at run time.
    """
    step = 1
    if has_step(index):
        parts = index if isinstance(index, tuple) else (index,)
        step = int(getattr(parts[-1].step, "value", parts[-1].step))
        index = (*parts[:-1], slice(parts[-1].start, parts[-1].stop))
    where = resolve_index(buffer, index)
    return _along_last(where.starts, where.extents, step)


def region_indices(region: Region) -> tuple[Expr, ...] | None:
    """Return the indices of a region's elements as a vector; see `slice_indices`."""
    return _along_last(region.starts, region.extents, 1)


def _along_last(starts: Any, extents: Any, step: int) -> tuple[Expr, ...] | None:
    *others, length = extents
    if any(not isinstance(e, int) or e != 1 for e in others) or not isinstance(length, int):
        return None
    lanes = -(-length // step)
    *before, first = (build_expr.as_expr(s) for s in starts)
    if lanes < 1 or first.dtype.lanes != 1:
        return None
    last = (
        first
        if lanes == 1
        else Ramp(first, build_expr.const(step, first.dtype), lanes, span=here())
    )
    return (*before, last)


def is_strided(value: Any) -> bool:
    """Whether `value` is the vector that a slice with a step selects."""
    return isinstance(value, Load) and bool(value.indices) and isinstance(value.indices[-1], Ramp)


def vector_value(value: Any) -> Expr | None:
    """Return the vector that can be stored to several elements; None for anything else."""
    if isinstance(value, Region):
        indices = region_indices(value)
        return None if indices is None else Load(value.buffer, indices, span=here())
    if hasattr(value, "__tile_expr__"):
        value = build_expr.as_expr(value)
    return value if isinstance(value, Expr) and value.dtype.lanes > 1 else None
