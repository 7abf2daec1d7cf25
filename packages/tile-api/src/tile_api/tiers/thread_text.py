"""Expressions of thread-level code as Python: what `thread_expressions` reads back."""

from __future__ import annotations

import ast

from tile_api.frontend.thread_expressions import derived
from tile_api.tiers.python_expressions import Named, PythonExpressions, called
from tile_core.errors import TileError, UnsupportedForm
from tile_core.ir.device_calls import PREFIX, device_call
from tile_core.ir.expr import AddressOf, Binary, BinaryOp, Call, Cast, Expr, Extent, Select, Unary

EXTERN = "extern:"


def written(expr: Extent, named: Named) -> str:
    """Return an expression as a line of Python.

    Raises
    ------
    UnsupportedForm
        If part of it cannot be written in a program of threads.
    """
    return ThreadText(named).written(expr)


def no_form(what: str, expr: Expr | None = None) -> UnsupportedForm:
    """Return the error for a node that has no spelling in a program of threads."""
    return ThreadText(lambda thing: thing.name).no_form(what, expr)


class ThreadText(PythonExpressions):
    """Nothing is promoted or folded in programs of threads: each operation is written as it is."""

    program = "a program of threads"

    def logical(self, expr: Binary) -> ast.expr:
        """Write ``(a and b) and c`` without parentheses: it is read from the left."""
        operands, first = [expr.b], expr.a
        while isinstance(first, Binary) and first.op is expr.op:
            operands.insert(0, first.b)
            first = first.a
        made = ast.And() if expr.op is BinaryOp.AND else ast.Or()
        return ast.BoolOp(made, [self.of(first), *map(self.of, operands)])

    def negation(self, operand: ast.expr) -> ast.expr:
        """Return what is true where `operand` is not."""
        return ast.UnaryOp(ast.Not(), operand)

    def negative(self, expr: Unary, operand: ast.expr) -> ast.expr:
        """Return the negative of a constant, which is none itself."""
        return called(("neg",), operand)

    def wrapping(self, expr: Cast) -> ast.expr:
        """Return a conversion that does not saturate."""
        return called(("wrap",), self.of(expr.value), ast.Constant(str(expr.dtype)))

    def _select(self, expr: Select) -> ast.expr:
        cond, then, otherwise = map(self.of, (expr.cond, expr.then, expr.otherwise))
        if expr.lazy:
            return ast.IfExp(cond, then, otherwise)
        return called(("Select",), cond, then, otherwise)

    def _addressof(self, expr: AddressOf) -> ast.expr:
        mode = [] if expr.access == "rw" else [ast.Constant(expr.access)]
        return called(("ref",), self.element(expr.buffer, expr.indices), *mode)

    def _call(self, expr: Call) -> ast.expr:
        args = list(map(self.of, expr.args))
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
        return called(path, *args)
    return called(path, *args, dtype=str(call.dtype))
