"""Copies from tensors into shared tiles by instructions of whole waves, which waves count.

Such an instruction fills neighbouring words of shared memory, one for each lane of a wave, from
wherever in the tensor each lane says. So the tile decides: the copy goes through its words in
the order in which they lie in memory, and each lane finds out which element belongs there. The
swizzle of a tile is applied to the addresses in the tensor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from tile_core.analysis.uniformity import Uniformity
from tile_core.dtypes import DType, dtype_of
from tile_core.errors import LayoutError
from tile_core.ir.buffer import Buffer, Region, static_value
from tile_core.ir.build_expr import as_expr, binary, cast, const, truth
from tile_core.ir.device import device
from tile_core.ir.device_calls import COUNTED_LOAD, UNIFORM
from tile_core.ir.expr import AddressOf, BinaryOp, Const, Expr, Extent, Load, Select
from tile_core.ir.node import Node, substitute, walk
from tile_core.ir.stmt import If, Parallel, Stmt, Store
from tile_core.layout import Layout
from tile_core.layout.formulas import evaluate
from tile_core.ops.copy import Copy
from tile_core.ops.parallel_form import as_parallel
from tile_core.ops.region_pairing import Pairing, pair
from tile_core.passes.pipelines.counted_copies import require_counted, units, whole_dimensions
from tile_core.records import dataclass, replace
from tile_core.remarks import NotApplicable
from tile_core.simt.buffer_addresses import row_major_strides
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import at, do, looped, seq, unrolled
from tile_core.simt.lower_accesses import lower_expr, place_of

MOST_WRITTEN_OUT = 64
"""Instructions of a wave that are written one by one."""

_REMEMBERED = 64
_REACH = 2**31
"""Bytes from the first element of a region that 32 bits reach, with nothing to think of."""
_WIDE = dtype_of("int64")


def lower_counted(op: Copy, ctx: SimtContext) -> Stmt:
    """Return the part of one thread in a copy by instructions of its wave.

    Before   copy A[bx*64:+64, k*32:+32], T, is_async        T of float16, swizzled, 256 threads
    After    for r in unrolled(4):
                 counted_load<4>(T + (r*512 + wave*128), A + (bx*64*K + k*32),
                             (r*16 + tid//16)*K + (tid//4 % 4 ^ …)*8 + tid % 4 * 2,
                             bx*64 + r*16 + tid//16 < M)

    Word ``w`` of the tile is filled in iteration ``w // threads`` by thread ``w % threads``: of a
    wave, each lane fills the word behind that of the lane before it. Where the last iteration has
    no words for some waves, a branch that each wave takes as a whole is around it. The part of an
    index that all threads share moves the address of the tensor; what is left is known to fit 32
    bits, or a branch that all threads take together asks the strides.

    Raises
    ------
    NotApplicable
        Why waves cannot copy so.
    """
    env, size = ctx.env, ctx.machine.warp_size
    if ctx.threads != math.prod(ctx.launch.threads):
        raise NotApplicable("it is run by some of the block's threads")
    require_counted(op, ctx.threads, size, env)
    if ctx.by_thread:
        uniform = Uniformity(ctx.launch)
        if any(isinstance(s, Expr) and uniform.varies(s) for s in (*op.src.starts, *op.dst.starts)):
            raise NotApplicable("threads may see different values of where it starts")
    inside = _inside(as_parallel(op), ctx)
    refusal = NotApplicable("the tile does not fit")
    for nbytes in units(op, ctx.machine, env):
        try:
            words = _words(op, nbytes, ctx)
        except NotApplicable as why:
            refusal = why
            continue
        return _near_and_far(words, _Source.of(op, inside, ctx), ctx)
    raise refusal


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a tile in the order of memory.

    Parameters
    ----------
    nbytes, width
        Of one word, in bytes and in elements; 1 where it is a part of one.
    parts
        Words of one element, where it is not a part of a word.
    count
        How many there are.
    region
        The tile, or one version of it.
    lead
        Offset of the first element in the flat buffer.
    elements
        From the number of an element in memory, counted from `lead`, to its coordinates.
    """

    nbytes: int
    width: int
    parts: int
    count: int
    region: Region
    lead: Expr
    elements: Layout


def _words(op: Copy, nbytes: int, ctx: SimtContext) -> _Words:
    """Return the words of the tile that `op` fills."""
    buffer, layout = op.dst.buffer, ctx.layout_of(op.dst.buffer)
    width = max(nbytes * 8 // buffer.dtype.bits, 1)
    parts = max(buffer.dtype.bits // (nbytes * 8), 1)
    kept = whole_dimensions(op.dst)
    if kept is None:
        raise NotApplicable("it fills a part of a tile")
    if width > 1:
        axis = _neighbours(pair(op.src, op.dst))
        if axis is None or layout.vector_width(axis, width) < width:
            raise NotApplicable("neighbours in the tensor are no neighbours in the tile")
    elements = _elements(layout, kept)
    starts = [0 if d in kept else s for d, s in enumerate(op.dst.starts)]
    lead = as_expr(layout.address(*(as_expr(lower_expr(as_expr(s), ctx)) for s in starts)))
    first = int(elements.linear_table().reshape(-1).argmin())  # where element (0, …, 0) lies
    count = elements.size // width * parts
    return _Words(nbytes, width, parts, count, op.dst, lead - first, elements)


def _neighbours(pairing: Pairing) -> int | None:
    """Return the dimension of the tile along which elements follow each other in the tensor."""
    moving = [axis for axis in pairing.src_axes if axis is not None]
    if not moving or moving[-1] not in pairing.dst_axes:
        return None
    return pairing.dst_axes.index(moving[-1])


@lru_cache(maxsize=_REMEMBERED)
def _elements(layout: Layout, kept: tuple[int, ...]) -> Layout:
    """Return which element of the dimensions `kept` is where, counted from the lowest address.

    The others must move all of them by the same distance.
    """
    whole = [n if d in kept else 1 for d, n in enumerate(layout.shape)]
    lead = [d for d in range(layout.rank) if d not in kept]
    table = np.moveaxis(layout.linear_table(), lead, range(len(lead)))
    rows = table.reshape(math.prod(layout.shape[d] for d in lead), -1)
    if (np.ptp(rows - rows[:1], axis=1) != 0).any():
        raise NotApplicable("versions of the tile are swizzled in different ways")
    low, count = int(rows[0].min()), rows.shape[1]
    if not np.array_equal(np.sort(rows[0]), np.arange(low, low + count)):
        raise NotApplicable("the tile has gaps in memory")
    part = layout.slice([0] * layout.rank, whole)
    address = Layout(tuple(whole), [part.linear_index_expr() - low], (count,))
    try:
        return address.inverse()
    except LayoutError:
        raise NotApplicable("no formula leads from the words of the tile to its elements") from None


def _inside(loop: Parallel, ctx: SimtContext) -> tuple[Parallel, Expr | None]:
    """Return the condition under which an element exists, over the variables of the loop."""
    env = ctx.env
    for var, extent in zip(loop.vars, loop.extents, strict=True):
        env = env.with_loop(var, 0, extent)
    body = ctx.lower(loop.body, replace(ctx, env=env, by_thread=True))
    nodes = list(walk(body))
    stores = [n for n in nodes if isinstance(n, Store)]
    if len(stores) != 1 or any(isinstance(n, If) for n in nodes):
        raise NotApplicable("elements may be outside of the tile")
    match stores[0].value:
        case Load():
            return loop, None
        case Select(cond=cond, then=Load(), otherwise=Const() as other):
            if str(other.value) in ("0", "0.0", "False"):  # not -0.0, which has a bit set
                return loop, cond
            raise NotApplicable("what is outside of the tensor is not 0")
    raise NotApplicable("it converts elements")


@dataclass(frozen=True, slots=True)
class _Source:
    """Where elements come from.

    Parameters
    ----------
    start
        The address that is the same for all threads.
    strides
        Of the tensor, for each axis of the copy; 0 where it does not move.
    near
        Whether 32 bits reach all of the region, from its start.
    axes
        For each dimension of the tile: the axis of the copy that moves along it.
    loop, inside
        Under which condition an element exists, over the variables of `loop`; None: always.
    """

    start: AddressOf
    strides: tuple[Extent, ...]
    near: Expr
    axes: tuple[int | None, ...]
    loop: Parallel
    inside: Expr | None

    @classmethod
    def of(cls, op: Copy, inside: tuple[Parallel, Expr | None], ctx: SimtContext) -> _Source:
        source, pairing = op.src, pair(op.src, op.dst)
        starts = tuple(lower_expr(as_expr(s), ctx) for s in source.starts)
        flat, offset = place_of(source.buffer, starts, ctx)
        steps = source.buffer.strides or row_major_strides(source.buffer.shape)
        strides: list[Extent] = [0] * len(pairing.extents)
        for axis, step in zip(pairing.src_axes, steps, strict=True):
            if axis is not None:
                strides[axis] = step
        reach: Expr = const(1, _WIDE)
        for extent, stride in zip(pairing.extents, strides, strict=True):
            reach = reach + (cast(as_expr(extent), _WIDE) - 1) * cast(as_expr(stride), _WIDE)
        near = binary(BinaryOp.LT, reach, _REACH * 8 // source.buffer.dtype.bits)
        if ctx.env.proves(near):
            near = const(True)
        loop, condition = inside
        return cls(at(flat, offset, "r"), tuple(strides), near, pairing.dst_axes, loop, condition)

    def index(self, coords: Sequence[Expr], dtype: DType) -> Expr:
        """Return how far the element at `coords` of the copy is from the start."""
        total: Expr = const(0, dtype)
        for coord, stride in zip(coords, self.strides, strict=True):
            if static_value(stride) != 0:
                total = total + cast(coord, dtype) * stride
        return total

    def exists(self, coords: Sequence[Expr]) -> Expr:
        """Return whether there is an element at `coords` of the copy."""
        if self.inside is None:
            return const(True)
        here: dict[Node, Node] = {
            var: cast(coord, var.dtype) for var, coord in zip(self.loop.vars, coords, strict=True)
        }
        return truth(substitute(self.inside, here))


def _near_and_far(words: _Words, source: _Source, ctx: SimtContext) -> Stmt:
    """Return the instructions that fill all words; a branch where strides may be huge.

    Both sides have the same number of them, so that nobody who counts must know which ran.
    """
    near = _each(words, source, dtype_of("int32"), ctx)
    if isinstance(source.near, Const):
        return near
    return If(source.near, near, _each(words, source, _WIDE, ctx))


def _each(words: _Words, source: _Source, dtype: DType, ctx: SimtContext) -> Stmt:
    """Return the instructions that fill all words, with indices of `dtype`.

    They are written out unless indices are wide, which is rare.
    """
    threads, size = ctx.threads, ctx.machine.warp_size
    wave = device(UNIFORM, binary(BinaryOp.FLOORDIV, ctx.thread, size))
    parts, width = words.parts, words.width
    flat, start = ctx.places.flat(words.region.buffer), source.start

    def load(turn: Expr) -> Stmt:
        word = turn * threads + ctx.thread
        coords = _coords(words, source, word * width if parts == 1 else word // parts)
        index, lead = source.index(coords, dtype), words.lead
        if parts > 1:
            index, lead = index * parts + cast(word % parts, dtype), lead * parts
        target = at(_in_parts(flat, parts), lead + (turn * threads + wave * size) * width, "w")
        origin = at(_in_parts(start.buffer, parts), start.indices[0] * parts, "r")
        return do(COUNTED_LOAD, words.nbytes, target, origin, index, source.exists(coords))

    iterations, rest = divmod(words.count, threads)
    loops = unrolled if iterations <= MOST_WRITTEN_OUT and dtype is not _WIDE else looped
    full = loops(ctx, "r", iterations, load)
    if rest == 0:
        return full
    last = If(binary(BinaryOp.LT, wave, rest // size), load(as_expr(iterations)))
    return seq(full, last)


@lru_cache(maxsize=_REMEMBERED)
def _in_parts(flat: Buffer, parts: int) -> Buffer:
    """Return a flat buffer seen as words, of which each element has `parts`; the same each time."""
    if parts == 1:
        return flat
    room = (static_value(flat.shape[0]) or 0) * parts
    dtype = dtype_of(f"uint{flat.dtype.bits // parts}")
    return replace(flat, name=f"{flat.name}_{dtype}", shape=(room,), dtype=dtype, origin=flat)


def _coords(words: _Words, source: _Source, first: Expr) -> list[Expr]:
    """Return the point of the copy's loop that element `first` of the tile is at."""
    in_tile = [as_expr(evaluate(e, (first,))) for e in words.elements.outputs]
    coords: list[Expr] = [as_expr(0)] * len(source.strides)
    for axis, coord in zip(source.axes, in_tile, strict=True):
        if axis is not None:
            coords[axis] = coord
    return coords
