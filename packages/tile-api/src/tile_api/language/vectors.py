"""Vectors of lanes, and arithmetic on packed pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tile_api.frontend.values import as_value
from tile_api.language import arithmetic
from tile_api.language.elementary import fma
from tile_api.language.operands import count, dtype_by_name, here, is_number
from tile_core.errors import FrontendTypeError, FrontendValueError
from tile_core.ir import build_expr
from tile_core.ir.expr import Broadcast as BroadcastNode
from tile_core.ir.expr import Expr
from tile_core.ir.expr import Ramp as RampNode
from tile_core.ir.expr import Shuffle as ShuffleNode

__all__ = [
    "abs2", "add2", "broadcast", "extract_lane", "fma2", "max2", "min2", "mul2", "ramp", "sub2",
    "vectorcombine", "vectorhigh", "vectorlow",
]  # fmt: skip


def Ramp(base: Any, stride: Any, lanes: Any) -> Expr:
    """Return the vector ``base, base + stride, …`` of `lanes` elements."""
    lanes = count(lanes, "the number of lanes")
    start = as_value(base)
    _need_scalar(start, "T.Ramp")
    step = build_expr.cast(as_value(stride, start.dtype), start.dtype)
    return start if lanes == 1 else RampNode(start, step, lanes, span=here())


def Broadcast(value: Any, lanes: Any) -> Expr:
    """Return a vector of `lanes` copies of `value`."""
    lanes = count(lanes, "the number of lanes")
    expr = as_value(value)
    _need_scalar(expr, "T.Broadcast")
    return expr if lanes == 1 else BroadcastNode(expr, lanes, span=here())


def Shuffle(vectors: Sequence[Any], indices: Sequence[Any]) -> Expr:
    """Return the lanes `indices` of the concatenation of `vectors`.

    Raises
    ------
    FrontendValueError
        If an index leaves the lanes, or there is none.
    """
    parts = tuple(as_value(v) for v in vectors)
    picks = tuple(count(i, "a lane", least=0) for i in indices)
    total = sum(p.dtype.lanes for p in parts)
    if not parts or not picks or max(picks) >= total:
        told = f"T.Shuffle picks lanes {list(picks)} out of {total}"
        raise FrontendValueError(told, span=here(), hint="number the lanes of all vectors from 0")
    kinds = {str(p.dtype.scalar) for p in parts}
    if len(kinds) > 1:
        raise FrontendTypeError(
            f"T.Shuffle mixes element types: {', '.join(sorted(kinds))}",
            span=here(),
            hint="convert the vectors to one type with T.cast",
        )
    return ShuffleNode(parts, picks, span=here())


def extract_lane(vector: Any, lane: Any) -> Expr:
    """Return one lane of a vector as a scalar; `lane` is known at compile time.

    Raises
    ------
    FrontendValueError
        If there is no such lane.
    """
    expr, number = as_value(vector), count(lane, "a lane", least=0)
    if number >= expr.dtype.lanes:
        told = f"lane {number} of {expr.dtype}, which has lanes 0 to {expr.dtype.lanes - 1}"
        raise FrontendValueError(told, span=here(), hint="lanes are counted from 0")
    return lane_of(expr, number)


def lane_of(vector: Expr, lane: int) -> Expr:
    """Return one lane, without the vector where it was packed from scalars."""
    if isinstance(vector, ShuffleNode) and all(v.dtype.lanes == 1 for v in vector.vectors):
        return vector.vectors[vector.picks[lane]]
    if isinstance(vector, BroadcastNode):
        return vector.value
    if isinstance(vector, RampNode) and vector.dtype.is_int:
        return vector.base + vector.stride * lane
    return vector if vector.dtype.lanes == 1 else ShuffleNode((vector,), (lane,), span=here())


@dtype_by_name
def vectorlow(dtype: Any, vec: Any = None) -> Expr:
    """Return the first half of the lanes of `vec`; the dtype may be left out."""
    vector = dtype if vec is None else vec
    half = as_value(vector).dtype.lanes // 2
    return Shuffle([vector], range(half))


@dtype_by_name
def vectorhigh(dtype: Any, vec: Any = None) -> Expr:
    """Return the second half of the lanes of `vec`; the dtype may be left out."""
    vector = dtype if vec is None else vec
    lanes = as_value(vector).dtype.lanes
    return Shuffle([vector], range(lanes // 2, lanes))


@dtype_by_name
def vectorcombine(dtype: Any, vec1: Any, vec2: Any = None) -> Expr:
    """Return the lanes of `vec1` followed by those of `vec2`; the dtype may be left out."""
    low, high = (dtype, vec1) if vec2 is None else (vec1, vec2)
    lanes = as_value(low).dtype.lanes + as_value(high).dtype.lanes
    return Shuffle([low, high], range(lanes))


def _need_scalar(expr: Expr, what: str) -> None:
    if expr.dtype.lanes > 1:
        told = f"{what} needs a scalar, got {expr.dtype}"
        raise FrontendTypeError(told, span=here(), hint="extract a lane with T.extract_lane(v, i)")


def _packed(name: str, arity: int, compute: Callable[..., Any], meaning: str) -> Callable[..., Any]:
    def packed(*values: Any) -> Expr:
        pairs = [v if is_number(v) else as_value(v) for v in values]
        for pair in pairs:
            if is_number(pair) or pair.dtype.lanes != 2:
                got = repr(pair) if is_number(pair) else f"a value of dtype {pair.dtype}"
                raise FrontendTypeError(
                    f"T.{name} works on pairs such as float16x2, got {got}",
                    span=here(),
                    hint="pack two values: T.float16x2(a, b)",
                )
        result: Expr = compute(*pairs)
        return result

    def one(x: Any) -> Expr:
        return packed(x)

    def two(x: Any, y: Any) -> Expr:
        return packed(x, y)

    def three(x: Any, y: Any, z: Any) -> Expr:
        return packed(x, y, z)

    function: Callable[..., Any] = (one, two, three)[arity - 1]
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return {meaning} of pairs such as float16x2, lane by lane."
    return function


add2 = _packed("add2", 2, lambda a, b: a + b, "the sum")
sub2 = _packed("sub2", 2, lambda a, b: a - b, "the difference")
mul2 = _packed("mul2", 2, lambda a, b: a * b, "the product")
fma2 = _packed("fma2", 3, fma, "``a * b + c``, rounded once,")
max2 = _packed("max2", 2, arithmetic.max, "the larger value")
min2 = _packed("min2", 2, arithmetic.min, "the smaller value")
abs2 = _packed("abs2", 1, arithmetic.abs, "the absolute value")


ramp = Ramp
broadcast = Broadcast
