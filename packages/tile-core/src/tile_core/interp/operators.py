"""What tile operators mean on whole arrays, where that says more than their serial form."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tile_core.dtypes import dtype_of
from tile_core.errors import DataRace
from tile_core.interp import access, atomics, calls, debug, reductions, regions, specialised_warps
from tile_core.interp.execution_state import BlockState, Lanes
from tile_core.interp.expressions import evaluate
from tile_core.interp.values import Array, convert, decode, encode, settle
from tile_core.ir.buffer import Region, whole
from tile_core.ir.expr import Expr
from tile_core.ir.stmt import Leaf
from tile_core.ops.async_copy import CopyCommit, CopyWait
from tile_core.ops.atomic import AtomicTile
from tile_core.ops.control import Barrier, Breakpoint
from tile_core.ops.copy import Copy, Fill, Transpose
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.ops.im2col import Im2col
from tile_core.ops.printing import Print, line
from tile_core.ops.reduce import Reduce
from tile_core.ops.reducer import ReducerFinalize, ReducerInit, ReducerUpdate
from tile_core.ops.scan import Scan
from tile_core.records import replace


def copy(op: Copy, lanes: Lanes) -> None:
    """Move elements; equal dtypes keep their bits. Undefined contents stay undefined."""
    if op.is_async and lanes.machine.options.late_copies and lanes.block is not None:
        _issue(op, lanes, lanes.block)
    else:
        regions.moved(op.src, op.dst, lanes, op)


def _issue(op: Copy, lanes: Lanes, block: BlockState) -> None:
    """Start a copy that arrives at the wait for it; until then its tile is undefined."""
    source, target, _ = regions.paired(op.src, op.dst, lanes, op)
    values_known = regions.known(source)
    issued = regions.read_stored(source).copy()
    nowhere = np.zeros(target.offsets.shape, np.bool_)
    noise = np.full(issued.nbytes, 0xA5, np.uint8).view(issued.dtype).reshape(issued.shape)
    noise = regions.converted(noise, op.src.buffer.dtype, op.dst.buffer.dtype)
    regions.write_stored(target, noise, nowhere)

    def arrive() -> None:
        stored = regions.read_stored(source)
        if stored.tobytes() != issued.tobytes():
            raise DataRace(
                f"{op.src.buffer.name!r} changes while an asynchronous copy reads it",
                span=op.span,
                hint="wait for the copy before writing its source",
            )
        stored = regions.converted(stored, op.src.buffer.dtype, op.dst.buffer.dtype)
        regions.write_stored(target, stored, values_known)

    block.flight.issued.append(arrive)


def copy_commit(op: CopyCommit, lanes: Lanes) -> None:
    """Close the group of copies issued since the last one."""
    if lanes.block is not None:
        lanes.block.flight.close()


def copy_wait(op: CopyWait, lanes: Lanes) -> None:
    """Let all but the last groups of copies arrive."""
    if lanes.block is not None:
        lanes.block.flight.wait(op.pending)


def transpose(op: Transpose, lanes: Lanes) -> None:
    """Swap the last two dimensions."""
    source = regions.box(op.src, lanes, op)
    values_known = regions.known(source)
    stored = regions.read_stored(source).swapaxes(-1, -2)
    stored = regions.converted(stored, op.src.buffer.dtype, op.dst.buffer.dtype)
    flipped = None if values_known is None else values_known.swapaxes(-1, -2)
    regions.write_stored(regions.box(op.dst, lanes, op), stored, flipped)


def im2col(op: Im2col, lanes: Lanes) -> None:
    """Gather patches of an NHWC image; zero outside."""
    image = whole(op.image)
    _, height, width, channels = regions.numbers(image.extents, lanes)
    reach = op.dilation * (op.kernel - 1) + 1
    out_h = (height + 2 * op.pad - reach) // op.stride + 1
    out_w = (width + 2 * op.pad - reach) // op.stride + 1
    rows, cols = regions.numbers(op.columns.extents, lanes)[-2:]
    m = _first(op.nhw_step, lanes) * rows + np.arange(rows)[:, None]
    k = _first(op.c_step, lanes) * cols + np.arange(cols)[None, :]
    h = m % (out_h * out_w) // out_w * op.stride + k // (op.kernel * channels) * op.dilation
    w = m % out_w * op.stride + k // channels % op.kernel * op.dilation
    indices = [np.broadcast_to(i, (rows, cols)).ravel() for i in (
        m // (out_h * out_w), h - op.pad, w - op.pad, k % channels
    )]  # fmt: skip
    at = access.Site.of(lanes, op.image, op)
    offsets, inside = at.place.locate(indices)
    where = regions.Box(at, offsets, inside)
    if inside is not None:
        where.offsets = np.where(inside, offsets, 0)
    regions.require_known(where)
    access.watch(at, where.offsets, inside, "read")
    stored = at.storage.get(where.offsets, op.image.dtype)
    if inside is not None:
        stored = np.where(inside, stored, np.zeros(1, stored.dtype))
    target = regions.box(op.columns, lanes, op)
    regions.write_stored(target, stored.reshape(target.offsets.shape))


def _first(value: Expr, lanes: Lanes) -> int:
    return int(lanes.agreed(evaluate(value, lanes), "a step", value.span))


def fill(op: Fill, lanes: Lanes) -> None:
    """Set every element to one value."""
    where = regions.box(op.dst, lanes, op)
    value = encode(evaluate(op.value, lanes), op.dst.buffer.dtype)
    regions.write_stored(where, value.reshape((1,) * where.offsets.ndim))


def gemm(op: Gemm, lanes: Lanes) -> None:
    """Multiply and accumulate.

    Integers: exact, modulo the accumulator's width. Floats: products and their sum, with the
    old accumulator, in float64, rounded once to the accumulator's dtype per operator. Elements
    with scales are multiplied by them in float32.
    """
    a, b = _matrix(op.a, lanes, op), _matrix(op.b, lanes, op)
    a = a.T if op.transpose_a else a
    b = b.T if op.transpose_b else b
    if op.scale_a is not None and op.scale_b is not None:
        a = _scaled(a, op.scale_a, op.group_a, op, lanes)
        b = _scaled(b.T, op.scale_b, op.group_b, op, lanes).T
    dtype = op.c.buffer.dtype
    is_exact = not (op.a.buffer.dtype.is_float or dtype.is_float)
    product = integer_product(a, b) if is_exact else a.astype(np.float64) @ b.astype(np.float64)
    where = regions.box(op.c, lanes, op)
    if not bool(evaluate(op.clear, lanes)[0]):
        regions.require_known(where)
        old = decode(regions.read_stored(where), dtype).reshape(product.shape)
        product = product + old.astype(product.dtype)
    values = settle(product, dtype).reshape(where.offsets.shape)
    regions.write_stored(where, encode(values, dtype))


def _matrix(region: Region, lanes: Lanes, op: Gemm) -> Array:
    values = regions.read(region, lanes, op)
    result: Array = values.reshape(values.shape[-2:])
    if op.nibbles and op.scales:
        return decode(_halves(result), dtype_of("float4_e2m1fn"))
    return _halves(result) if op.nibbles else result


def _scaled(numbers: Array, scales: Region, group: int, op: Gemm, lanes: Lanes) -> Array:
    """Return rows of elements times the scales of their groups along K."""
    first = 0 if op.first_k is None else int(evaluate(op.first_k, lanes)[0])
    groups = (first + np.arange(numbers.shape[1])) // group
    own = replace(
        scales,
        starts=(*scales.starts[:-1], scales.starts[-1] + int(groups[0])),
        extents=(*scales.extents[:-1], int(groups[-1] - groups[0]) + 1),
    )
    values = regions.read(own, lanes, op)
    each = values.reshape(values.shape[-2:])[:, groups - groups[0]]
    result: Array = numbers.astype(np.float32) * each.astype(np.float32)
    return result


def _halves(numbers: Array) -> Array:
    """Return the 4-bit integers of bytes, along the last axis; both have the bytes' sign."""
    low = numbers << 4 if numbers.dtype.kind == "u" else (numbers << 4).astype(np.int8)
    pair = np.stack([low.astype(numbers.dtype) >> 4, numbers >> 4], axis=-1)
    result: Array = pair.reshape(*numbers.shape[:-1], -1)
    return result


def integer_product(a: Array, b: Array) -> Array:
    """Return the product of integer matrices modulo 2**64, as int64."""
    bits = 8 * (a.dtype.itemsize + b.dtype.itemsize)
    if a.shape[1] < 2 ** (53 - bits if bits < 53 else 0):
        return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64)  # exact
    return a.astype(np.int64) @ b.astype(np.int64)


def atomic_tile(op: AtomicTile, lanes: Lanes) -> None:
    """Combine element by element; elements outside the destination are skipped."""
    source, target, extents = regions.paired(op.src, op.dst, lanes, op)
    regions.require_known(source, target.inside)
    regions.require_known(target)
    stored = regions.read_stored(source)
    dtype = op.dst.buffer.dtype
    values = convert(decode(stored, op.src.buffer.dtype), op.src.buffer.dtype, dtype)
    inside = np.ones(extents, np.bool_) if target.inside is None else target.inside
    offsets = target.offsets[inside]
    access.watch(target.at, offsets, None, "atomic")
    atomics.update(
        target.at.storage, offsets, dtype, values[inside], atomics.COMBINE[op.kind.value]
    )
    lanes.machine.stores += 1


def show(op: Print, lanes: Lanes) -> None:
    """Print a message, a tile's elements, or values, one line per element or thread."""
    out = sys.stdout
    if op.source is not None:
        values = regions.read(op.source, lanes, op)
        starts = regions.numbers(op.source.starts, lanes)
        buffer = op.source.buffer
        for index in np.ndindex(values.shape):
            where = ", ".join(str(s + i) for s, i in zip(starts, index, strict=True))
            shown = calls.printed(values[index].item(), buffer.dtype)
            out.write(line(op.message, f"{buffer.name}[{where}]", shown))
        return
    columns = [(v.dtype, np.broadcast_to(evaluate(v, lanes), (lanes.count,))) for v in op.values]
    for lane in np.flatnonzero(lanes.active):
        for dtype, column in columns:
            out.write(line(op.message, "", calls.printed(column[lane].item(), dtype)))
        if not columns:
            out.write(f"{op.message}\n")


MEANINGS: dict[type[Leaf], Callable[[Any, Lanes], None]] = {
    AtomicTile: atomic_tile,
    Barrier: specialised_warps.nothing,
    Breakpoint: debug.breakpoint_,
    Copy: copy,
    CopyCommit: copy_commit,
    CopyWait: copy_wait,
    Fill: fill,
    Gemm: gemm,
    Im2col: im2col,
    Print: show,
    Reduce: reductions.reduce,
    ReducerFinalize: reductions.finalize,
    ReducerInit: reductions.begin,
    ReducerUpdate: reductions.update,
    Scan: reductions.scan,
    Transpose: transpose,
    WaitProducts: specialised_warps.nothing,
    **specialised_warps.HANDLERS,
}
"""By class: what operators mean on arrays. That of all others is their serial form."""
