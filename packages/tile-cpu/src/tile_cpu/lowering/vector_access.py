"""Loads and stores of vectors: contiguous or gathered, guarded by lane counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tile_core.arith.affine import Linear
from tile_core.arith.in_range import prove_in_range
from tile_core.ir.buffer import Buffer, Region, static_value
from tile_core.ir.build_expr import cast as tile_cast
from tile_core.ir.expr import Binary, BinaryOp, Expr, Load, Var
from tile_core.ir.node import Node, nodes_of, walk
from tile_core.ir.stmt import Store
from tile_core.ops.gemm import Gemm
from tile_core.ops.operator import TileOperator
from tile_core.passes.guards.registry import note_guard
from tile_core.records import dataclass
from tile_cpu.llvm_memory_access import gather
from tile_cpu.lowering import access, casts
from tile_cpu.lowering.buffer_addresses import FlatBuffer, row_major
from tile_cpu.lowering.cache_hints import prefetch_next_iteration, read_ahead, streamed
from tile_cpu.lowering.context import Context, Frame, Lane
from tile_cpu.lowering.overflow import is_inside, may_leave_tile
from tile_cpu.lowering.strided_loads import is_dense, strided
from tile_cpu.lowering.types import all_of, lanes_of, memory_type, number, scalar_name, spread
from tile_cpu.ops import StreamedGemm
from tile_cpu.tir.build import i32, prim, shuffle, vload, vstore
from tile_cpu.tir.nodes import (
    BufferLoad,
    BufferStore,
    IfThenElse,
    PrimExpr,
    Select,
    TirBuffer,
    tirx,
)
from tile_cpu.tir.nodes import Cast as TirCast
from tile_cpu.tir.nodes import Stmt as TirStmt
from tile_cpu.vectors import masked_load, masked_store

NARROWEST_REGISTER = 128
"""Bits of the smallest store past the caches; the processor combines those of a cache line."""


class NotVectorisable(Exception):
    """The loop must run one element at a time; the message says why."""


@dataclass(frozen=True, slots=True)
class LaneReach:
    """Which lanes of an access are inside its buffer."""

    condition: PrimExpr | None  # any is, as for dimensions that do not move; None: always
    count: PrimExpr | None  # lanes before it are; None: all


def varies(ctx: Context, root: Expr) -> bool:
    """Whether the value of `root` differs between lanes."""
    lane = ctx.lane
    if lane is None:
        return False
    return any(
        (isinstance(n, Var) and (n is lane.var or n in ctx.vectors))
        or (isinstance(n, Load) and n.buffer in ctx.lane_cells)
        for n in walk(root)
    )


@contextmanager
def first_lane(ctx: Context) -> Iterator[None]:
    """Emit scalars of the first lane meanwhile, for which conditions on lanes may not hold."""
    lane = ctx.lane
    assert lane is not None
    env, ctx.env = ctx.env, ctx.certain
    outer, ctx.lane = ctx.frame, None
    ctx.frame = Frame(statements=outer.statements)
    names = {v: ctx.vars[v] for v in (lane.var, *ctx.first_values) if v in ctx.vars}
    ctx.vars.update({lane.var: lane.base, **ctx.first_values})
    try:
        yield
    finally:
        ctx.frame, ctx.lane, ctx.env = outer, lane, env
        del ctx.vars[lane.var]
        ctx.vars.update(names)


def lane_stride(
    ctx: Context, place: FlatBuffer, indices: tuple[Expr, ...], var: Var, lanes: int = 0
) -> int | None:
    """Return how many elements apart neighbouring lanes are, None if that is not constant.

    With so many `lanes`, of which the first is a multiple, quotients stay as they are within a
    vector: ``j // 1024`` does in 16 lanes, and ``j % 1024`` moves as `j` does.

    It holds for every lane: ``(j + 4) % 5`` is ``j - 1`` where ``j >= 1``, but not in lane 0, from
    which the others are counted. Dimensions count together: ``A[j // 28, j % 28]`` is element `j`
    of rows of 28.
    """
    if place.layout is not None:
        return None
    total = Linear()
    for at, stride in zip(indices, place.strides, strict=True):
        form = ctx.certain.linear(at)
        if isinstance(stride, int):
            total = total + form.times(stride)
        elif form.apart(var)[0] or not _are_steady(ctx, form, var, lanes):
            return None
    factor, rest = total.apart(var)
    if factor.denominator != 1 or not _are_steady(ctx, rest, var, lanes):
        return None
    return int(factor)


def _are_steady(ctx: Context, form: Linear, var: Var, lanes: int) -> bool:
    return not any(
        _depends(ctx, atom.expr, var) and not (lanes and _is_steady(ctx, atom.expr, var, lanes))
        for atom, _ in form.terms
    )


def _is_steady(ctx: Context, expr: Expr, var: Var, lanes: int) -> bool:
    """Tell whether a quotient is the same for so many lanes, of which the first is a multiple."""
    if not isinstance(expr, Binary) or expr.op is not BinaryOp.FLOORDIV:
        return False
    factor, rest = ctx.certain.linear(expr.a).apart(var)
    step, divisor = factor * lanes, static_value(expr.b)
    if any(_depends(ctx, atom.expr, var) for atom, _ in rest.terms) or step <= 0 or not divisor:
        return False
    whole = (rest.constant, divisor, *(k * ctx.certain.divisor(atom) for atom, k in rest.terms))
    return all(number % step == 0 for number in whole)


def _depends(ctx: Context, atom: Expr, var: Var) -> bool:
    return any((n is var or n in ctx.vectors) for n in nodes_of(atom, Var))


def reach(ctx: Context, node: Load | Store) -> LaneReach:
    """Return which lanes of a vector access exist and lie inside its buffer.

    Raises
    ------
    NotVectorisable
        If lanes may lie before the buffer's first element.
    """
    lane = ctx.lane
    assert lane is not None
    count = lane.count
    buffer = node.buffer
    checks: list[PrimExpr] = []
    if not ctx.settings.guarded or node in ctx.trusted:
        return LaneReach(None, count)
    is_tile = not buffer.scope.is_global
    for axis, (at, extent) in enumerate(zip(node.indices, buffer.shape, strict=True)):
        if not may_leave_tile(ctx, at, extent) if is_tile else is_inside(ctx, at, extent):
            continue
        if not varies(ctx, at):
            checks += access.outside_checks(ctx, at, buffer, axis)
            continue
        room = _room(ctx, at, extent, lane)
        note_guard(buffer, axis, at, ctx.env)
        count = room if count is None else tirx.Min(count, room)
    return LaneReach(all_of(checks), count)


def _room(ctx: Context, at: Expr, extent: Any, lane: Lane) -> PrimExpr:
    """Return how many lanes come before the end of a dimension; any int32."""
    step, others = ctx.certain.linear(at).apart(lane.var)
    low = ctx.env.bounds(at).low
    if step != 1 or any(_depends(ctx, atom.expr, lane.var) for atom, _ in others.terms):
        raise NotVectorisable("a guarded index does not move in step with the lanes")
    if low is None or low < 0:
        raise NotVectorisable("lanes may lie before the first element")
    with first_lane(ctx):
        kind = "int64" if at.dtype.bits == 64 else "int32"
        first = ctx.index(at, kind)
        fixed = static_value(extent)
        limit = number(fixed, kind) if fixed is not None else ctx.index(extent, kind)
        room = limit - first
        if ctx.env.wraps(at):
            room = Select(tirx.GE(first, number(0, kind)), room, number(0, kind))
        if kind == "int64":
            room = TirCast(prim("int32"), tirx.Min(room, number(lane.lanes, kind)))
    return ctx.keep_index(room)


def vector_load(ctx: Context, expr: Load) -> PrimExpr | None:
    """Return the vector of elements the lanes read, None if all lanes read one element."""
    if expr.buffer in ctx.lane_cells:
        cell, at = private_element(ctx, expr)
        return casts.decode(ctx, ctx.keep(BufferLoad(cell, [at])), expr.buffer.dtype)
    if not any(varies(ctx, i) for i in expr.indices):
        return None
    lane = ctx.lane
    assert lane is not None
    place = ctx.place(expr.buffer)
    stride = lane_stride(ctx, place, expr.indices, lane.var, lane.lanes)
    if place.packing > 1:
        raise NotVectorisable("elements are packed")
    if stride == 1:
        loaded = _contiguous(ctx, expr, place, lane)
    elif stride is not None and _is_read_whole(ctx, expr, lane, stride):
        with first_lane(ctx):
            first = access.position(ctx, place, expr.indices)
        loaded = strided(ctx, place, first, stride, lane.lanes, lane.count)
    else:
        loaded = _gathered(ctx, expr, place, lane, stride)
    return casts.decode(ctx, loaded, expr.buffer.dtype)


def _is_read_whole(ctx: Context, expr: Load, lane: Lane, stride: int) -> bool:
    """Tell whether elements `stride` apart may be read, and better are, with those between."""
    if not is_dense(stride, lane.lanes) or (stride < 0 and lane.count is not None):
        return False
    if _lane_mask(ctx, expr) is not None:
        return False
    leaves = may_leave_tile if not expr.buffer.scope.is_global else _may_leave_tensor
    return (
        not ctx.settings.guarded
        or expr in ctx.trusted
        or not any(leaves(ctx, *pair) for pair in zip(expr.indices, expr.buffer.shape, strict=True))
    )


def _may_leave_tensor(ctx: Context, at: Expr, extent: Any) -> bool:
    return not is_inside(ctx, at, extent)


def private_element(ctx: Context, node: Load | Store) -> tuple[TirBuffer, PrimExpr]:
    """Return where the lanes' copies of a private element lie side by side.

    Raises
    ------
    NotVectorisable
        If lanes touch different elements.
    """
    if any(varies(ctx, i) for i in node.indices):
        raise NotVectorisable("lanes index private memory differently")
    shape = node.buffer.static_shape or ()
    at: PrimExpr = i32(0)
    for index, stride in zip(node.indices, row_major(shape), strict=True):
        at = at + ctx.index(index) * stride
    return ctx.lane_cells[node.buffer], at


def refuse_speculation(ctx: Context, expr: Load) -> None:
    """Raise for a load that only some lanes may execute, if its address may be wild.

    Tensors are no matter: their loads are guarded or masked.

    Raises
    ------
    NotVectorisable
        If the address is known to lie in its tile only where a condition on lanes holds.
    """
    if expr.buffer.scope.is_global or expr.buffer in ctx.lane_cells:
        return
    if not _is_certain(ctx, expr):
        raise NotVectorisable("a load under a condition may leave its buffer")


def _is_certain(ctx: Context, expr: Load) -> bool:
    """Whether `expr` is in range whatever conditions on lanes say."""
    pairs = zip(expr.indices, expr.buffer.shape, strict=True)
    return all(prove_in_range(at, extent, ctx.certain) for at, extent in pairs)


def _lane_mask(ctx: Context, expr: Load) -> PrimExpr | None:
    """Return the lanes that may load, None if all may: a test up front or the ranges say so."""
    if ctx.lane_mask is None or expr in ctx.trusted or _is_certain(ctx, expr):
        return None
    return ctx.lane_mask


def _contiguous(ctx: Context, expr: Load, place: FlatBuffer, lane: Lane) -> PrimExpr:
    valid = reach(ctx, expr)
    with first_lane(ctx):
        offset = access.position(ctx, place, expr.indices)
        prefetch_next_iteration(ctx, expr, place)
        read_ahead(ctx, expr, place, offset)
    memory, mask = memory_type(expr.buffer.dtype), _lane_mask(ctx, expr)
    is_whole = valid.condition is None and valid.count is None
    if is_whole and mask is None:
        return ctx.keep(vload(place.flat, [offset], lane.lanes))
    count = lane_count(valid, lane)
    at, which = tirx.address_of(BufferLoad(place.flat, [offset])), count
    if mask is not None:
        which = mask if is_whole else tirx.And(mask, _lanes_before(count, lane))
    loaded = ctx.keep(masked_load(memory, at, which, lane.lanes))
    return loaded if is_whole else _with_safe_value(ctx, expr.buffer, loaded, count, lane)


def lane_count(valid: LaneReach, lane: Lane) -> PrimExpr:
    """Return how many lanes to touch."""
    count = i32(lane.lanes) if valid.count is None else valid.count
    return count if valid.condition is None else Select(valid.condition, count, i32(0))


def _with_safe_value(
    ctx: Context, buffer: Buffer, stored: PrimExpr, count: PrimExpr, lane: Lane
) -> PrimExpr:
    """Put the annotated safe value into the lanes from `count` on; they are zero so far."""
    annotated = ctx.safe.get(buffer)
    if annotated is None:
        return stored
    value = casts.encode(ctx, ctx.value(tile_cast(annotated, buffer.dtype)), buffer.dtype)
    inside = _lanes_before(count, lane)
    return ctx.keep(Select(inside, stored, spread(value, lane.lanes)))


def _lanes_before(count: PrimExpr, lane: Lane) -> PrimExpr:
    """Return which lanes come before lane `count`."""
    return tirx.LT(tirx.Ramp(i32(0), i32(1), lane.lanes), spread(count, lane.lanes))


def _gathered(
    ctx: Context, expr: Load, place: FlatBuffer, lane: Lane, stride: int | None
) -> PrimExpr:
    """Load lane by lane from scattered addresses; what some lanes read not far apart in vectors."""
    is_tile = not expr.buffer.scope.is_global
    valid = LaneReach(None, lane.count) if is_tile else reach(ctx, expr)
    if place.index != "int32" or place.layout is not None:
        raise NotVectorisable("scattered elements are too far apart")
    offset = access.position(ctx, place, expr.indices)
    memory, mask = memory_type(expr.buffer.dtype), _lane_mask(ctx, expr)
    if is_tile:
        mask = _inside_tile(ctx, expr, mask, lane)
    is_whole = valid.condition is None and valid.count is None
    count = lane_count(valid, lane)
    if not is_whole:
        mask = all_of([mask, _lanes_before(count, lane)])
    if mask is not None and stride is not None and stride > 0 and is_dense(stride, lane.lanes):
        with first_lane(ctx):
            first = access.position(ctx, place, expr.indices)
        loaded = strided(ctx, place, first, stride, lane.lanes, mask=mask)
        is_known = is_tile or is_whole
        return loaded if is_known else _with_safe_value(ctx, expr.buffer, loaded, count, lane)
    is_short = memory not in ("float32", "int32", "uint32", "float64", "int64", "uint64")
    if is_short and mask is None:
        return _assembled(ctx, place, ctx.keep(offset), lane.lanes)
    loaded = ctx.keep(gather(place.flat, spread(offset, lane.lanes), lane.lanes, mask))
    return (
        loaded if is_tile or is_whole else _with_safe_value(ctx, expr.buffer, loaded, count, lane)
    )


def _inside_tile(ctx: Context, expr: Load, mask: PrimExpr | None, lane: Lane) -> PrimExpr | None:
    """Return which lanes of `mask` read elements of their tile, as far as that is open."""
    if not ctx.settings.guarded:
        return mask
    for axis, (at, extent) in enumerate(zip(expr.indices, expr.buffer.shape, strict=True)):
        if may_leave_tile(ctx, at, extent):
            for check in access.outside_checks(ctx, at, expr.buffer, axis):
                mask = all_of([mask, spread(check, lane.lanes)])
    return mask


def _assembled(ctx: Context, place: FlatBuffer, offsets: PrimExpr, lanes: int) -> PrimExpr:
    places = (shuffle([offsets], [k]) for k in range(lanes))
    elements = [ctx.keep(BufferLoad(place.flat, [at])) for at in places]
    return ctx.keep(shuffle(elements, range(lanes)))


def _is_streamed(ctx: Context, stmt: Store, stored: PrimExpr) -> bool:
    """Whether a store goes past the caches: registers do, the narrowest ones and wider."""
    bits = int("".join(c for c in scalar_name(stored) if c.isdigit()))
    return lanes_of(stored) * bits >= NARROWEST_REGISTER and stmt.buffer in ctx.streamed


def _feeds_products(ctx: Context, stmt: Store) -> bool:
    """Whether what is stored is read by nothing but products, as an operand."""
    storage = stmt.buffer.storage
    users = ctx.settings.users.get(storage, ())
    readers = [
        user
        for user in users
        if not storage.scope.is_global and any(r.buffer.storage is storage for r in _reads(user))
    ]
    return bool(readers) and all(
        isinstance(r, (Gemm, StreamedGemm)) and r.c.buffer.storage is not storage for r in readers
    )


def _reads(node: Node) -> Sequence[Load | Region]:
    if isinstance(node, TileOperator):
        return node.reads()
    return (node,) if isinstance(node, Load) else ()


def vector_store(ctx: Context, stmt: Store) -> TirStmt:
    """Return the store of one element per lane, contiguous and within bounds.

    Raises
    ------
    NotVectorisable
        If lanes do not write neighbouring elements.
    """
    lane = ctx.lane
    assert lane is not None
    if stmt.buffer in ctx.lane_cells:
        stored = spread(access.encoded_value(ctx, stmt.value), lane.lanes)
        cell, at = private_element(ctx, stmt)
        return BufferStore(cell, stored, [at])
    place = ctx.place(stmt.buffer)
    if place.packing > 1 or lane_stride(ctx, place, stmt.indices, lane.var, lane.lanes) != 1:
        raise NotVectorisable("lanes do not write neighbouring elements")
    encoded = access.encoded_value(ctx, stmt.value, for_products=_feeds_products(ctx, stmt))
    stored = spread(encoded, lane.lanes)
    valid = reach(ctx, stmt)
    with first_lane(ctx):
        offset = access.position(ctx, place, stmt.indices)
    if valid.count is None:
        if _is_streamed(ctx, stmt, stored):
            ctx.streams = True
            write = streamed(place, offset, stored, ahead=ctx.stretch > 0)
        else:
            write = vstore(place.flat, [offset], stored, lane.lanes)
        return write if valid.condition is None else IfThenElse(valid.condition, write, None)
    at = tirx.address_of(BufferLoad(place.flat, [offset]))
    count = lane_count(valid, lane)
    return masked_store(scalar_name(stored), at, count, stored, lane.lanes)
