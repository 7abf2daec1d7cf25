"""Expressions of thread-level code as Python: what `thread_expressions` reads back."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from typing import Any

from tile_api.frontend.thread_expressions import COMPARISONS, FUNCTIONS, INFIX, derived
from tile_core.errors import TileError, UnsupportedForm
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.device_calls import PREFIX, device_call
from tile_core.ir.expr import (
    AddressOf,
    Binary,
    BinaryOp,
    Bitcast,
    Call,
    Cast,
    Const,
    Expr,
    Extent,
    Load,
    Select,
    Shuffle,
    StringConst,
    Unary,
    UnaryOp,
    Var,
)

Named = Callable[["Buffer | Var"], str]

_INFIX = {op: made for made, op in INFIX.items()}
_COMPARISONS = {op: made for made, op in COMPARISONS.items()}
_FUNCTIONS = {op: name for name, op in FUNCTIONS.items()}
EXTERN = "extern:"


def written(expr: Extent, named: Named) -> str:
    """Return an expression as a line of Python.

    Raises
    ------
    UnsupportedForm
        If part of it cannot be written in a program of threads.
    """
    text = ast.unparse(ast.fix_missing_locations(ast.Expression(_Writer(named).of(expr))))
    return _PLAIN_STRING.sub(r'"\1"', text) if '"' not in text else text


_PLAIN_STRING = re.compile(r"'([^'\\]*)'")


def no_form(what: str, expr: Expr | None = None) -> UnsupportedForm:
    """Return the error for a node that has no spelling in a program of threads."""
    return UnsupportedForm(
        f"{what} cannot be written in a program of threads",
        span=None if expr is None else expr.span,
        hint="print kernel.ir('lowered') or kernel.get_kernel_source()",
    )


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _function(*path: str) -> ast.expr:
    made = _name("T")
    for part in path:
        made = ast.Attribute(made, part, ast.Load())
    return made


def _called(path: tuple[str, ...], *args: ast.expr, **words: object) -> ast.expr:
    keywords = [ast.keyword(key, ast.Constant(value)) for key, value in words.items()]  # type: ignore[arg-type]
    return ast.Call(_function(*path), list(args), keywords)


class _Writer:
    """Makes trees of Python's syntax, which Python itself writes out."""

    def __init__(self, named: Named) -> None:
        self.named = named

    def of(self, expr: Extent) -> ast.expr:
        if isinstance(expr, int):
            return _number(expr)
        writer = _WRITERS.get(type(expr))
        if writer is None:
            raise no_form(f"an expression of kind {type(expr).__name__}", expr)
        made: ast.expr = writer(self, expr)
        return made

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> ast.expr:
        """Return the place of an element; a variable is its name."""
        base = _name(self.named(buffer))
        first = indices[0] if len(indices) == 1 else None
        if buffer.scope is Scope.VAR and isinstance(first, Const) and first.value == 0:
            return base
        if len(indices) == 1:
            return ast.Subscript(base, self.of(indices[0]), ast.Load())
        where = ast.Tuple([self.of(index) for index in indices], ast.Load())
        return ast.Subscript(base, where, ast.Load())


def _number(value: int | float) -> ast.expr:
    if value < 0 or math.copysign(1, value) < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)


def _const(w: _Writer, expr: Const) -> ast.expr:
    value, dtype = expr.value, expr.dtype
    if dtype == "bool":
        return ast.Constant(bool(value))
    if dtype.lanes != 1:
        raise no_form(f"a constant of {dtype}", expr)
    number: ast.expr
    if dtype.is_float:
        is_finite = math.isfinite(value)
        number = _number(float(value)) if is_finite else ast.Constant(str(float(value)))
        return number if is_finite and dtype == "float32" else _called((str(dtype),), number)
    number = _number(int(value))
    return number if dtype == "int32" else _called((str(dtype),), number)


def _binary(w: _Writer, expr: Binary) -> ast.expr:
    op = expr.op
    if op.is_logical:
        return _logic(w, expr)
    a, b = w.of(expr.a), w.of(expr.b)
    if op in _FUNCTIONS:
        return _called((_FUNCTIONS[op],), a, b)
    if op in _COMPARISONS:
        return ast.Compare(a, [_COMPARISONS[op]()], [b])
    return ast.BinOp(a, _INFIX[op](), b)


def _logic(w: _Writer, expr: Binary) -> ast.expr:
    """Write ``(a and b) and c`` without parentheses: it is read from the left."""
    operands, first = [expr.b], expr.a
    while isinstance(first, Binary) and first.op is expr.op:
        operands.insert(0, first.b)
        first = first.a
    made = ast.And() if expr.op is BinaryOp.AND else ast.Or()
    return ast.BoolOp(made, [w.of(first), *map(w.of, operands)])


def _unary(w: _Writer, expr: Unary) -> ast.expr:
    operand = w.of(expr.a)
    if expr.op is UnaryOp.NEG:
        if isinstance(expr.a, Const):
            return _called(("neg",), operand)
        return ast.UnaryOp(ast.USub(), operand)
    return ast.UnaryOp(ast.Not() if expr.op is UnaryOp.NOT else ast.Invert(), operand)


def _select(w: _Writer, expr: Select) -> ast.expr:
    cond, then, otherwise = map(w.of, (expr.cond, expr.then, expr.otherwise))
    if expr.lazy:
        return ast.IfExp(cond, then, otherwise)
    return _called(("Select",), cond, then, otherwise)


def _cast(w: _Writer, expr: Cast) -> ast.expr:
    form = "cast" if expr.saturate else "wrap"
    return _called((form,), w.of(expr.value), ast.Constant(str(expr.dtype)))


def _bitcast(w: _Writer, expr: Bitcast) -> ast.expr:
    return _called(("reinterpret",), w.of(expr.value), ast.Constant(str(expr.dtype)))


def _address(w: _Writer, expr: AddressOf) -> ast.expr:
    mode = [] if expr.access == "rw" else [ast.Constant(expr.access)]
    return _called(("ref",), w.element(expr.buffer, expr.indices), *mode)


def _call(w: _Writer, expr: Call) -> ast.expr:
    args = list(map(w.of, expr.args))
    name = expr.function
    if name.startswith(PREFIX):
        name = name.removeprefix(PREFIX)
        row = device_call(name)
        usual = "int32" if row is None or row.result == "void" else row.result
        return _typed(("device", name), args, expr, usual)
    if name.startswith(EXTERN):
        return _typed(("extern", name.removeprefix(EXTERN)), args, expr, "int32")
    try:
        usual = str(derived(name, expr.args))
    except TileError:  # lowering added arguments
        usual = ""
    return _typed((name,), args, expr, usual)


def _typed(path: tuple[str, ...], args: list[ast.expr], call: Call, usual: str) -> ast.expr:
    if call.dtype == usual:
        return _called(path, *args)
    return _called(path, *args, dtype=str(call.dtype))


def _shuffle(w: _Writer, expr: Shuffle) -> ast.expr:
    vectors = ast.List([w.of(v) for v in expr.vectors], ast.Load())
    picks = ast.List([ast.Constant(p) for p in expr.picks], ast.Load())
    return _called(("Shuffle",), vectors, picks)


_WRITERS: dict[type[Expr], Callable[[_Writer, Any], ast.expr]] = {
    Const: _const,
    StringConst: lambda w, e: ast.Constant(e.value),
    Var: lambda w, e: _name(w.named(e)),
    Binary: _binary,
    Unary: _unary,
    Select: _select,
    Cast: _cast,
    Bitcast: _bitcast,
    Load: lambda w, e: w.element(e.buffer, e.indices),
    AddressOf: _address,
    Call: _call,
    Shuffle: _shuffle,
}
