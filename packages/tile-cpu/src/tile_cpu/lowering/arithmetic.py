"""Operations of TIR values, with the exact meaning tile IR gives them.

TVM's simplifier applies integer algebra to floats: it would turn ``x - x`` into 0 and
``(x + c) - c`` into ``x``. Every float result therefore goes through a variable, which the
simplifier does not look into and LLVM removes.
"""

from __future__ import annotations

import struct

from tile_core.dtypes import DType, dtype_of
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.expr import BinaryOp, UnaryOp
from tile_cpu.llvm_memory_access import reinterpret
from tile_cpu.lowering.casts import wrapped
from tile_cpu.lowering.context import Context, assigned, loaded
from tile_cpu.lowering.division import DIVISIONS, divide
from tile_cpu.lowering.types import is_zero, lanes_of, number, scalar_name, spread
from tile_cpu.tir.build import extern, llvm_pure, prim, seq, with_lanes
from tile_cpu.tir.nodes import Broadcast, FloatImm, IfThenElse, IntImm, PrimExpr, Select, tirx

_COMPARE = {
    BinaryOp.EQ: tirx.EQ,
    BinaryOp.NE: tirx.NE,
    BinaryOp.LT: tirx.LT,
    BinaryOp.LE: tirx.LE,
    BinaryOp.GT: tirx.GT,
    BinaryOp.GE: tirx.GE,
}
_INTEGER = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.MIN: tirx.Min,
    BinaryOp.MAX: tirx.Max,
    BinaryOp.BITAND: tirx.bitwise_and,
    BinaryOp.BITOR: tirx.bitwise_or,
    BinaryOp.BITXOR: tirx.bitwise_xor,
    BinaryOp.SHL: tirx.shift_left,
    BinaryOp.SHR: tirx.shift_right,
}
_FLOAT = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.DIV: lambda a, b: a / b,
}
_MAY_WRAP = frozenset({BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.SHL})


def binary(
    ctx: Context,
    op: BinaryOp,
    a: PrimExpr,
    b: PrimExpr,
    dtype: DType,
    *,
    divisor_is_safe: bool = False,
) -> PrimExpr:
    """Return ``a op b`` for operands of tile type `dtype` with equally many lanes."""
    if dtype.is_bool:
        return _on_bools(ctx, op, a, b)
    if dtype.is_float:
        return _on_floats(ctx, op, a, b)
    if op.is_comparison:
        return _COMPARE[op](_hidden_limit(ctx, a), _hidden_limit(ctx, b))
    if op in DIVISIONS:
        return wrapped(divide(ctx, op, a, b, is_safe=divisor_is_safe), dtype)
    result = _INTEGER[op](a, b)
    return wrapped(result, dtype) if op in _MAY_WRAP else result


def _hidden_limit(ctx: Context, value: PrimExpr) -> PrimExpr:
    """Hide constants near the limits of their type from the simplifier.

    It moves constants to the other side without asking whether that overflows: ``n <= LOW`` is
    true for every n then.
    """
    constant = _element(value)
    if not isinstance(constant, IntImm):
        return value
    is_large = abs(int(constant.value)) >> (dtype_of(scalar_name(value)).bits - 2)
    return ctx.keep(value) if is_large else value


def _element(value: PrimExpr) -> PrimExpr:
    """Return what all lanes of a vector are, if that is one value."""
    return value.value if isinstance(value, Broadcast) else value


def _on_bools(ctx: Context, op: BinaryOp, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    match op:
        case BinaryOp.BITAND | BinaryOp.MIN | BinaryOp.AND:
            return tirx.And(a, b)
        case BinaryOp.BITOR | BinaryOp.MAX | BinaryOp.OR:
            return tirx.Or(a, b)
        case BinaryOp.BITXOR | BinaryOp.NE:
            return tirx.Or(tirx.And(a, negated(ctx, b)), tirx.And(negated(ctx, a), b))
        case BinaryOp.EQ:
            return tirx.Or(tirx.And(a, b), tirx.And(negated(ctx, a), negated(ctx, b)))
        case BinaryOp.LT | BinaryOp.GT:
            low, high = (a, b) if op is BinaryOp.LT else (b, a)
            return tirx.And(negated(ctx, low), high)
        case BinaryOp.LE | BinaryOp.GE:
            low, high = (a, b) if op is BinaryOp.LE else (b, a)
            return tirx.Or(negated(ctx, low), high)
    raise UnsupportedOnTarget(
        f"{op.value!r} of two truth values has no meaning", hint="convert them: T.cast(x, 'int32')"
    )


def _on_floats(ctx: Context, op: BinaryOp, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    a, b = _opaque(ctx, a, b)
    if op is BinaryOp.NE:
        return negated(ctx, tirx.EQ(a, b))  # TVM's own comparison is false for NaN
    if op.is_comparison:
        return _COMPARE[op](a, b)
    if op in _FLOAT:
        return ctx.keep(_FLOAT[op](a, b))
    if op is BinaryOp.MIN or op is BinaryOp.MAX:
        return ctx.keep(extremum(op, a, b))
    quotient = ctx.keep(a / b)
    whole = ctx.keep(tirx.floor(quotient) if op in _FLOORS else tirx.trunc(quotient))
    if op is BinaryOp.FLOORDIV or op is BinaryOp.TRUNCDIV:
        return whole
    product = ctx.keep(whole * b)
    return ctx.keep(a - product)


_FLOORS = frozenset({BinaryOp.FLOORDIV, BinaryOp.FLOORMOD})


def _opaque(ctx: Context, a: PrimExpr, b: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """Hide zeros, and that both operands are one value, from the simplifier."""
    a, b = (ctx.keep(x) if is_zero(_element(x)) else x for x in (a, b))
    return a, (ctx.keep(b) if a.same_as(b) else b)


_EASY = (2.0**-60, 2.0**60)
"""Divisors of ordinary size, for which a reciprocal loses nothing."""


def divided_by_scalar(ctx: Context, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """Return the vector `a` over the scalar `b`, correctly rounded, without dividing vectors.

    The quotient with the reciprocal is corrected by its remainder, which gives the nearest
    float unless it is subnormal, and then at most its neighbour. Where the correction fails
    (infinities, NaN) the first quotient is the answer. Divisors of unusual size are divided
    by plainly.
    """
    lanes, kind = lanes_of(a), scalar_name(a)
    if kind != "float32":
        return _on_floats(ctx, BinaryOp.DIV, a, spread(b, lanes))
    b = ctx.keep(b)
    bits = tirx.bitwise_and(reinterpret(b, "uint32"), number(0x7FFFFFFF, "uint32"))
    low, high = (number(_float_bits(x), "uint32") for x in _EASY)
    easy = tirx.And(tirx.GE(bits, low), tirx.LE(bits, high))
    reciprocal = ctx.keep(number(1.0, kind) / b)
    cell = ctx.cell(with_lanes(kind, lanes), "quotient")
    with ctx.branch() as fast:
        r, d = spread(reciprocal, lanes), spread(b, lanes)
        first = ctx.keep(a * r)
        minus = ctx.keep(first * number(-1.0, kind, lanes))
        rest = ctx.keep(llvm_pure(with_lanes(kind, lanes), "llvm.fma", minus, d, a))
        better = ctx.keep(llvm_pure(with_lanes(kind, lanes), "llvm.fma", rest, r, first))
        ctx.run(assigned(cell, Select(tirx.EQ(better, ctx.keep(better)), better, first)))
    with ctx.branch() as plain:
        ctx.run(assigned(cell, a / spread(b, lanes)))
    ctx.run(IfThenElse(easy, seq(fast), seq(plain)))
    return loaded(cell)


def _float_bits(value: float) -> int:
    return int.from_bytes(struct.pack("<f", value), "little")


def extremum(op: BinaryOp, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """Return the smaller or larger float; of a number and NaN the number."""
    if isinstance(a, FloatImm):
        a, b = b, a
    if isinstance(b, FloatImm) and b.value == b.value:
        # The instruction returns its second operand if the first is NaN.
        return (tirx.Min if op is BinaryOp.MIN else tirx.Max)(a, b)
    name = "min" if op is BinaryOp.MIN else "max"
    kind, lanes = scalar_name(a), lanes_of(a)
    if lanes == 1:
        return extern(kind, f"tile_{name}_{kind.replace('float', 'f')}", a, b)
    return llvm_pure(with_lanes(kind, lanes), f"llvm.{name}num", a, b)


def negated(ctx: Context, truth: PrimExpr) -> PrimExpr:
    """Return ``not truth`` where that may compare floats.

    TVM would turn ``not a < b`` into ``a >= b``, which differs if one of them is NaN.
    """
    lanes = lanes_of(truth)
    flag = ctx.keep(tirx.Cast(prim("int32", lanes), truth))
    return tirx.EQ(flag, number(0, "int32", lanes))


def unary(ctx: Context, op: UnaryOp, a: PrimExpr, dtype: DType) -> PrimExpr:
    """Return ``-a`` or ``~a``."""
    lanes = lanes_of(a)
    if op is UnaryOp.BITNOT:
        return wrapped(tirx.bitwise_not(a), dtype)
    if dtype.is_float:
        return ctx.keep(a * number(-1.0, scalar_name(a), lanes))
    return wrapped(number(0, scalar_name(a), lanes) - a, dtype)
