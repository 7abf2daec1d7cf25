"""Tile IR expressions as TIR values: scalars, or vectors where they follow a vectorised index."""

from __future__ import annotations

import math

from tile_core.dtypes import DType
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.buffer import static_value
from tile_core.ir.build_expr import as_expr, integer_bounds
from tile_core.ir.expr import (
    AddressOf,
    Binary,
    BinaryOp,
    Bitcast,
    Broadcast,
    Call,
    Cast,
    Const,
    Expr,
    Extent,
    Load,
    Ramp,
    Select,
    Shuffle,
    StringConst,
    Unary,
    UnaryOp,
    Var,
)
from tile_core.ir.extrema import is_extremum_or_nan
from tile_core.ir.intrinsics import Effect, effect_of
from tile_core.ir.node import contains, nodes_of
from tile_cpu.lowering import arithmetic, casts
from tile_cpu.lowering.access import address, load, opaque
from tile_cpu.lowering.calls import emit_call
from tile_cpu.lowering.context import Context, assigned, loaded
from tile_cpu.lowering.division import DIVISIONS
from tile_cpu.lowering.index_set_splitting import settled
from tile_cpu.lowering.overflow import may_wrap, wrapping
from tile_cpu.lowering.types import lanes_of, number, scalar_name, together, value_type
from tile_cpu.lowering.vector_access import refuse_speculation, vector_load
from tile_cpu.tir.build import llvm_pure, prim, seq, with_lanes
from tile_cpu.tir.nodes import Cast as TirCast
from tile_cpu.tir.nodes import IfThenElse, PrimExpr, StringImm, tirx
from tile_cpu.tir.nodes import Ramp as TirRamp
from tile_cpu.tir.nodes import Select as TirSelect
from tile_cpu.tir.nodes import Stmt as TirStmt


def value(ctx: Context, expr: Expr) -> PrimExpr:
    """Return `expr` in its value type; each node is computed once per statement."""
    known = _known(ctx, expr)
    if known is None:
        known = _emit(ctx, expr)
        if _is_rounding(expr):
            known = ctx.keep(casts.rounded(ctx, known, expr.dtype))
        ctx.frame.known[expr] = known
    return known


def unrounded(ctx: Context, expr: Expr) -> PrimExpr:
    """Return `expr` as `value` does, for a place that rounds it to its type anyway."""
    known = _known(ctx, expr)
    if known is None:
        known = _emit(ctx, expr) if _is_rounding(expr) else value(ctx, expr)
    return known


def _known(ctx: Context, expr: Expr) -> PrimExpr | None:
    known = ctx.frame.find(expr)
    return ctx.hoisted.get(expr) if known is None else known


def _is_rounding(expr: Expr) -> bool:
    """Whether a result of float32 arithmetic may be no value of the short float type it has."""
    if not expr.dtype.is_float or expr.dtype.bits > 16:
        return False
    match expr:
        case Binary(op=op):
            return op not in (BinaryOp.MIN, BinaryOp.MAX)
        case Call(function=function):
            return effect_of(function) == Effect.NONE
    return False


def index(ctx: Context, extent: Extent, dtype: str = "int32") -> PrimExpr:
    """Return an integer as a TIR value of type `dtype`."""
    fixed = static_value(extent)
    if fixed is not None:
        return number(fixed, dtype)
    result = value(ctx, as_expr(extent))
    if scalar_name(result) == dtype:
        return result
    return TirCast(prim(dtype, lanes_of(result)), result)


def _emit(ctx: Context, expr: Expr) -> PrimExpr:
    match expr:
        case Const(value=constant, dtype=dtype):
            return _constant(constant, dtype)
        case StringConst(value=text):
            return StringImm(text)
        case Var():
            return _variable(ctx, expr)
        case Binary(op=op) if op.is_logical:
            return _logical(ctx, expr)
        case Binary(op=op, a=a, b=b):
            left, right = value(ctx, a), value(ctx, b)
            if op is BinaryOp.DIV and lanes_of(left) > 1 and lanes_of(right) == 1:
                return arithmetic.divided_by_scalar(ctx, left, right)
            left, right = together(left, right)
            if may_wrap(ctx, expr):
                return wrapping(ctx, op, left, right, a.dtype)
            safe = op not in DIVISIONS or _never_traps(ctx, b)
            return arithmetic.binary(ctx, op, left, right, a.dtype, divisor_is_safe=safe)
        case Unary(op=UnaryOp.NOT, a=a):
            return _negation(ctx, a, value(ctx, a))
        case Unary(op=UnaryOp.NEG, a=a) if may_wrap(ctx, expr):
            inner = value(ctx, a)
            zero = number(0, scalar_name(inner), lanes_of(inner))
            return wrapping(ctx, BinaryOp.SUB, zero, inner, a.dtype)
        case Unary(op=op, a=a):
            return arithmetic.unary(ctx, op, value(ctx, a), a.dtype)
        case Select():
            return _select(ctx, expr)
        case Cast(value=inner, dtype=dtype, saturate=saturate):
            return casts.convert(ctx, value(ctx, inner), inner.dtype, dtype, saturate=saturate)
        case Bitcast(value=inner, dtype=dtype):
            return casts.bitcast(ctx, value(ctx, inner), inner.dtype, dtype)
        case Load():
            return _load(ctx, expr)
        case AddressOf(buffer=buffer, indices=indices):
            return address(ctx, buffer, indices)
        case Call():
            return emit_call(ctx, expr)
        case Ramp() | Broadcast() | Shuffle():
            raise UnsupportedOnTarget(
                "a vector value is used where the CPU backend expects one element",
                span=expr.span,
                hint="store vectors with a vector index, or write a T.vectorized loop",
            )
    raise UnsupportedOnTarget(f"the CPU backend does not know {type(expr).__name__}")


def _load(ctx: Context, expr: Load) -> PrimExpr:
    """Return the vector that the lanes load, or the one element."""
    if ctx.speculative is not None:
        refuse_speculation(ctx, expr)
    wide = None if ctx.lane is None else vector_load(ctx, expr)
    return load(ctx, expr) if wide is None else wide


def _never_traps(ctx: Context, divisor: Expr) -> bool:
    """Whether a divisor is neither zero nor -1, here and wherever the machine runs ahead.

    What a condition of the expression tells does not count: both of its sides may be computed.
    Bounds are those of exact arithmetic, so a product must fit its type.
    """
    if isinstance(divisor, Const):
        return divisor.value not in (0, -1)
    bounds = (ctx.ahead_of_conditions or ctx.env).bounds(divisor)
    if bounds.low is None or bounds.low <= 0:
        return False
    is_product = any(n.op in _PRODUCTS for n in nodes_of(divisor, Binary))
    return not is_product or (
        bounds.high is not None and bounds.high <= integer_bounds(divisor.dtype)[1]
    )


_PRODUCTS = frozenset({BinaryOp.MUL, BinaryOp.SHL})


def _constant(constant: int | float, dtype: DType) -> PrimExpr:
    if dtype.is_float and dtype.bits <= 16:
        constant = float(dtype.numpy().type(constant))
    kind = value_type(dtype)
    # TVM takes -0.0 for 0.0.
    if dtype.is_float and constant == 0 and math.copysign(1, constant) == -1:
        bits = 64 if kind == "float64" else 32
        return tirx.reinterpret(prim(kind), number(-(1 << (bits - 1)), f"int{bits}"))
    return number(constant, kind)


def _variable(ctx: Context, var: Var) -> PrimExpr:
    lane = ctx.lane
    if lane is not None and var is lane.var:
        base = lane.base
        return TirRamp(base, number(1, scalar_name(base)), lane.lanes)
    return ctx.vars[var]


def _logical(ctx: Context, expr: Binary) -> PrimExpr:
    """Emit `and` and `or`; the right side is evaluated only if the left does not decide."""
    a = value(ctx, expr.a)
    join = tirx.And if expr.op is BinaryOp.AND else tirx.Or
    outer_speculative = ctx.speculative
    if lanes_of(a) > 1 and ctx.speculative is None:
        ctx.speculative = ctx.env
    with ctx.branch() as statements, ctx.condition():
        b = value(ctx, expr.b)
    ctx.speculative = outer_speculative
    if not statements and is_free(expr.b):
        return join(*together(a, b))
    if lanes_of(a) > 1 or lanes_of(b) > 1:
        for statement in statements:  # lanes that do not count load safely, see `access`
            ctx.run(statement)
        return join(*together(a, b))
    flag = ctx.cell("int32", "flag")
    ctx.run(assigned(flag, TirCast(prim("int32"), a)))
    decide = seq(statements, assigned(flag, TirCast(prim("int32"), b)))
    # Asking the variable, not `a`: TVM would negate a comparison of floats wrongly.
    undecided = tirx.NE if expr.op is BinaryOp.AND else tirx.EQ
    ctx.run(IfThenElse(undecided(loaded(flag), number(0, "int32")), decide, None))
    return tirx.NE(loaded(flag), number(0, "int32"))


def is_free(expr: Expr) -> bool:
    """Whether evaluating `expr` needlessly costs little and cannot go wrong."""
    return not contains(expr, Load, Call)


def _select(ctx: Context, expr: Select) -> PrimExpr:
    """Emit a choice; as control flow where a side must not, or need not, be evaluated."""
    holds = None if ctx.lane is None else settled(ctx.env, expr.cond)
    if holds is not None:
        return value(ctx, expr.then if holds else expr.otherwise)
    cond = value(ctx, expr.cond)
    then, then_statements = _side(ctx, expr, cond, holds=True)
    otherwise, else_statements = _side(ctx, expr, cond, holds=False)
    statements = then_statements or else_statements
    if lanes_of(cond) > 1 or not statements:
        for statement in (*then_statements, *else_statements):
            ctx.run(statement)
        return _fenced(ctx, expr, TirSelect(*together(cond, then, otherwise)))
    then, otherwise = together(then, otherwise)
    kind = scalar_name(then)
    stored = "int32" if kind == "bool" else kind
    cell = ctx.cell(f"{stored}x{lanes_of(then)}" if lanes_of(then) > 1 else stored, "chosen")

    def keep(side: PrimExpr) -> PrimExpr:
        return TirCast(prim("int32", lanes_of(side)), side) if kind == "bool" else side

    ctx.run(
        IfThenElse(
            cond,
            seq(then_statements, assigned(cell, keep(then))),
            seq(else_statements, assigned(cell, keep(otherwise))),
        )
    )
    result = loaded(cell)
    return casts.truth(ctx, result) if kind == "bool" else _fenced(ctx, expr, result)


def _fenced(ctx: Context, choice: Select, chosen: PrimExpr) -> PrimExpr:
    """Hide how a float was chosen: TVM would take ``x - x`` for 0, LLVM one extremum for another.

    What hides a vector from LLVM is no instruction. LLVM makes no vectors of that, so for one
    element, of which it may make some, it is one.
    """
    if not choice.dtype.is_float:
        return chosen
    kept = ctx.keep(chosen)
    if not is_extremum_or_nan(choice):
        return kept
    kind, lanes = scalar_name(chosen), lanes_of(chosen)
    if lanes == 1:
        return opaque(ctx, kept)
    return ctx.keep(llvm_pure(with_lanes(kind, lanes), "llvm.arithmetic.fence", kept))


def _side(
    ctx: Context, expr: Select, cond: PrimExpr, *, holds: bool
) -> tuple[PrimExpr, list[TirStmt]]:
    """Return one side of a choice, and the statements that compute it.

    A condition that differs between lanes masks what its sides load: both run for all lanes.
    """
    side = expr.then if holds else expr.otherwise
    outer = ctx.env, ctx.speculative, ctx.lane_mask
    with ctx.branch() as statements, ctx.condition():
        ctx.env = ctx.env.assuming(expr.cond, holds=holds)
        if lanes_of(cond) > 1:
            ctx.speculative = outer[1] or outer[0]
            if any(n.buffer.scope.is_global for n in nodes_of(side, Load)):
                mask = cond if holds else _negation(ctx, expr.cond, cond)
                ctx.lane_mask = mask if outer[2] is None else tirx.And(outer[2], mask)
        result = value(ctx, side)
    ctx.env, ctx.speculative, ctx.lane_mask = outer
    return result, statements


def _negation(ctx: Context, condition: Expr, truth: PrimExpr) -> PrimExpr:
    """Return the negation of `truth`, the value of `condition`."""
    floats = any(n.dtype.is_float for n in nodes_of(condition, Expr))
    return arithmetic.negated(ctx, truth) if floats else tirx.Not(truth)
