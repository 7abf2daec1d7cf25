"""Layout formulas: scalar expressions whose variables are the coordinates of a box."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from tile_core.arith.affine import Linear
from tile_core.arith.bounds import Ranges
from tile_core.arith.evaluate import evaluate as evaluate_expr
from tile_core.arith.index_rules import IndexRules
from tile_core.arith.simplify import Simplifier
from tile_core.dtypes import dtype_of
from tile_core.errors import LayoutError
from tile_core.ir.build_expr import binary, const
from tile_core.ir.expr import Binary, BinaryOp, Cast, Const, Expr, Unary, UnaryOp, Var
from tile_core.ir.free_variables import free_variables
from tile_core.ir.names import Names
from tile_core.ir.node import Node, analysis, substitute, walk
from tile_core.ir.operations import BINARY
from tile_core.ir.print_expr import print_expr

INT64 = dtype_of("int64")

_NAMES = "ijklmn"
_AXES: dict[Var, int] = {}
_PRECEDENCE = {
    BinaryOp.BITXOR: 0, BinaryOp.ADD: 1, BinaryOp.SUB: 1,
    BinaryOp.MUL: 2, BinaryOp.FLOORDIV: 2, BinaryOp.FLOORMOD: 2,
}  # fmt: skip
_CODES = {op: number for number, op in enumerate((*_PRECEDENCE, BinaryOp.MIN, BinaryOp.MAX))}
"""Operations of formulas, numbered alike in every process."""
_DIVISIONS = (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD)


@cache
def coordinate(axis: int) -> Var:
    """Return coordinate number `axis` of any box, counted from 0: always the same variable."""
    var = Var(_NAMES[axis] if axis < len(_NAMES) else f"i{axis}", INT64)
    _AXES[var] = axis
    return var


def axis_of(var: Expr) -> int:
    """Return which coordinate a variable of a formula is."""
    return _AXES[var]  # type: ignore[index]


@cache
def inputs(rank: int) -> tuple[Var, ...]:
    """Return the coordinates of a box of `rank` dimensions."""
    return tuple(map(coordinate, range(rank)))


def inputs_of(expr: Expr) -> frozenset[int]:
    """Return the axes that occur in `expr`."""
    return frozenset(map(axis_of, free_variables(expr)))


def axis_names(rank: int) -> tuple[str, ...]:
    """Return the names under which the coordinates of a box are printed."""
    return tuple(_NAMES[:rank]) if rank <= len(_NAMES) else tuple(f"i{k}" for k in range(rank))


def as_index(value: Any) -> Expr:
    """Return `value`, a formula or a whole number, as a formula.

    Raises `LayoutError` if it is neither, compares, or divides by what is no positive constant.
    """
    if isinstance(value, Expr):
        return value if _is_formula(value) else _converted(value)
    try:
        return const(operator.index(value), INT64)
    except TypeError:
        raise _no_formula(value) from None


def _no_formula(value: object) -> LayoutError:
    told = print_expr(value, Names()) if isinstance(value, Expr) else repr(value)
    return LayoutError(
        f"a coordinate must be a whole number or an index expression, got {told}",
        hint="layouts know + - * // % ^ and minimum, maximum of their coordinates",
    )


def branches() -> LayoutError:
    """Return the refusal of a layout that takes one of two sides."""
    return LayoutError(
        "an index expression cannot be compared: a layout is one formula for its whole box",
        hint="use //, %, ^, or minimum and maximum; same_expr compares two formulas",
    )


def _is_formula(expr: Expr) -> bool:
    """Whether an expression is one of coordinates, in 64 bits, of known operations."""
    for node in walk(expr):
        kind = type(node)
        if kind is Binary:
            op, b = node.op, node.b  # type: ignore[attr-defined]
            if op not in _CODES or node.dtype != INT64:  # type: ignore[attr-defined]
                return False
            if op in _DIVISIONS and not (type(b) is Const and b.value > 0):
                return False
        elif kind is Const:
            if node.dtype != INT64:  # type: ignore[attr-defined]
                return False
        elif node not in _AXES:
            return False
    return True


def _converted(expr: Expr) -> Expr:
    """Return an expression of whole numbers and coordinates as a formula, or refuse it."""
    match expr:
        case Const(value=int() as value) if not expr.dtype.is_bool:
            return expr if expr.dtype == INT64 else const(value, INT64)
        case Var() if expr in _AXES:
            return expr
        case Cast(value=value) if expr.dtype.is_int and value.dtype.is_int:
            return _converted(value)
        case Unary(op=UnaryOp.NEG, a=a):
            return binary(BinaryOp.SUB, const(0, INT64), _converted(a))
        case Binary(op=op) if op.is_comparison or op.is_logical:
            raise branches()
        case Binary(op=op, a=a, b=b) if op in _CODES and expr.dtype.is_int:
            left, right = _converted(a), _converted(b)
            if op in _DIVISIONS and not (isinstance(right, Const) and right.value > 0):
                raise LayoutError(
                    f"the divisor in ({to_text(left)}) {op.value} ({to_text(right)}) "
                    "is not a positive constant"
                )
            return expr if left is a and right is b else binary(op, left, right)
    raise _no_formula(expr)


def minimum(a: Any, b: Any) -> Expr:
    """Return the smaller of two formulas."""
    return binary(BinaryOp.MIN, as_index(a), as_index(b))


def maximum(a: Any, b: Any) -> Expr:
    """Return the larger of two formulas."""
    return binary(BinaryOp.MAX, as_index(a), as_index(b))


@analysis
def digest(expr: Expr) -> int:
    """Return a number that is equal for equal formulas, in every process."""
    match expr:
        case Const(value=value):
            return hash((1, value))
        case Var():
            return hash((2, axis_of(expr)))
        case Binary(op=op, a=a, b=b):
            return hash((3, _CODES[op], digest(a), digest(b)))
    raise _no_formula(expr)


def same_expr(a: Expr, b: Expr) -> bool:
    """Whether two formulas are the same, symbol by symbol."""
    if a is b:
        return True
    match a, b:
        case Const(), Const():
            return a.value == b.value
        case Binary(), Binary():
            return (
                digest(a) == digest(b)
                and a.op is b.op
                and same_expr(a.a, b.a)
                and same_expr(a.b, b.b)
            )
    return False


def _extreme(op: BinaryOp) -> Callable[[Any, Any], Any]:
    of_arrays = np.minimum if op is BinaryOp.MIN else np.maximum

    def pick(a: Any, b: Any) -> Any:
        if isinstance(a, Expr) or isinstance(b, Expr):
            return binary(op, a, b)
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            return of_arrays(a, b)
        if isinstance(a, (int, np.integer)) and isinstance(b, (int, np.integer)):
            return BINARY[op](a, b)
        raise LayoutError(
            f"{op.value} of {type(a).__name__} and {type(b).__name__} is not known to layouts",
            hint="evaluate the formula with the operators of the other type",
        )

    return pick


OPERATORS = BINARY | {op: _extreme(op) for op in (BinaryOp.MIN, BinaryOp.MAX)}
"""Operators of integers, int64 arrays, expressions, and whatever has Python's operators."""


def evaluate(
    expr: Expr,
    coords: Sequence[Any],
    operators: Mapping[BinaryOp, Callable[[Any, Any], Any]] = OPERATORS,
) -> Any:
    """Return the value of `expr` at `coords`.

    Coordinates are integers, int64 arrays that broadcast together, formulas or other expressions
    (this substitutes), or any values with Python's integer operators.
    """
    return evaluate_expr(expr, dict(zip(inputs(len(coords)), coords)), operators)  # noqa: B905


def simplify(expr: Expr, extents: Sequence[int]) -> Expr:
    """Return a simpler formula, equal to `expr` wherever ``0 <= x_k < extents[k]``."""
    return _over(extents).written(expr)


def linear_form(expr: Expr, extents: Sequence[int]) -> Linear:
    """Return the simplified `expr` as a sum of terms."""
    return _over(extents).form(expr)


def _over(extents: Sequence[int]) -> Simplifier:
    start = _at_start(tuple(extents))
    made = Simplifier(start.ranges.copy(), IndexRules(start.rules.atoms.copy()))
    made.forms.update(start.forms)
    return made


@lru_cache(maxsize=256)
def _at_start(extents: tuple[int, ...]) -> Simplifier:
    """Return a simplifier over a box. Coordinates come first, in their order, among its atoms."""
    made = Simplifier(Ranges({}))
    for var, extent in zip(inputs(len(extents)), extents, strict=True):
        made.ranges.bind(var, 0, extent - 1)
        made.form(var)
    return made


def revived(exprs: tuple[Expr, ...], coords: tuple[Var, ...]) -> tuple[Expr, ...]:
    """Return formulas that come from another process, where their coordinates were `coords`."""
    here: dict[Node, Node] = dict(zip(coords, inputs(len(coords)), strict=True))
    return tuple(substitute(e, here) for e in exprs)


def to_text(expr: Expr, names: Sequence[str] | None = None) -> str:
    """Return `expr` as Python source; `names` are those of the coordinates."""
    return _text(expr, names)[0]


def _text(expr: Expr, names: Sequence[str] | None) -> tuple[str, int]:
    match expr:
        case Const(value=value):
            return str(value), 9 if value >= 0 else 0
        case Var(name=name):
            return name if names is None else names[axis_of(expr)], 9
        case Binary(op=op, a=x, b=y):
            a, b = _text(x, names), _text(y, names)
            if op not in _PRECEDENCE:
                return f"{op.value}imum({a[0]}, {b[0]})", 9
            level = _PRECEDENCE[op]
            left = a[0] if a[1] >= level else f"({a[0]})"
            right = b[0] if b[1] > level else f"({b[0]})"
            return f"{left} {op.value} {right}", level
    raise _no_formula(expr)
