"""Which integer arithmetic may leave its type, and how it wraps.

TVM simplifies integers as if none overflowed, and tells LLVM that none of 32 bits or more does. So
they may for indices: loops, blocks and extents count what fits in memory. What comes from memory,
from the caller or from a hash may overflow; then the language says that it wraps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tile_core.arith.constraints import ConstraintSet, prove_in_range
from tile_core.ir.arith import integer_bounds
from tile_core.ir.buffer import static_value
from tile_core.ir.expr import (
    Binary,
    BinaryOp,
    Cast,
    Const,
    Expr,
    Extent,
    Select,
    Unary,
    UnaryOp,
    Var,
)
from tile_core.ir.node import walk
from tile_core.passes.thread_tables import table
from tile_cpu.lowering.casts import wrapped_constant
from tile_cpu.lowering.types import lanes_of, number, scalar_name, with_lanes
from tile_cpu.tir.nodes import IntImm, PrimExpr, tirx

if TYPE_CHECKING:
    from tile_core.dtypes import DType
    from tile_cpu.lowering.context import Context

Reach: TypeAlias = "tuple[int, int]"
"""The smallest and the largest value, both included."""

_INSTRUCTIONS = {
    BinaryOp.ADD: "add", BinaryOp.SUB: "sub", BinaryOp.MUL: "mul", BinaryOp.SHL: "shl",
}  # fmt: skip
_MOST_COMBINATIONS = 1 << 14
"""Values of the loops around an index that are looked at one by one."""

_NO_INDEX = 1 << 24
"""A constant as large as this belongs to a hash or a mask, not to an index."""


def may_wrap(ctx: Context, expr: Binary | Unary) -> bool:
    """Whether the exact result of ``a op b``, or ``-a``, may be no value of its type."""
    if not expr.dtype.is_int or expr.dtype.bits < 32 or not _is_arbitrary(ctx, expr):
        return False
    if isinstance(expr, Unary):
        low, high = reach(ctx, expr.a)
        exact: Reach | None = -high, -low
    else:
        exact = _OPERATIONS[expr.op](reach(ctx, expr.a), reach(ctx, expr.b))
    least, most = integer_bounds(expr.dtype)
    return exact is None or exact[0] < least or exact[1] > most


def is_inside(ctx: Context, at: Expr, extent: Extent) -> bool:
    """Whether an index is always in a dimension, also where a part of it wraps.

    Proofs are those of exact arithmetic, so what may wrap must be bounded by what follows.
    """
    if prove_in_range(at, extent, ctx.env) and not wraps_within(ctx, at):
        return True
    fixed = static_value(extent)
    if fixed is None or not _is_arbitrary(ctx, at):
        return False
    low, high = reach(ctx, at)
    return low >= 0 and high < fixed


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
    for var in dict.fromkeys(n for n in walk(at) if isinstance(n, Var)):
        bounds = ctx.env.bounds(var)
        if var in ctx.rounds:
            ranges[var] = ctx.rounds[var]
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


def wraps_within(ctx: Context, root: Expr) -> bool:
    """Whether a sum, a difference, a product or a shift inside of `root` may wrap."""
    return _is_arbitrary(ctx, root) and any(
        may_wrap(ctx, node)
        for node in walk(root)
        if (isinstance(node, Binary) and node.op in _INSTRUCTIONS)
        or (isinstance(node, Unary) and node.op is UnaryOp.NEG)
    )


def learnt(ctx: Context, cond: Expr, *, holds: bool = True) -> ConstraintSet:
    """Return what is known where `cond` holds, or where it does not."""

    def wraps(env: ConstraintSet, part: Expr) -> bool:
        return wraps_within(ctx, part)

    return ctx.env.assuming(cond, holds=holds, wraps=wraps)


def _is_arbitrary(ctx: Context, expr: Expr) -> bool:
    """Whether `expr` depends on more than loops, blocks, extents and small constants."""
    known = ctx.arbitrary.get(expr)
    if known is None:
        match expr:
            case Const(value=value):
                known = abs(value) >= _NO_INDEX
            case Var():
                known = expr in ctx.given
            case Binary(a=a, b=b):
                known = _is_arbitrary(ctx, a) or _is_arbitrary(ctx, b)
            case Unary(a=a) | Cast(value=a):
                known = a.dtype.is_float or _is_arbitrary(ctx, a)
            case Select(then=then, otherwise=otherwise):
                known = _is_arbitrary(ctx, then) or _is_arbitrary(ctx, otherwise)
            case _:
                known = True
        ctx.arbitrary[expr] = known
    return known


def note_name(ctx: Context, var: Var, value: Expr) -> None:
    """Remember that `var` stands for `value`."""
    if var.dtype.is_int and var.dtype.lanes == 1 and _is_arbitrary(ctx, value):
        if var not in ctx.given:
            ctx.given.add(var)
            ctx.arbitrary.clear()  # of expressions that were asked for before
        ctx.reaches[var] = reach(ctx, value)


def reach(ctx: Context, expr: Expr) -> Reach:
    """Return the smallest and largest value that an integer or truth value can have."""
    if not expr.dtype.is_int:
        return 0, 1
    least, most = integer_bounds(expr.dtype)
    found: Reach | None = None
    match expr:
        case Const(value=value):
            return int(value), int(value)
        case Var():
            bounds, known = ctx.env.bounds(expr), ctx.reaches.get(expr, (least, most))
            low = known[0] if bounds.low is None else max(bounds.low, known[0])
            high = known[1] if bounds.high is None else min(bounds.high, known[1])
            return (low, high) if low <= high else known
        case Cast(value=value) if not value.dtype.is_float and not value.dtype.is_handle:
            found = reach(ctx, value)
        case Select(then=then, otherwise=otherwise):
            a, b = reach(ctx, then), reach(ctx, otherwise)
            found = min(a[0], b[0]), max(a[1], b[1])
        case Unary(op=UnaryOp.NEG, a=inner):
            low, high = reach(ctx, inner)
            found = -high, -low
        case Binary(op=op, a=left, b=right) if op in _OPERATIONS:
            found = _OPERATIONS[op](reach(ctx, left), reach(ctx, right))
    return found if found is not None and least <= found[0] and found[1] <= most else (least, most)


def _product(a: Reach, b: Reach) -> Reach:
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def _quotient(a: Reach, b: Reach) -> Reach | None:
    ends = [x // y for x in a for y in b] if b[0] > 0 else []
    return (min(ends), max(ends)) if ends else None


def _remainder(a: Reach, b: Reach) -> Reach | None:
    return (0, b[1] - 1) if b[0] > 0 else None


def _masked(a: Reach, b: Reach) -> Reach | None:
    highs = [x[1] for x in (a, b) if x[0] >= 0]
    return (0, min(highs)) if highs else None


def _shifted_left(a: Reach, b: Reach) -> Reach | None:
    return _product(a, (1 << b[0], 1 << b[1])) if b[0] >= 0 and b[1] < 64 else None


def _shifted(a: Reach, b: Reach) -> Reach | None:
    return _quotient(a, (1 << b[0], 1 << b[1])) if b[0] >= 0 and b[1] < 64 else None


_OPERATIONS: dict[BinaryOp, Callable[[Reach, Reach], Reach | None]] = {
    BinaryOp.ADD: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    BinaryOp.SUB: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    BinaryOp.MUL: _product,
    BinaryOp.FLOORDIV: _quotient,
    BinaryOp.FLOORMOD: _remainder,
    BinaryOp.MIN: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    BinaryOp.MAX: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    BinaryOp.BITAND: _masked,
    BinaryOp.SHL: _shifted_left,
    BinaryOp.SHR: _shifted,
}
WRAPPING = frozenset(_INSTRUCTIONS)
"""Operations that `wrapping` knows."""


def wrapping(ctx: Context, op: BinaryOp, a: PrimExpr, b: PrimExpr, dtype: DType) -> PrimExpr:
    """Return ``a op b`` modulo the width of its type, in an instruction that says nothing more."""
    kind, lanes = scalar_name(a), lanes_of(a)
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        found = _OPERATIONS[op]((int(a.value),) * 2, (int(b.value),) * 2)
        if found is not None:
            return number(wrapped_constant(found[0], dtype), kind)
    name = f"cpu_{_INSTRUCTIONS[op]}_{kind}x{lanes}"
    element = f"i{kind.lstrip('uint')}"
    llvm = element if lanes == 1 else f"<{lanes} x {element}>"
    ctx.helpers[name] = (
        f"define {llvm} @{name}({llvm} %a, {llvm} %b) alwaysinline {{\n"
        f"  %r = {_INSTRUCTIONS[op]} {llvm} %a, %b\n  ret {llvm} %r\n}}\n"
    )
    return tirx.call_pure_extern(with_lanes(kind, lanes), name, a, b)
