"""How two regions correspond, by the rules of copies and tile atomics, and whether they overlap."""

from __future__ import annotations

from tile_core.errors import IndexMismatch, Note, ShapeMismatch
from tile_core.ir.buffer import Region, Scope, static_value
from tile_core.ir.expr import Extent
from tile_core.ir.structural_equality import same_value
from tile_core.records import dataclass

_DEPTH = {Scope.GLOBAL: 0, Scope.SHARED: 1}


@dataclass(frozen=True, slots=True)
class Pairing:
    """The iteration space of a tile transfer and what each side does with it."""

    extents: tuple[Extent, ...]  # extents of the iteration space, outermost first
    # src_axes, dst_axes: for each dimension of the region: the iteration axis that moves along it,
    # or None where it stays at the region's start.
    src_axes: tuple[int | None, ...]
    dst_axes: tuple[int | None, ...]


def _is_one(extent: Extent) -> bool:
    return static_value(extent) == 1


def pair(src: Region, dst: Region) -> Pairing:
    """Match the dimensions of two regions.

    A region written as one element takes its extents from the other side, right-aligned; two
    elements make a scalar copy. With equally many extents other than 1, those are matched in
    order; otherwise dimensions are right-aligned and an extent of 1 is broadcast. The
    iteration space is that of the side deepest in memory (fragment, then shared, then
    global; the source on a tie).

    Raises
    ------
    ShapeMismatch
        If two whole buffers differ in shape, the chosen side is provably smaller than the
        source, or a destination written as one element has too few dimensions.
    IndexMismatch
        If a tile written by its first element provably leaves a buffer that is not global.
    """
    if src.is_element and dst.is_element:
        return Pairing((), (None,) * src.buffer.rank, (None,) * dst.buffer.rank)
    if src.is_element:
        axes = _right_aligned(src.buffer.rank, len(dst.extents))
        _check_head(src, axes, dst.extents)
        return Pairing(dst.extents, axes, tuple(range(len(dst.extents))))
    if dst.is_element:
        _check_rank(src, dst)
        axes = _right_aligned(dst.buffer.rank, len(src.extents))
        _check_head(dst, axes, src.extents)
        return Pairing(src.extents, tuple(range(len(src.extents))), axes)
    return _pair_boxes(src, dst)


def boxes(src: Region, dst: Region) -> tuple[Region, Region]:
    """Return the boxes that a transfer touches on both sides, written with their extents."""
    pairing = pair(src, dst)

    def box(region: Region, axes: tuple[int | None, ...]) -> Region:
        extents = tuple(1 if axis is None else pairing.extents[axis] for axis in axes)
        return Region(region.buffer, region.starts, extents, span=region.span)

    return box(src, pairing.src_axes), box(dst, pairing.dst_axes)


def _right_aligned(rank: int, count: int) -> tuple[int | None, ...]:
    return tuple(k if k >= 0 else None for k in range(count - rank, count))


def _check_rank(src: Region, dst: Region) -> None:
    """Refuse a destination of which several elements of the source would be one."""
    above = src.extents[: max(0, len(src.extents) - dst.buffer.rank)]
    if not all(static_value(extent) in (None, 1) for extent in above):
        raise ShapeMismatch(
            f"cannot copy {describe(src)} to {dst.buffer.name}, which has {dst.buffer.rank} "
            f"dimension{'s' * (dst.buffer.rank != 1)}: elements of the source would share one",
            notes=(Note(f"{dst.buffer.name} is declared here", dst.buffer.span),),
            hint="slice both sides, or copy into a tile of as many dimensions",
        )


def _check_head(head: Region, axes: tuple[int | None, ...], extents: tuple[Extent, ...]) -> None:
    """Refuse a tile that provably leaves the buffer in which `head` is its first element."""
    if head.buffer.scope is Scope.GLOBAL:
        return
    for dim, axis in enumerate(axes):
        start, limit = static_value(head.starts[dim]), static_value(head.buffer.shape[dim])
        extent = 1 if axis is None else static_value(extents[axis])
        if start is None or extent is None or limit is None or start + extent <= limit:
            continue
        raise IndexMismatch(
            f"the tile of {extent} elements from {start} on leaves dimension {dim} of "
            f"{head.buffer.name!r}, which has {limit}",
            notes=(Note(f"{head.buffer.name} is declared here", head.buffer.span),),
            hint="only global tensors are checked at run time; stay inside "
            f"{head.buffer.scope.value} buffers",
        )


def _pair_boxes(src: Region, dst: Region) -> Pairing:
    src_dims = [k for k, e in enumerate(src.extents) if not _is_one(e)]
    dst_dims = [k for k, e in enumerate(dst.extents) if not _is_one(e)]
    if len(src_dims) != len(dst_dims):
        rank = max(len(src.extents), len(dst.extents))
        src_dims = [k - rank + len(src.extents) for k in range(rank)]
        dst_dims = [k - rank + len(dst.extents) for k in range(rank)]
    src_axes: list[int | None] = [None] * len(src.extents)
    dst_axes: list[int | None] = [None] * len(dst.extents)
    extents: list[Extent] = []
    for i, j in zip(src_dims, dst_dims, strict=True):
        here = src.extents[i] if i >= 0 else 1
        there = dst.extents[j] if j >= 0 else 1
        if i >= 0 and not _is_one(here):
            src_axes[i] = len(extents)
        if j >= 0 and not _is_one(there):
            dst_axes[j] = len(extents)
        extents.append(_common(here, there, src, dst))
    return Pairing(tuple(extents), tuple(src_axes), tuple(dst_axes))


def _common(here: Extent, there: Extent, src: Region, dst: Region) -> Extent:
    a, b = static_value(here), static_value(there)
    if a is not None and a == b:
        return here
    if a == 1:
        return there
    if b == 1 or (src.is_whole and dst.is_whole and a is not None and b is not None):
        raise _mismatch(src, dst)
    dst_is_deeper = _DEPTH.get(dst.buffer.scope, 2) > _DEPTH.get(src.buffer.scope, 2)
    if a is not None and b is not None:
        if dst_is_deeper and b < a:
            raise _mismatch(src, dst)
        return min(a, b)
    return there if dst_is_deeper else here


def _mismatch(src: Region, dst: Region) -> ShapeMismatch:
    return ShapeMismatch(
        f"cannot copy {describe(src)} to {describe(dst)}: the shapes do not match",
        notes=(
            Note(f"{src.buffer.name} is declared here", src.buffer.span),
            Note(f"{dst.buffer.name} is declared here", dst.buffer.span),
        ),
        hint="slice the larger side, as in A[0:16, :], or change the shape of the smaller one",
    )


def describe(region: Region) -> str:
    """Return ``name[e0, e1]``: a region by its extents, for messages."""
    extents = ", ".join(str(static_value(e)) if static_value(e) is not None else "?"
                        for e in region.extents)  # fmt: skip
    return f"{region.buffer.name}[{extents}]"


def surely_overlap(one: Region, other: Region) -> bool:
    """Whether two regions have elements in common, whatever the values of variables.

    Regions of one buffer do if their ranges meet along every dimension; a buffer and a view of
    it do if both are taken whole.

    Examples
    --------
    Of ``S[0:64, :]`` and ``S[32:96, :]`` it is certain, of ``S[0:64, :]`` and ``S[64:128, :]`` or
    of ``S[k, :]`` and ``S[k + 1, :]`` it is not.
    """
    if one.buffer is not other.buffer:
        return one.buffer.storage is other.buffer.storage and one.is_whole and other.is_whole
    sides = zip(one.starts, one.extents, other.starts, other.extents, strict=True)
    return all(_meet(*side) for side in sides)


def _meet(first: Extent, length: Extent, second: Extent, other_length: Extent) -> bool:
    """Whether ``[first, first + length)`` and the range at `second` surely meet."""
    a, b = static_value(first), static_value(second)
    m, n = static_value(length), static_value(other_length)
    if a is not None and b is not None and m is not None and n is not None:
        return a < b + n and b < a + m
    return same_value(first, second)
