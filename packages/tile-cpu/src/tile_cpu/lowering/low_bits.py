"""Indices that are low bits of numbers: LLVM does not learn how they grow."""

from __future__ import annotations

from tile_core.ir.expr import Binary, BinaryOp, Cast, Const, Expr, Extent, Load, Var
from tile_core.ir.node import Node, walk
from tile_cpu.llvm_memory_access import stored_value
from tile_cpu.lowering.context import Context
from tile_cpu.lowering.types import lanes_of
from tile_cpu.tir.nodes import IntImm, PrimExpr


def coordinate(ctx: Context, at: Extent, kind: str) -> PrimExpr:
    """Return an index, of which LLVM does not learn how it grows where its low bits are taken.

    Of ``(j + 1) & 15``, for j in 0..15, LLVM takes for proven that it never wraps, though it does
    in the last iteration, and where it makes vectors of the loop it loads 16 elements in order, of
    which the last is beside the others.
    """
    index = ctx.index(at, kind)
    if lanes_of(index) > 1 or isinstance(index, IntImm) or not _keeps_low_bits(ctx, at):
        return index
    return stored_value(index)


def learn(ctx: Context, var: Var, value: Expr) -> None:
    """Know from here on what `var` stands for."""
    ctx.env = ctx.env.with_let(var, value)
    if _keeps_low_bits(ctx, value):
        ctx.low_bits.add(var)


def _keeps_low_bits(ctx: Context, at: Extent) -> bool:
    """Whether an index is, or contains, the low bits of a number that may have more."""
    return isinstance(at, Expr) and any(_are_low_bits(ctx, node) for node in walk(at))


def _are_low_bits(ctx: Context, node: Node) -> bool:
    match node:
        case Binary(op=BinaryOp.FLOORMOD, b=Const(value=int(n))):
            return n & (n - 1) == 0
        case Binary(op=BinaryOp.BITAND):
            return True
        case Cast(value=inner, dtype=dtype):
            return dtype.is_int and inner.dtype.is_int and dtype.bits < inner.dtype.bits
        case Load(buffer=buffer):
            return buffer.scope.is_thread_private  # which may be a register that holds such bits
        case Var():
            return node in ctx.low_bits
    return False
