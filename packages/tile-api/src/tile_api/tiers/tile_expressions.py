"""Expressions and regions of tile IR in the spelling of the language of tiles."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence

from tile_api.tiers.python_expressions import PythonExpressions, called, number
from tile_core.dtypes import DType
from tile_core.ir.buffer import Region, static_value
from tile_core.ir.expr import (
    AddressOf,
    Binary,
    BinaryOp,
    Broadcast,
    Call,
    Const,
    Expr,
    Extent,
    Ramp,
    Select,
    StringConst,
)
from tile_core.ir.intrinsics import INTRINSICS

_LOGICAL = {BinaryOp.AND: "And", BinaryOp.OR: "Or"}
_ATOMICS = ("atomic_add", "atomic_max", "atomic_min", "atomic_or")
_RELAXED = "relaxed"


class TileText(PythonExpressions):
    """What Python makes of the text is traced: numbers take the type of what is beside them."""

    program = "the language of tiles"

    def not_finite(self, value: float, dtype: DType) -> ast.expr:
        """Return an infinity; there is no name for what is no number."""
        if value != value:
            raise self.no_form(f"{value} of {dtype}")
        made = called(("infinity",), ast.Constant(str(dtype)))
        return ast.UnaryOp(ast.USub(), made) if value < 0 else made

    def operands(self, expr: Binary) -> tuple[ast.expr, ast.expr]:
        """Return both sides; a number beside a value of its type needs no type of its own."""
        a, b = self.of(expr.a), self.of(expr.b)
        if isinstance(expr.a, Const) and expr.op.is_comparison:  # Python would turn it around
            return called((str(expr.a.dtype),), _plain(expr.a)), b
        if isinstance(expr.b, Const) and not isinstance(expr.a, Const) and _is_bare(expr.b):
            b = _plain(expr.b) if expr.a.dtype == expr.b.dtype else b
        return a, b

    def logical(self, expr: Binary) -> ast.expr:
        """Return a conjunction or disjunction, of both sides."""
        return called((_LOGICAL[expr.op],), self.of(expr.a), self.of(expr.b))

    def negation(self, operand: ast.expr) -> ast.expr:
        """Return what is true where `operand` is not."""
        return called(("Not",), operand)

    def _select(self, expr: Select) -> ast.expr:
        cond, then, otherwise = map(self.of, (expr.cond, expr.then, expr.otherwise))
        return called(("if_then_else" if expr.lazy else "Select",), cond, then, otherwise)

    def _ramp(self, expr: Ramp) -> ast.expr:
        base, stride = self.of(expr.base), self.of(expr.stride)
        return called(("Ramp",), base, stride, number(expr.lanes))

    def _broadcast(self, expr: Broadcast) -> ast.expr:
        return called(("Broadcast",), self.of(expr.value), number(expr.lanes))

    def _addressof(self, expr: AddressOf) -> ast.expr:
        place = self.element(expr.buffer, expr.indices)
        return called(("access_ptr",), place, ast.Constant(expr.access))

    def _call(self, expr: Call) -> ast.expr:
        if expr.function not in INTRINSICS:
            raise self.no_form(f"a call of {expr.function}", expr)
        return called((expr.function,), *map(self.of, expr.args))

    def atomic(self, call: Expr, *, is_read: bool) -> ast.expr | None:
        """Return the update of an element, None for what is none; `is_read`: with its result."""
        if not isinstance(call, Call) or call.function not in _ATOMICS:
            return None
        target, value, order = call.args
        if not isinstance(target, AddressOf) or not isinstance(order, StringConst):
            raise self.no_form(f"a call of {call.function}", call)
        words: dict[str, object] = {} if order.value == _RELAXED else {"memory_order": order.value}
        words |= {"return_prev": True} if is_read else {}
        place = self.element(target.buffer, target.indices)
        return called((call.function,), place, self.of(value), **words)

    def region(self, region: Region) -> str:
        """Return a region as a tile operator takes it: a name, a slice, or a first element."""
        name = self.named(region.buffer)
        if region.is_element:
            return f"{name}[{', '.join(map(self.written, region.starts))}]"
        if region.is_whole:
            return name
        inside = map(self._span, region.starts, region.extents)
        return f"{name}[{', '.join(inside)}]"

    def _span(self, start: Extent, extent: Extent) -> str:
        first, count = static_value(start), static_value(extent)
        if first is not None and count is not None:
            return f"{first}:{first + count}"
        begin = self.written(start)
        if first == 0:
            return f"0:{self.written(extent)}"
        told = self.written(extent)
        if not isinstance(extent, int) and not told.isidentifier():
            told = f"({told})"
        return f"{begin} : {begin} + {told}"

    def shape(self, extents: Sequence[Extent]) -> str:
        """Return extents as a tuple."""
        inside = ", ".join(map(self.written, extents))
        return f"({inside},)" if len(extents) == 1 else f"({inside})"


def _is_bare(expr: Const) -> bool:
    """Tell whether a number takes the type of what is beside it; small integers become int32."""
    dtype = expr.dtype
    return (dtype.is_float and math.isfinite(expr.value)) or (dtype.is_int and dtype.bits >= 32)


def _plain(expr: Const) -> ast.expr:
    return number(float(expr.value) if expr.dtype.is_float else int(expr.value))
