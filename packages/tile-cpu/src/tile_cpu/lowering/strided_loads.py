"""Elements at equal distances in memory, out of vectors that are read whole."""

from __future__ import annotations

from tile_cpu.lowering.buffer_addresses import FlatBuffer
from tile_cpu.lowering.context import Context
from tile_cpu.lowering.types import number, scalar_name
from tile_cpu.tir.build import i32, shuffle, vload
from tile_cpu.tir.nodes import BufferLoad, PrimExpr, Select, tirx
from tile_cpu.vectors import masked_load


def is_dense(stride: int, lanes: int) -> bool:
    """Tell whether vectors without gaps, and shuffles of them, are fewer than `lanes` loads."""
    return stride != 0 and 2 * abs(stride) <= lanes


def strided(
    ctx: Context,
    place: FlatBuffer,
    first: PrimExpr,
    stride: int,
    lanes: int,
    count: PrimExpr | None = None,
    mask: PrimExpr | None = None,
) -> PrimExpr:
    """Return the elements at `first`, ``first + stride`` and so on, as one vector.

    Memory is read from the lowest of them to the highest, and nowhere else. With a `count`, of
    lanes that exist, or a `mask` of them, the others are zero; `stride` is positive then. With a
    mask nothing between the elements is read either.

    Before   v[l] = A[i + 2*l]
    After    v = shuffle(A[i : i + 16], A[i + 15 : i + 31])
    """
    apart, last, kind = abs(stride), lanes - 1, scalar_name(first)
    lowest = first if stride > 0 else first + number(stride * last, kind)
    starts = [lanes * n for n in range(apart)]
    nothing = tirx.Broadcast(i32(0), lanes)
    flags = None if mask is None else ctx.keep(Select(mask, tirx.Broadcast(i32(1), lanes), nothing))
    if count is None and flags is None:
        starts[-1] = (apart - 1) * last  # of the vector that ends with the highest

    def read(start: int) -> PrimExpr:
        offset = lowest + number(start, kind)
        if count is None and flags is None:
            return ctx.keep(vload(place.flat, [offset], lanes))
        at = tirx.address_of(BufferLoad(place.flat, [offset]))
        if flags is not None:
            own = [divmod(start + lane, apart) for lane in range(lanes)]
            spread = shuffle([flags, nothing], [lanes if rest else lane for lane, rest in own])
            is_read = tirx.NE(spread, nothing)
            return ctx.keep(masked_load(str(place.flat.dtype), at, is_read, lanes))
        left = count * i32(apart) - i32(apart - 1 + start)
        return ctx.keep(masked_load(str(place.flat.dtype), at, left, lanes))

    where = [apart * (lane if stride > 0 else last - lane) for lane in range(lanes)]
    found, held = read(0), where  # lane n is element held[n] of `found`; not yet, if it has fewer
    for start in starts[1:]:
        of_both = [h if h < lanes else lanes + w - start for h, w in zip(held, where, strict=True)]
        found = ctx.keep(shuffle([found, read(start)], [n % (2 * lanes) for n in of_both]))
        held = [lane if n < 2 * lanes else n for lane, n in enumerate(of_both)]
    return found if apart > 1 else ctx.keep(shuffle([found], where))
