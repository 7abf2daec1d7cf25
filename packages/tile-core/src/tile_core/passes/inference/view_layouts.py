"""Layouts and fragments of a storage as views of it see them."""

from __future__ import annotations

from typing import TypeAlias

from tile_core.errors import InternalError, LayoutError
from tile_core.ir.buffer import Buffer
from tile_core.layout import Fragment, Layout
from tile_core.layout.formulas import inputs
from tile_core.layout.mixed_radix import flatten_row_major as flatten
from tile_core.layout.mixed_radix import substitute, unflatten_row_major

Place: TypeAlias = "Layout | Fragment"


def seen_as(place: Place, source: Buffer, target: Buffer) -> Place:
    """Return where `source` is stored for the elements of `target`, which share their bits.

    It is a `LayoutError` if the parts of an element of `target` are torn apart.
    """
    shape = target.static_shape
    if shape is None:  # T.view and T.reshape of a tile keep its number of bits
        raise InternalError(f"the view {target.name!r} has no fixed extents", span=target.span)
    old, new = source.dtype.bits, target.dtype.bits
    if isinstance(place, Fragment):
        return place.reshape(shape) if old == new else _recast(place, shape, old, new)
    if old == new:
        return place.reshape(shape)
    return place.reshape(shape, old, new)


def _recast(held: Fragment, shape: tuple[int, ...], old: int, new: int) -> Fragment:
    """Return a fragment for elements of `new` bits in the registers of elements of `old`."""
    narrow, wide = min(old, new), max(old, new)
    if wide % narrow:  # `check_views` refuses elements narrower than a byte
        raise InternalError(f"elements of {old} bits are no whole number of {new}-bit ones")
    ratio = wide // narrow
    flat = flatten(inputs(len(shape)), shape)
    rep = inputs(len(shape) + 1)[-1]
    where = unflatten_row_major(flat // ratio if new < old else flat * ratio, held.shape)
    thread = substitute(held.thread, (*where, rep), (*shape, held.replication))
    slot = substitute(held.slot_expr(), where, shape)
    if new < old:
        slot = slot * ratio + flat % ratio
    else:
        _check_together(held, ratio)
        slot = slot // ratio
    return Fragment(shape, None, thread, held.replication, (slot,), held.thread_extent)


def _check_together(held: Fragment, ratio: int) -> None:
    """Raise unless each group of `ratio` neighbours lies side by side in one thread."""
    threads = held.thread_table().reshape(-1, ratio, held.replication)
    slots = held.slot_table().reshape(-1, ratio)
    together = (threads == threads[:, :1]).all() and (slots[:, 0] % ratio == 0).all()
    if not together or (slots != slots[:, :1] + range(ratio)).any():
        raise LayoutError(
            f"{ratio} neighbouring elements are not side by side in the registers of one thread"
        )
