"""Scalar and vector expressions, evaluated for many lanes at a time with NumPy.

Each operation gives exactly the value the language defines for its element type: integers
wrap, 16-bit floats are rounded after every operation, functions are computed in float64 and
rounded once. Only active lanes can cause an error; the side of a lazy select or of a logical
operation that a lane does not need is not evaluated for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tile_core.errors import InternalError, UnsupportedOnTarget
from tile_core.interp import access, arithmetic, atomics, calls
from tile_core.interp.execution_state import Lanes
from tile_core.interp.values import Array, convert, element_bits, from_bytes, to_bytes
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
    Load,
    Ramp,
    Select,
    Shuffle,
    StringConst,
    Unary,
    Var,
)
from tile_core.ir.intrinsics import Effect, effect_of


def evaluate(expr: Expr, lanes: Lanes) -> Array:
    """Return the values of `expr`: (lanes or 1,), with a trailing axis for vector types."""
    handler = _HANDLERS.get(type(expr))
    if handler is None:
        raise InternalError(f"cannot evaluate {type(expr).__name__}", span=expr.span or lanes.span)
    return handler(expr, lanes)


def _var(expr: Var, lanes: Lanes) -> Array:
    value = lanes.env.get(expr)
    if value is None:
        raise InternalError(f"variable {expr.name!r} has no value", span=expr.span or lanes.span)
    return value


def _aligned(a: Array, b: Array) -> tuple[Array, Array]:
    """Let a scalar per lane stand next to a vector per lane."""
    if a.ndim < b.ndim:
        return a[:, None], b
    if b.ndim < a.ndim:
        return a, b[:, None]
    return a, b


def _binary(expr: Binary, lanes: Lanes) -> Array:
    if expr.op.is_logical:
        return _logical(expr, lanes)
    a, b = _aligned(evaluate(expr.a, lanes), evaluate(expr.b, lanes))
    mask = lanes.mask if len(a) == lanes.count or len(b) == lanes.count else None
    return arithmetic.binary(expr.op, a, b, expr.dtype, mask, expr.span or lanes.span)


def _logical(expr: Binary, lanes: Lanes) -> Array:
    a = evaluate(expr.a, lanes)
    undecided = a if expr.op is BinaryOp.AND else ~a
    if a.ndim > 1:
        b = evaluate(expr.b, lanes)
        return a & b if expr.op is BinaryOp.AND else a | b
    if len(a) == 1:
        return evaluate(expr.b, lanes) if undecided[0] else a
    rest = lanes.where(undecided)
    if not rest.any():
        return a
    with lanes.only(rest):
        b = evaluate(expr.b, lanes)
    return np.where(undecided, b, a)


def _select(expr: Select, lanes: Lanes) -> Array:
    cond = evaluate(expr.cond, lanes)
    if not expr.lazy or cond.ndim > 1:
        return _choose(cond, evaluate(expr.then, lanes), evaluate(expr.otherwise, lanes))
    if len(cond) == 1:
        return evaluate(expr.then if cond[0] else expr.otherwise, lanes)
    taken, rest = lanes.where(cond), lanes.where(~cond)
    then = otherwise = None
    if taken.any():
        with lanes.only(taken):
            then = evaluate(expr.then, lanes)
    if rest.any():
        with lanes.only(rest):
            otherwise = evaluate(expr.otherwise, lanes)
    if then is None or otherwise is None:
        only = otherwise if then is None else then
        assert only is not None
        return only
    return _choose(cond, then, otherwise)


def _choose(cond: Array, then: Array, otherwise: Array) -> Array:
    if cond.ndim < max(then.ndim, otherwise.ndim):
        cond = cond[:, None]
    return np.where(cond, then, otherwise)


def _cast(expr: Cast, lanes: Lanes) -> Array:
    value = evaluate(expr.value, lanes)
    return convert(value, expr.value.dtype, expr.dtype, saturate=expr.saturate)


def _bitcast(expr: Bitcast, lanes: Lanes) -> Array:
    value = evaluate(expr.value, lanes)
    return from_bytes(to_bytes(value, expr.value.dtype), expr.dtype)


def _load(expr: Load, lanes: Lanes) -> Array:
    indices = [evaluate(i, lanes) for i in expr.indices]
    return access.load(lanes, expr.buffer, indices, expr)


def _address(expr: AddressOf, lanes: Lanes) -> Array:
    place = lanes.place(expr.buffer)
    offsets, _ = place.locate([evaluate(i, lanes) for i in expr.indices])
    start = place.storage.raw.ctypes.data
    return (start + offsets * element_bits(expr.buffer.dtype) // 8).astype(np.uint64)


def _ramp(expr: Ramp, lanes: Lanes) -> Array:
    base, stride = evaluate(expr.base, lanes), evaluate(expr.stride, lanes)
    steps = np.arange(expr.lanes).astype(base.dtype)
    result: Array = base[:, None] + stride[:, None] * steps
    return result


def _shuffle(expr: Shuffle, lanes: Lanes) -> Array:
    vectors = [evaluate(v, lanes) for v in expr.vectors]
    columns = [v if v.ndim > 1 else v[:, None] for v in vectors]
    rows = max(len(c) for c in columns)
    joined = np.concatenate([np.broadcast_to(c, (rows, c.shape[1])) for c in columns], axis=1)
    picked = joined[:, list(expr.picks)]
    return picked if len(expr.picks) > 1 else picked[:, 0]


def _call(expr: Call, lanes: Lanes) -> Array:
    if expr.function.startswith("extern:"):
        return _extern(expr, lanes)
    if expr.function == "block_rank_in_cluster":
        return np.array([0 if lanes.block is None else lanes.block.rank], np.int32)
    effect = effect_of(expr.function)
    if effect & Effect.ATOMIC:
        return atomics.element(expr, lanes, evaluate)
    if effect & Effect.WARP:
        return calls.collective(expr, [evaluate(a, lanes) for a in expr.args], lanes)
    if effect & Effect.BLOCK:
        return lanes.votes[expr]
    if effect & Effect.STATE:
        return calls.random(expr, [evaluate(a, lanes) for a in expr.args], lanes)
    if effect & Effect.OUTPUT:
        return calls.printf(expr, lanes, evaluate)
    if expr.function == "dp4a":
        return calls.dp4a(expr, lanes, evaluate)
    return calls.pure(expr, [evaluate(a, lanes) for a in expr.args])


def _extern(expr: Call, lanes: Lanes) -> Array:
    name = expr.function.removeprefix("extern:")
    function = lanes.machine.options.externs.get(name)
    if function is None:
        raise UnsupportedOnTarget(
            f"the interpreter cannot call the C function {name!r}",
            span=expr.span or lanes.span,
            hint=f"give it a Python function: InterpretOptions(externs={{{name!r}: ...}})",
        )
    return calls.extern(expr, function, lanes, evaluate)


_HANDLERS: dict[type[Any], Callable[[Any, Lanes], Array]] = {
    Const: lambda expr, lanes: lanes.machine.constant(expr),
    Var: _var,
    Binary: _binary,
    Unary: lambda e, lanes: arithmetic.unary(e.op, evaluate(e.a, lanes), e.dtype),
    Select: _select,
    Cast: _cast,
    Bitcast: _bitcast,
    Load: _load,
    AddressOf: _address,
    Ramp: _ramp,
    Broadcast: lambda e, lanes: np.repeat(evaluate(e.value, lanes)[:, None], e.lanes, axis=1),
    Shuffle: _shuffle,
    Call: _call,
    StringConst: lambda expr, lanes: np.zeros(1, np.uint64),
}
