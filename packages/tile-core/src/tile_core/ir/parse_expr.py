"""Read back the scalar expressions and regions that `print_expr` writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import field

from tile_core.dtypes import FORMATS, DType, dtype_of
from tile_core.ir.buffer import Buffer, Region
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
from tile_core.ir.intrinsics import INTRINSICS
from tile_core.ir.lexer import Cursor
from tile_core.ir.print_expr import PRECEDENCE, UNARY_STRENGTH
from tile_core.records import dataclass

_INFIX = {op.value: op for op in PRECEDENCE}
_PREFIX = {op.value: op for op in BinaryOp if op not in PRECEDENCE}


@dataclass(slots=True)
class NameScope:
    """The names visible while a kernel is read."""

    things: dict[str, Buffer | Var] = field(default_factory=dict)

    def buffer(self, cursor: Cursor) -> Buffer:
        """Consume the name of a buffer and return the buffer."""
        thing = self._lookup(cursor)
        if not isinstance(thing, Buffer):
            raise cursor.error(f"{thing.name!r} is not a buffer")
        return thing

    def _lookup(self, cursor: Cursor) -> Buffer | Var:
        if cursor.here.text not in self.things:
            raise cursor.error(f"{cursor.here.text!r} is not declared")
        return self.things[cursor.next().text]

    def atom(self, cursor: Cursor) -> Expr:
        """Consume a variable, or a buffer with its indices."""
        thing = self._lookup(cursor)
        if isinstance(thing, Var):
            return thing
        return Load(thing, parse_indices(cursor, self))


def parse_indices(cursor: Cursor, scope: NameScope) -> tuple[Expr, ...]:
    """Consume ``[e, …]``."""
    cursor.expect("[")
    return parse_list(cursor, scope, "]")


def parse_list(cursor: Cursor, scope: NameScope, closing: str) -> tuple[Expr, ...]:
    """Consume expressions up to and including `closing`."""
    return cursor.items(closing, lambda: parse_expr(cursor, scope))


def parse_expr(cursor: Cursor, scope: NameScope, strength: int = 0) -> Expr:
    """Consume one expression whose operators bind at least as tightly as `strength`."""
    left = _operand(cursor, scope)
    while True:
        op = _INFIX.get(cursor.here.text) if cursor.here.kind in ("symbol", "name") else None
        if op is None or PRECEDENCE[op] < strength:
            return left
        cursor.next()
        right = parse_expr(cursor, scope, PRECEDENCE[op] + 1)
        left = _binary(op, left, right)


def _binary(op: BinaryOp, a: Expr, b: Expr) -> Expr:
    is_truth = op.is_comparison or op.is_logical
    return Binary(op, a, b, dtype_of("bool").with_lanes(a.dtype.lanes) if is_truth else a.dtype)


def _operand(cursor: Cursor, scope: NameScope) -> Expr:
    token = cursor.here
    if token.kind == "number":
        return _bare_number(cursor, 1)
    if token.kind == "string":
        return StringConst(json.loads(cursor.next().text))
    if cursor.accept("-"):
        if cursor.here.kind == "number":
            return _bare_number(cursor, -1)
        return _unary(UnaryOp.NEG, cursor, scope)
    if cursor.accept("~"):
        return _unary(UnaryOp.BITNOT, cursor, scope)
    if cursor.accept("not"):
        return _unary(UnaryOp.NOT, cursor, scope)
    if cursor.accept("("):
        return _parenthesised(cursor, scope)
    if cursor.accept("&"):
        access = cursor.name()
        return AddressOf(scope.buffer(cursor), parse_indices(cursor, scope), access)
    return _named(cursor, scope)


def _bare_number(cursor: Cursor, sign: int) -> Const:
    text = cursor.next().text
    if text.isdigit():
        return Const(sign * int(text), dtype_of("int32"))
    return Const(sign * float(text), dtype_of("float32"))


def _unary(op: UnaryOp, cursor: Cursor, scope: NameScope) -> Expr:
    operand = parse_expr(cursor, scope, UNARY_STRENGTH)
    return Unary(op, operand, operand.dtype)


def _parenthesised(cursor: Cursor, scope: NameScope) -> Expr:
    first = parse_expr(cursor, scope)
    if cursor.accept("?"):
        then = parse_expr(cursor, scope)
        cursor.expect(":")
        first = Select(first, then, parse_expr(cursor, scope))
    cursor.expect(")")
    return first


def _dtype(cursor: Cursor) -> DType:
    cursor.expect("[")
    dtype = dtype_of(cursor.name())
    cursor.expect("]")
    return dtype


def _cast(cursor: Cursor, scope: NameScope, *, saturate: bool) -> Expr:
    dtype = _dtype(cursor)
    (value,) = _arguments(cursor, scope)
    return Cast(dtype, value, saturate)


def _bitcast(cursor: Cursor, scope: NameScope) -> Expr:
    return Bitcast(_dtype(cursor), *_arguments(cursor, scope))


def _select(cursor: Cursor, scope: NameScope) -> Expr:
    cond, then, otherwise = _arguments(cursor, scope)
    return Select(cond, then, otherwise, lazy=False)


def _ramp(cursor: Cursor, scope: NameScope) -> Expr:
    base, stride, lanes = _arguments(cursor, scope)
    return Ramp(base, stride, _integer(lanes))


def _broadcast(cursor: Cursor, scope: NameScope) -> Expr:
    value, lanes = _arguments(cursor, scope)
    return Broadcast(value, _integer(lanes))


def _shuffle(cursor: Cursor, scope: NameScope) -> Expr:
    cursor.expect("(")
    vectors = parse_indices(cursor, scope)
    cursor.expect(",")
    picks = parse_indices(cursor, scope)
    cursor.expect(")")
    return Shuffle(vectors, tuple(_integer(p) for p in picks))


def _foreign(kind: str, cursor: Cursor, scope: NameScope) -> Expr:
    dtype = _dtype(cursor)
    symbol = cursor.name()
    return Call(f"{kind}:{symbol}", _arguments(cursor, scope), dtype)


_FORMS: dict[str, Callable[[Cursor, NameScope], Expr]] = {
    "true": lambda c, s: Const(True, dtype_of("bool")),
    "false": lambda c, s: Const(False, dtype_of("bool")),
    "cast": lambda c, s: _cast(c, s, saturate=True),
    "wrap": lambda c, s: _cast(c, s, saturate=False),
    "bitcast": _bitcast,
    "select": _select,
    "ramp": _ramp,
    "broadcast": _broadcast,
    "shuffle": _shuffle,
    "extern": lambda c, s: _foreign("extern", c, s),
    "device": lambda c, s: _foreign("device", c, s),
}


def _named(cursor: Cursor, scope: NameScope) -> Expr:
    text = cursor.here.text
    if text in scope.things:
        return scope.atom(cursor)
    name = cursor.name()
    if name in _FORMS:
        return _FORMS[name](cursor, scope)
    if name in _PREFIX:
        a, b = _arguments(cursor, scope)
        return Binary(_PREFIX[name], a, b, a.dtype)
    if name in FORMATS:
        return _typed_number(cursor, dtype_of(name))
    if name in INTRINSICS:
        dtype = _dtype(cursor) if cursor.here.text == "[" else None
        args = _arguments(cursor, scope)
        return Call(name, args, dtype or INTRINSICS[name].resolve(name, args)[1])
    cursor.at -= 1
    raise cursor.error(f"{name!r} is not declared")


def _typed_number(cursor: Cursor, dtype: DType) -> Const:
    cursor.expect("(")
    sign = -1 if cursor.accept("-") else 1
    text = cursor.next().text
    cursor.expect(")")
    return Const(sign * (float(text) if dtype.is_float else int(text)), dtype)


def _arguments(cursor: Cursor, scope: NameScope) -> tuple[Expr, ...]:
    cursor.expect("(")
    return parse_list(cursor, scope, ")")


def _integer(expr: Expr) -> int:
    assert isinstance(expr, Const), "the printer writes lanes as plain numbers"
    return int(expr.value)


def parse_extent(cursor: Cursor, scope: NameScope) -> Extent:
    """Consume an int (where static) or an expression."""
    expr = parse_expr(cursor, scope)
    if isinstance(expr, Const) and expr.dtype == "int32":
        return int(expr.value)
    return expr


def parse_region(cursor: Cursor, scope: NameScope) -> Region:
    """Consume ``A[start:extent, …]`` or ``A[i, j]``."""
    buffer = scope.buffer(cursor)
    cursor.expect("[")
    is_element = False

    def side() -> tuple[Extent, Extent]:
        nonlocal is_element
        start = parse_extent(cursor, scope)
        is_element = not cursor.accept(":")
        return start, 1 if is_element else parse_extent(cursor, scope)

    sides = cursor.items("]", side)
    starts, extents = tuple(start for start, _ in sides), tuple(extent for _, extent in sides)
    return Region(buffer, starts, extents, is_element)
