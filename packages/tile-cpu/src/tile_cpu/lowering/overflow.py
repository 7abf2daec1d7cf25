"""Which integer arithmetic may leave its type, how it wraps, and what LLVM must not learn of it.

TVM simplifies integers as if none overflowed, and tells LLVM that none of 32 bits or more does. So
they may for indices: loops, blocks and extents count what fits in memory. What comes from memory,
from the caller or from a hash may overflow; then the language says that it wraps.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tile_core.analysis.thread_tables import table
from tile_core.arith.in_range import open_ends
from tile_core.arith.interval import combine
from tile_core.ir.buffer import static_value
from tile_core.ir.expr import Binary, BinaryOp, Cast, Const, Expr, Extent, Load, Unary, Var
from tile_core.ir.node import Node, nodes_of, walk
from tile_cpu.llvm_memory_access import stored_value
from tile_cpu.lowering.casts import wrapped_constant
from tile_cpu.lowering.types import lanes_of, number, scalar_name
from tile_cpu.tir.build import with_lanes
from tile_cpu.tir.nodes import IntImm, PrimExpr, tirx

if TYPE_CHECKING:
    from tile_core.dtypes import DType
    from tile_cpu.lowering.context import Context

_INSTRUCTIONS = {
    BinaryOp.ADD: "add", BinaryOp.SUB: "sub", BinaryOp.MUL: "mul", BinaryOp.SHL: "shl",
}  # fmt: skip
_MOST_COMBINATIONS = 1 << 14
"""Values of the loops around an index that are looked at one by one."""


def may_wrap(ctx: Context, expr: Binary | Unary) -> bool:
    """Whether the exact result of ``a op b``, or ``-a``, may be no value of its type."""
    return expr.dtype.is_int and expr.dtype.bits >= 32 and ctx.ranges.may_wrap(expr)


def is_inside(ctx: Context, at: Expr, extent: Extent) -> bool:
    """Whether an index is always in a dimension, also where a part of it wraps."""
    return open_ends(at, extent, ctx.env) == (False, False)


def may_leave_tile(ctx: Context, at: Expr, extent: Extent) -> bool:
    """Whether nothing says that an index into scratch stays inside.

    Then the program may be wrong, which the checks tell. Compiled code must not fault for that.
    """
    return not is_inside(ctx, at, extent) and not _is_inside_everywhere(ctx, at, extent)


def _is_inside_everywhere(ctx: Context, at: Expr, extent: Extent) -> bool:
    """Whether an index is in a dimension for all values of the loops around it, one by one."""
    fixed = static_value(extent)
    if fixed is None:
        return False
    ranges: dict[Var, range] = {}
    for var in dict.fromkeys(nodes_of(at, Var)):
        bounds = ctx.env.bounds(var)
        if var in ctx.iterations:
            ranges[var] = ctx.iterations[var]
        elif bounds.low is not None and bounds.high is not None:
            ranges[var] = range(bounds.low, bounds.high + 1)
        else:
            return False
        if math.prod(len(r) for r in ranges.values()) > _MOST_COMBINATIONS:
            return False
    axes = np.meshgrid(*(np.asarray(r, np.int64) for r in ranges.values()), indexing="ij")
    values = {v: x.reshape(-1, 1) for v, x in zip(ranges, axes, strict=True)}
    found = table(at, values)
    return found is not None and (not found.size or (found.min() >= 0 and found.max() < fixed))


def wrapping(ctx: Context, op: BinaryOp, a: PrimExpr, b: PrimExpr, dtype: DType) -> PrimExpr:
    """Return ``a op b`` modulo the width of its type, in an instruction that says nothing more."""
    kind, lanes = scalar_name(a), lanes_of(a)
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        found, _ = combine(op, (int(a.value),) * 2, (int(b.value),) * 2)
        if found is not None:
            return number(wrapped_constant(found, dtype), kind)
    name = f"cpu_{_INSTRUCTIONS[op]}_{kind}x{lanes}"
    element = f"i{kind.lstrip('uint')}"
    llvm = element if lanes == 1 else f"<{lanes} x {element}>"
    ctx.helpers[name] = (
        f"define {llvm} @{name}({llvm} %a, {llvm} %b) alwaysinline {{\n"
        f"  %r = {_INSTRUCTIONS[op]} {llvm} %a, %b\n  ret {llvm} %r\n}}\n"
    )
    return tirx.call_pure_extern(with_lanes(kind, lanes), name, a, b)


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
