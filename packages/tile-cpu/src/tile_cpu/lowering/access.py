"""Loads, stores and addresses: guards, safe values, packed elements."""

from __future__ import annotations

from tile_core.arith.in_range import open_ends
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.build_expr import cast
from tile_core.ir.expr import Cast, Expr, Load
from tile_core.ir.extrema import is_compared
from tile_core.ir.node import Node
from tile_core.ir.stmt import Store
from tile_core.passes.guards.registry import note_guard
from tile_cpu.llvm_memory_access import reinterpret, stored_value
from tile_cpu.lowering import casts
from tile_cpu.lowering.buffer_addresses import FlatBuffer
from tile_cpu.lowering.context import Context, assigned, loaded
from tile_cpu.lowering.overflow import coordinate, may_leave_tile
from tile_cpu.lowering.types import all_of, lanes_of, memory_type, number, scalar_name, spread
from tile_cpu.tir.build import dtype_of_expr, extern, prim, seq
from tile_cpu.tir.nodes import BufferLoad, BufferStore, IfThenElse, IntImm, PrimExpr, tirx
from tile_cpu.tir.nodes import Cast as TirCast
from tile_cpu.tir.nodes import Stmt as TirStmt


def guard(
    ctx: Context, buffer: Buffer, indices: tuple[Expr, ...], node: Node | None = None
) -> PrimExpr | None:
    """Return the condition under which an access is inside `buffer`, None if it always is.

    Tiles have one only where data say which element; what is proven is left out. `node` is the
    access, which a test around the loop may have proven.
    """
    if not ctx.settings.guarded or node in ctx.trusted:
        return None
    is_tile = not buffer.scope.is_global
    checks: list[PrimExpr] = []
    env = ctx.env
    if ctx.speculative is not None:  # the condition may hold in no lane at all
        ctx.env = ctx.speculative
    for axis, at in enumerate(indices):
        if is_tile and not may_leave_tile(ctx, at, buffer.shape[axis]):
            continue
        checks += outside_checks(ctx, at, buffer, axis)
    ctx.env = env
    return all_of(checks)


def outside_checks(ctx: Context, at: Expr, buffer: Buffer, axis: int) -> list[PrimExpr]:
    """Return what must hold for an index to be inside a dimension, less what is proven."""
    extent = buffer.shape[axis]
    below, above = open_ends(at, extent, ctx.env)
    if not (below or above):
        return []
    position = ctx.index(at, "int64" if at.dtype.bits == 64 else "int32")
    kind, lanes = scalar_name(position), lanes_of(position)
    checks = []
    if below:
        note_guard(buffer, axis, at, ctx.env, from_below=True)
        checks.append(tirx.GE(position, number(0, kind, lanes)))
    if above:
        note_guard(buffer, axis, at, ctx.env)
        fixed = static_value(extent)
        limit = number(fixed, kind) if fixed is not None else ctx.index(extent, kind)
        checks.append(tirx.LT(position, spread(limit, lanes)))
    return checks


def position(ctx: Context, place: FlatBuffer, indices: tuple[Expr, ...]) -> PrimExpr:
    """Return the flat offset of an element."""
    return place.offset([coordinate(ctx, i, place.index) for i in indices])


def fetch(place: FlatBuffer, offset: PrimExpr) -> PrimExpr:
    """Return the stored element at a flat offset; of packed elements, the one nibble."""
    if place.packing == 1:
        return BufferLoad(place.flat, [offset])
    kind = memory_type(place.dtype)
    byte = BufferLoad(place.flat, [tirx.shift_right(offset, number(1, place.index))])
    shift = nibble_shift(place, offset)
    nibble = tirx.bitwise_and(tirx.shift_right(TirCast(prim("uint8"), byte), shift),
                              number(15, "uint8"))  # fmt: skip
    if kind == "uint8":
        return nibble
    four = number(4, "int8")
    return tirx.shift_right(tirx.shift_left(TirCast(prim("int8"), nibble), four), four)


def nibble_shift(place: FlatBuffer, offset: PrimExpr) -> PrimExpr:
    """Return by how many bits the element at `offset` is shifted in its byte: 0 or 4."""
    odd = TirCast(prim("uint8"), tirx.bitwise_and(offset, number(1, place.index)))
    return odd * number(4, "uint8")


def put(ctx: Context, place: FlatBuffer, offset: PrimExpr, stored: PrimExpr) -> TirStmt:
    """Return the store of an encoded element at a flat offset."""
    if place.packing == 1:
        return BufferStore(place.flat, _exact(ctx, stored), [offset])
    at = tirx.shift_right(offset, number(1, place.index))
    shift = nibble_shift(place, offset)
    kept = tirx.bitwise_and(
        TirCast(prim("uint8"), BufferLoad(place.flat, [at])),
        tirx.shift_right(number(0xF0, "uint8"), shift),
    )
    new = tirx.shift_left(
        tirx.bitwise_and(reinterpret(stored, "uint8"), number(15, "uint8")), shift
    )
    byte = TirCast(prim(str(place.flat.dtype)), tirx.bitwise_or(kept, new))
    return BufferStore(place.flat, _exact(ctx, byte), [at])


def _exact(ctx: Context, value: PrimExpr) -> PrimExpr:
    """Return a value whose store touches one element, even if LLVM makes a masked store of it."""
    short = dtype_of_expr(value) in ("int8", "int16", "int32", "uint8", "uint16", "uint32")
    if not ctx.is_in_branch or not short or isinstance(value, IntImm):
        return value
    return stored_value(value) if ctx.machine.has("avx512f") else value


def load(ctx: Context, expr: Load) -> PrimExpr:
    """Return the value of one element, or the safe value outside a global buffer."""
    buffer = expr.buffer
    place = ctx.place(buffer)
    inside = guard(ctx, buffer, expr.indices, expr)
    offset = position(ctx, place, expr.indices)
    if inside is None:
        return casts.decode(ctx, ctx.keep(fetch(place, offset)), buffer.dtype)
    cell = ctx.cell(memory_type(buffer.dtype), "seen")
    with ctx.branch() as unsafe:
        outside = assigned(cell, safe_value(ctx, buffer))
    ctx.run(IfThenElse(inside, assigned(cell, fetch(place, offset)), seq(unsafe, outside)))
    return casts.decode(ctx, loaded(cell), buffer.dtype)


def safe_value(ctx: Context, buffer: Buffer) -> PrimExpr:
    """Return what a load outside `buffer` gives, encoded as in memory."""
    annotated = ctx.safe.get(buffer)
    if annotated is None:
        return number(0, memory_type(buffer.dtype))
    value = ctx.value(cast(annotated, buffer.dtype))
    return casts.encode(ctx, value, buffer.dtype)


def store(ctx: Context, stmt: Store) -> TirStmt:
    """Return the store of an element, skipped outside a global buffer."""
    buffer, place = stmt.buffer, ctx.place(stmt.buffer)
    stored = encoded_value(ctx, stmt.value)
    if any(is_compared(stmt.value, cond) for cond in ctx.branched_on):
        stored = opaque(ctx, stored)
    inside = guard(ctx, buffer, stmt.indices, stmt)
    with ctx.in_branch(is_one=inside is not None):
        write = put(ctx, place, position(ctx, place, stmt.indices), stored)
    return write if inside is None else IfThenElse(inside, write, None)


def opaque(ctx: Context, chosen: PrimExpr) -> PrimExpr:
    """Return a float of which LLVM does not see how it was chosen, if it is one to LLVM."""
    kind = scalar_name(chosen)
    if kind not in ("float32", "float64"):
        return chosen
    return ctx.keep(extern(kind, f"tile_opaque_f{kind.removeprefix('float')}", chosen))


def encoded_value(ctx: Context, expr: Expr, *, for_products: bool = False) -> PrimExpr:
    """Return `expr` as it is stored; a conversion to a short float rounds only once.

    It may be one `for_products` if nothing else reads it: as a factor.
    """
    dtype = expr.dtype
    if isinstance(expr, Cast) and dtype.is_float and expr.value.dtype.is_float:
        value, source = ctx.value(expr.value), expr.value.dtype
        if dtype.bits <= 16 and source.base != dtype.base:
            saturate = expr.saturate
            return casts.encode(ctx, value, dtype, saturate=saturate, for_products=for_products)
    return casts.encode(ctx, ctx.unrounded(expr), dtype, for_products=for_products)


def address(ctx: Context, buffer: Buffer, indices: tuple[Expr, ...]) -> PrimExpr:
    """Return the address of an element; it may lie one past the end."""
    place = ctx.place(buffer)
    offset = position(ctx, place, indices)
    if place.packing > 1:
        offset = tirx.shift_right(offset, number(1, place.index))
    return tirx.address_of(BufferLoad(place.flat, [offset]))
