"""Expressions and stores of tile IR as those of one thread: flat, guarded, in storable types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import all_of, as_expr, const, select
from tile_core.ir.device import device
from tile_core.ir.expr import (
    AddressOf,
    Binary,
    BinaryOp,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Unary,
    Var,
)
from tile_core.ir.intrinsics import Effect, effect_of
from tile_core.ir.stmt import Evaluate, If, Stmt, Store
from tile_core.records import replace
from tile_core.simt import subbyte_access
from tile_core.simt.context import SimtContext
from tile_core.simt.subwarp_collectives import within_language_warp
from tile_core.simt.tensor_bounds_checks import inside, safe_value


def lower_expr(expr: Expr, ctx: SimtContext) -> Expr:
    """Return `expr` on flat buffers.

    Before   A[bx*64 + i, k] * 2
    After    (A[(bx*64 + i)*K + k] if bx*64 + i < M else 0) * 2

    Loads outside of a tensor give its safe value, calls with an address outside of a tensor
    do not happen. What a lazy `Select` or a logical operation states is known in the side
    that it protects.
    """
    lowering = _EXPRESSIONS.get(type(expr))
    if lowering is not None:
        return lowering(expr, ctx)
    return expr.map_children(lambda n: lower_expr(n, ctx) if isinstance(n, Expr) else n)


def _const(expr: Const, ctx: SimtContext) -> Expr:
    if not subbyte_access.is_narrow(expr.dtype):
        return expr
    wide = const(expr.value, subbyte_access.carrier(expr.dtype))
    return subbyte_access.settled(wide, expr.dtype) if expr.dtype.is_float and expr.value else wide


def _var(expr: Var, ctx: SimtContext) -> Expr:
    return subbyte_access.carried(expr, expr.dtype)


def _load(expr: Load, ctx: SimtContext) -> Expr:
    value = subbyte_access.unpacked(raw_load(expr, ctx), expr.buffer.dtype)
    condition = inside(expr.buffer, expr.indices, ctx)
    if condition is None:
        return value
    outside = lower_expr(safe_value(expr.buffer, ctx), ctx)
    return select(
        lower_expr(condition, ctx), value, subbyte_access.carried(outside, expr.buffer.dtype)
    )


def raw_load(expr: Load, ctx: SimtContext) -> Expr:
    """Return the stored bits of an element, unguarded: a byte for types narrower than one."""
    buffer = expr.buffer
    indices = tuple(lower_expr(i, ctx) for i in expr.indices)
    flat, offset = place_of(buffer, indices, ctx)
    if subbyte_access.is_packed(buffer):
        return subbyte_access.nibble(flat, offset)
    return Load(flat, (offset,), span=expr.span)


def place_of(buffer: Buffer, indices: Sequence[Expr], ctx: SimtContext) -> tuple[Buffer, Expr]:
    """Return the flat buffer and the offset in it of an element, whose indices are lowered.

    A tensor at the address of an element of another one is a part of that; at an address
    that is computed it has a flat buffer of its own, whose origin is the lowered address.
    """
    root, flats = buffer.storage, ctx.places.flats
    offset = ctx.places.offset(buffer, indices)
    if isinstance(root.origin, AddressOf):
        there = lower_address(root.origin, ctx)
        below, dtype = there.buffer, subbyte_access.storage_dtype(buffer.dtype, buffer.scope)
        start = there.indices[0] * below.dtype.bits // dtype.bits
        if below.dtype == dtype:
            return below, start + offset
        if buffer not in flats:
            name = f"{below.name}_{dtype}"
            flats[buffer] = replace(below, name=name, dtype=dtype, origin=below.storage)
        return flats[buffer], start + offset
    if isinstance(root.origin, Expr) and root not in flats:
        flats[root] = replace(ctx.places.flat(root), origin=lower_expr(root.origin, ctx))
    return ctx.places.flat(buffer), offset


def lower_address(expr: AddressOf, ctx: SimtContext) -> AddressOf:
    """Return the address of the element on its flat buffer; see `lower_expr`."""
    indices = tuple(lower_expr(i, ctx) for i in expr.indices)
    flat, offset = place_of(expr.buffer, indices, ctx)
    return AddressOf(flat, (offset,), expr.access, span=expr.span)


def _select(expr: Select, ctx: SimtContext) -> Expr:
    yes = ctx.assuming(expr.cond) if expr.lazy else ctx
    no = ctx.assuming(expr.cond, holds=False) if expr.lazy else ctx
    return Select(
        lower_expr(expr.cond, ctx), lower_expr(expr.then, yes), lower_expr(expr.otherwise, no),
        expr.lazy, span=expr.span,
    )  # fmt: skip


def _binary(expr: Binary, ctx: SimtContext) -> Expr:
    right = ctx
    if expr.op.is_logical:
        right = ctx.assuming(expr.a, holds=expr.op is BinaryOp.AND)
    a, b = lower_expr(expr.a, ctx), lower_expr(expr.b, right)
    dtype = subbyte_access.carrier(expr.dtype)
    result = Binary(expr.op, a, b, dtype, span=expr.span)
    return result if dtype == expr.dtype else subbyte_access.settled(result, expr.dtype)


def _unary(expr: Unary, ctx: SimtContext) -> Expr:
    dtype = subbyte_access.carrier(expr.dtype)
    result = Unary(expr.op, lower_expr(expr.a, ctx), dtype, span=expr.span)
    return result if dtype == expr.dtype else subbyte_access.settled(result, expr.dtype)


def _cast(expr: Cast, ctx: SimtContext) -> Expr:
    value = lower_expr(expr.value, ctx)
    dtype = subbyte_access.carrier(expr.dtype)
    if dtype == expr.dtype:
        return Cast(dtype, value, expr.saturate, span=expr.span)
    return subbyte_access.settled(value, expr.dtype, saturate=expr.saturate)


def _call(expr: Call, ctx: SimtContext) -> Expr:
    if expr.function == RANK:
        return cluster_rank(expr, ctx)
    condition = _inside(expr, ctx)
    if condition is None:
        return _call_inside(expr, ctx)
    lowered = replace(expr, args=tuple(lower_expr(a, ctx) for a in expr.args))
    return select(lower_expr(condition, ctx), lowered, _result_outside(expr, ctx))


def _call_inside(expr: Call, ctx: SimtContext) -> Expr:
    """Return a call whose addresses exist wherever it is made."""
    args = tuple(lower_expr(a, ctx) for a in expr.args)
    return within_language_warp(replace(expr, args=args), ctx)


def _result_outside(expr: Call, ctx: SimtContext) -> Expr:
    """Return what a call gives that does not happen: atomics give the safe value of the tensor."""
    first = expr.args[0]
    if isinstance(first, AddressOf) and effect_of(expr.function) & Effect.ATOMIC:
        return lower_expr(safe_value(first.buffer, ctx), ctx)
    return const(0, expr.dtype)


def _inside(expr: Call, ctx: SimtContext) -> Expr | None:
    """Return the condition under which all addresses that `expr` takes exist; None: always."""
    found = [inside(a.buffer, a.indices, ctx) for a in expr.args if isinstance(a, AddressOf)]
    return all_of([c for c in found if c is not None])


def lower_store(stmt: Store, ctx: SimtContext) -> Stmt:
    """Return a store to a flat buffer, skipped outside of a tensor.

    Before   C[bx*64 + i, j] = x
    After    if bx*64 + i < M: C[(bx*64 + i)*N + j] = x
    """
    buffer = stmt.buffer
    condition = inside(buffer, stmt.indices, ctx)
    known = ctx if condition is None else ctx.knowing(ctx.env.assuming(condition))
    indices = tuple(lower_expr(i, known) for i in stmt.indices)
    flat, offset = place_of(buffer, indices, ctx)
    bits = stored_bits(stmt.value, stmt, known)
    lowered: Stmt
    if subbyte_access.is_packed(buffer):
        put = (
            subbyte_access.put_nibble
            if _owns_byte(stmt, condition, ctx)
            else subbyte_access.put_nibble_apart
        )
        lowered = replace(put(flat, offset, bits), span=stmt.span)
    else:
        lowered = Store(flat, (offset,), bits, span=stmt.span)
    if condition is None:
        return lowered
    return If(lower_expr(condition, ctx), lowered, span=stmt.span)


def _owns_byte(stmt: Store, condition: Expr | None, ctx: SimtContext) -> bool:
    """Whether the other element of the byte has a value, and no other thread stores it meanwhile.

    Tiles have none before both elements are stored; tensors always have one.
    """
    if not stmt.buffer.scope.is_global:
        return stmt.buffer.scope is not Scope.SHARED
    offset = as_expr(ctx.places.offset(stmt.buffer, stmt.indices))
    return ctx.runs.fill_bytes(stmt.buffer, offset, condition)


def stored_bits(value: Expr, stmt: Store, ctx: SimtContext) -> Expr:
    """Return `value` as the memory of ``stmt.buffer`` holds it; moves keep the bits."""
    dtype = stmt.buffer.dtype
    if not subbyte_access.is_narrow(dtype):
        return lower_expr(value, ctx)
    if isinstance(value, Load) and value.dtype == dtype:
        condition = inside(value.buffer, value.indices, ctx)
        bits = raw_load(value, ctx)
        if condition is None:
            return bits
        outside = lower_expr(safe_value(value.buffer, ctx), ctx)
        other = subbyte_access.packed(subbyte_access.carried(outside, dtype), dtype)
        return select(lower_expr(condition, ctx), bits, other)
    return subbyte_access.packed(subbyte_access.carried(lower_expr(value, ctx), dtype), dtype)


def lower_evaluate(stmt: Evaluate, ctx: SimtContext) -> Stmt:
    """Return what is evaluated for its effect; nothing happens at addresses outside tensors.

    Before   atomic_add(C[bx*64 + i], x)
    After    if bx*64 + i < M: atomic_add(&C[bx*64 + i], x)
    """
    value = stmt.value
    condition = _inside(value, ctx) if isinstance(value, Call) else None
    if condition is None or not isinstance(value, Call):
        return replace(stmt, value=lower_expr(value, ctx))
    known = ctx.knowing(ctx.env.assuming(condition))
    lowered = replace(stmt, value=_call_inside(value, known))
    return If(lower_expr(condition, ctx), lowered, span=stmt.span)


_EXPRESSIONS: dict[type, Callable[[Any, SimtContext], Expr]] = {
    Const: _const,
    Var: _var,
    Load: _load,
    AddressOf: lower_address,
    Select: _select,
    Binary: _binary,
    Unary: _unary,
    Cast: _cast,
    Call: _call,
}


RANK = "block_rank_in_cluster"


def cluster_rank(expr: Call, ctx: SimtContext) -> Call:
    """Return what the device header calls the rank of a block.

    Raises
    ------
    UnsupportedOnTarget
        If the machine has no clusters.
    """
    hint = "leave cluster_dims out, or compile for a GPU with clusters of blocks"
    must_have("clusters", expr, ctx, hint)
    return replace(device("cluster_rank"), span=expr.span)


def must_have(feature: str, expr: Call, ctx: SimtContext, hint: str) -> None:
    """Refuse an instruction that a kernel names and the machine lacks, before any compiler does."""
    if not ctx.machine.has(feature):
        raise UnsupportedOnTarget(
            f"T.{expr.function} is not an instruction of {ctx.machine.name}",
            span=expr.span,
            hint=hint,
        )
