"""What an index expression selects: rank checks, slices, and negative indices."""

from __future__ import annotations

from typing import Any

from tile_api.frontend.builder import active, current
from tile_core.arith.affine import subtract
from tile_core.arith.interval_analysis import interval
from tile_core.errors import IndexMismatch, Note
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.expr import Const, Expr, Extent, Ramp
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True)
class ResolvedIndex:
    """A checked index: where the selection starts and how far it reaches, per dimension."""

    starts: tuple[Extent, ...]
    extents: tuple[Extent, ...]
    is_element: bool

    @property
    def indices(self) -> tuple[Expr, ...]:
        """The starts as expressions."""
        return tuple(build_expr.as_expr(s) for s in self.starts)


def resolve_index(buffer: Buffer, index: Any) -> ResolvedIndex:
    """Check what stands in the brackets of ``buffer[index]``.

    An index that is provably negative counts from the end; one of unknown sign is kept. A
    missing slice bound means the edge.
    """
    parts = _expand(buffer, index)
    if len(parts) != buffer.rank:
        raise _wrong_rank(buffer, len(parts))
    starts: list[Extent] = []
    extents: list[Extent] = []
    for axis, part in enumerate(parts):
        if isinstance(part, slice):
            start, extent = _slice(buffer, axis, part)
        else:
            start, extent = _scalar(buffer, axis, part), 1
        starts.append(start)
        extents.append(extent)
    is_element = not any(isinstance(part, slice) for part in parts)
    return ResolvedIndex(tuple(starts), tuple(extents), is_element)


def _expand(buffer: Buffer, index: Any) -> tuple[Any, ...]:
    parts = index if isinstance(index, tuple) else (index,)
    dots = [k for k, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        told = "an index can contain only one `...`"
        raise IndexMismatch(told, hint="write `:` for each other whole dimension")
    if dots:
        missing = buffer.rank - len(parts) + 1
        parts = (*parts[: dots[0]], *(slice(None),) * max(missing, 0), *parts[dots[0] + 1 :])
    return parts


def _wrong_rank(buffer: Buffer, given: int) -> IndexMismatch:
    rank = buffer.rank
    plural = "index" if rank == 1 else "indices"
    example = ", ".join(["i", "j", "k", "l"][: min(rank, 4)] if rank <= 4 else ["i", "..."])
    return IndexMismatch(
        f"{buffer.name!r} has {rank} dimension{'s' * (rank != 1)} and needs {rank} {plural}, "
        f"got {given}",
        notes=(Note(f"{buffer.name} is declared here", buffer.span),),
        hint=f"write {buffer.name}[{example}] for an element; use `:` for a whole dimension",
    )


def _number(buffer: Buffer, axis: int, part: Any) -> Extent:
    """Return an index as an int or an integer expression."""
    if isinstance(part, bool) or part is None or isinstance(part, (str, list, float)):
        raise _not_integer(buffer, axis, f"{type(part).__name__} {part!r}")
    if isinstance(part, int):
        return part
    if not isinstance(part, Expr) and not hasattr(part, "__tile_expr__"):
        if hasattr(part, "__index__") and getattr(part, "shape", ()) == ():
            return int(part.__index__())
        raise _not_integer(buffer, axis, f"an object of type {type(part).__name__}")
    expr = build_expr.as_expr(part)
    if expr.dtype.is_bool:
        expr = build_expr.cast(expr, "int32")
    if not expr.dtype.is_int:
        raise _not_integer(buffer, axis, f"a value of dtype {expr.dtype}")
    return int(expr.value) if isinstance(expr, Const) else build_expr.promoted(expr)


def _not_integer(buffer: Buffer, axis: int, what: str) -> IndexMismatch:
    return IndexMismatch(
        f"index {axis} of {buffer.name!r} must be an integer, got {what}",
        hint="convert it with T.cast(x, 'int32'), or use // instead of /",
    )


def _scalar(buffer: Buffer, axis: int, part: Any) -> Extent:
    index = _from_end(_number(buffer, axis, part), buffer.shape[axis])
    _check_inside(buffer, axis, index, 1)
    return index


def _from_end(index: Extent, extent: Extent) -> Extent:
    """Add the extent to an index that is provably negative."""
    if isinstance(index, int):
        return index if index >= 0 else extent + index
    if isinstance(index, Ramp):
        return _lanes_from_end(index, extent)
    builder = active()
    if index.dtype.lanes == 1 and interval(index, builder.ranges if builder else {}).is_negative:
        return index + extent
    return index


def _lanes_from_end(index: Ramp, extent: Extent) -> Expr:
    """Add the extent to the lanes that are negative, whether or not that is known by now."""
    builder = active()
    ranges = builder.ranges if builder else {}
    ends = [
        interval(end, ranges) for end in (index.base, index.base + index.stride * (index.lanes - 1))
    ]
    if all(end.low is not None and end.low >= 0 for end in ends):
        return index
    wrapped = index + extent
    if all(end.is_negative for end in ends):
        return wrapped
    return build_expr.select(index < 0, wrapped, index)


def _slice(buffer: Buffer, axis: int, part: slice) -> tuple[Extent, Extent]:
    extent = buffer.shape[axis]
    if part.step is not None and not (isinstance(part.step, int) and part.step == 1):
        raise IndexMismatch(
            f"a slice of {buffer.name!r} cannot have a step",
            hint="copy the elements in a T.Parallel loop with the index i * step",
        )
    start: Extent = 0
    stop: Extent = extent
    if part.start is not None:
        start = _from_end(_number(buffer, axis, part.start), extent)
    if part.stop is not None:
        stop = _from_end(_number(buffer, axis, part.stop), extent)
    length = subtract(stop, start, together=True)
    if isinstance(length, int) and length < 0:
        raise IndexMismatch(
            f"the slice of dimension {axis} of {buffer.name!r} ends {-length} before it starts",
            hint="swap the bounds, as in A[start:stop] with start <= stop",
        )
    _check_inside(buffer, axis, start, length)
    return start, length


def _check_inside(buffer: Buffer, axis: int, start: Extent, length: Extent) -> None:
    """Refuse what is provably outside; global buffers have run-time guards instead."""
    limit, size = static_value(buffer.shape[axis]), static_value(length)
    if limit is None:
        return
    if buffer.scope is Scope.GLOBAL:
        if size == 1 and isinstance(start, int) and not 0 <= start < limit:
            current().warn(
                f"index {start} is always outside dimension {axis} of {buffer.name!r}, which has "
                f"{limit} elements: reads give the safe value and stores do nothing"
            )
        return
    builder = active()
    bounds = interval(start, builder.ranges if builder else {})
    if bounds.low is not None and bounds.high is not None and bounds.low > bounds.high:
        return  # in a loop without iterations
    reach = 1 if size is None else size
    below = bounds.high is not None and bounds.high < 0
    above = bounds.low is not None and bounds.low + reach > limit
    if (below or above) and reach > 0:
        where = f"{start}" if isinstance(start, int) else "this index"
        first = start if isinstance(start, int) else bounds.low
        if above and reach > 1 and first is not None:
            where = f"{first}:{first + reach}"
        raise IndexMismatch(
            f"{where} is outside dimension {axis} of {buffer.name!r}, which has {limit} "
            f"element{'s' * (limit != 1)}",
            notes=(Note(f"{buffer.name} is declared here", buffer.span),),
            hint="only global tensors are checked at run time; stay inside "
            f"{buffer.scope.value} buffers",
        )
