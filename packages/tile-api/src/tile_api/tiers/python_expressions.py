"""Expressions of tile IR as Python: what programs of tiles and of threads have in common."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable

from tile_api.frontend.thread_expressions import COMPARISONS, FUNCTIONS, INFIX
from tile_core.dtypes import DType
from tile_core.errors import UnsupportedForm
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import (
    Binary,
    Bitcast,
    Cast,
    Const,
    Expr,
    Extent,
    Load,
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
_PLAIN_STRING = re.compile(r"'([^'\\]*)'")


class PythonExpressions:
    """Makes trees of Python's syntax, which Python itself writes out.

    Parameters
    ----------
    named
        Returns the name of a variable or a buffer.
    """

    program = "a program"
    """What cannot say what has no form."""

    def __init__(self, named: Named) -> None:
        self.named = named

    def written(self, expr: Extent) -> str:
        """Return an expression as a line of Python.

        Raises
        ------
        UnsupportedForm
            If part of it cannot be written so.
        """
        text = ast.unparse(ast.fix_missing_locations(ast.Expression(self.of(expr))))
        return _PLAIN_STRING.sub(r'"\1"', text) if '"' not in text else text

    def no_form(self, what: str, expr: Expr | None = None) -> UnsupportedForm:
        """Return the error for a node that has no spelling."""
        return UnsupportedForm(
            f"{what} cannot be written in {self.program}",
            span=None if expr is None else expr.span,
            hint="print kernel.ir('lowered') or kernel.get_kernel_source()",
        )

    def of(self, expr: Extent) -> ast.expr:
        """Return the tree of an expression."""
        if isinstance(expr, int):
            return number(expr)
        writer = getattr(self, f"_{type(expr).__name__.lower()}", None)
        if writer is None:
            raise self.no_form(f"an expression of kind {type(expr).__name__}", expr)
        made: ast.expr = writer(expr)
        return made

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> ast.expr:
        """Return the place of an element; a variable is its name."""
        base = name(self.named(buffer))
        first = indices[0] if len(indices) == 1 else None
        if buffer.scope is Scope.VAR and isinstance(first, Const) and first.value == 0:
            return base
        if len(indices) == 1:
            return ast.Subscript(base, self.of(indices[0]), ast.Load())
        where = ast.Tuple([self.of(index) for index in indices], ast.Load())
        return ast.Subscript(base, where, ast.Load())

    def _var(self, expr: Var) -> ast.expr:
        return name(self.named(expr))

    def _stringconst(self, expr: StringConst) -> ast.expr:
        return ast.Constant(expr.value)

    def _load(self, expr: Load) -> ast.expr:
        return self.element(expr.buffer, expr.indices)

    def _const(self, expr: Const) -> ast.expr:
        value, dtype = expr.value, expr.dtype
        if dtype == "bool":
            return ast.Constant(bool(value))
        if dtype.lanes != 1:
            raise self.no_form(f"a constant of {dtype}", expr)
        if dtype.is_float and not math.isfinite(value):
            return self.not_finite(value, dtype)
        plain = number(float(value) if dtype.is_float else int(value))
        return plain if dtype in ("float32", "int32") else called((str(dtype),), plain)

    def not_finite(self, value: float, dtype: DType) -> ast.expr:
        """Return an infinity, or what is no number."""
        return called((str(dtype),), ast.Constant(str(float(value))))

    def _binary(self, expr: Binary) -> ast.expr:
        op = expr.op
        if op.is_logical:
            return self.logical(expr)
        a, b = self.operands(expr)
        if op in _FUNCTIONS:
            return called((_FUNCTIONS[op],), a, b)
        if op in _COMPARISONS:
            return ast.Compare(a, [_COMPARISONS[op]()], [b])
        return ast.BinOp(a, _INFIX[op](), b)

    def operands(self, expr: Binary) -> tuple[ast.expr, ast.expr]:
        """Return both sides of an operation."""
        return self.of(expr.a), self.of(expr.b)

    def logical(self, expr: Binary) -> ast.expr:
        """Return a conjunction or disjunction."""
        raise NotImplementedError

    def _unary(self, expr: Unary) -> ast.expr:
        operand = self.of(expr.a)
        if expr.op is UnaryOp.NOT:
            return self.negation(operand)
        if expr.op is not UnaryOp.NEG:
            return ast.UnaryOp(ast.Invert(), operand)
        if isinstance(expr.a, Const):
            return self.negative(expr, operand)
        return ast.UnaryOp(ast.USub(), operand)

    def negation(self, operand: ast.expr) -> ast.expr:
        """Return what is true where `operand` is not."""
        raise NotImplementedError

    def negative(self, expr: Unary, operand: ast.expr) -> ast.expr:
        """Return the negative of a constant, which is none itself."""
        raise self.no_form("the negative of a constant", expr)

    def _cast(self, expr: Cast) -> ast.expr:
        if not expr.saturate:
            return self.wrapping(expr)
        return called(("cast",), self.of(expr.value), ast.Constant(str(expr.dtype)))

    def wrapping(self, expr: Cast) -> ast.expr:
        """Return a conversion that does not saturate."""
        raise self.no_form("a conversion that wraps around", expr)

    def _bitcast(self, expr: Bitcast) -> ast.expr:
        return called(("reinterpret",), self.of(expr.value), ast.Constant(str(expr.dtype)))

    def _shuffle(self, expr: Shuffle) -> ast.expr:
        vectors = ast.List([self.of(v) for v in expr.vectors], ast.Load())
        picks = ast.List([ast.Constant(p) for p in expr.picks], ast.Load())
        return called(("Shuffle",), vectors, picks)


def name(text: str) -> ast.expr:
    """Return a name."""
    return ast.Name(text, ast.Load())


def called(path: tuple[str, ...], *args: ast.expr, **words: object) -> ast.expr:
    """Return a call of a function of the language."""
    function = name("T")
    for part in path:
        function = ast.Attribute(function, part, ast.Load())
    keywords = [ast.keyword(key, ast.Constant(value)) for key, value in words.items()]  # type: ignore[arg-type]
    return ast.Call(function, list(args), keywords)


def number(value: int | float) -> ast.expr:
    """Return a number that Python reads as this one."""
    if math.copysign(1, value) == -1:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)
