"""Integer expressions of symbols, evaluated on Python ints: shapes, grids, host checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tile_core.errors import InternalError
from tile_core.ir.expr import Binary, BinaryOp, Cast, Const, Expr, Extent, Select, Unary
from tile_core.ir.expr import Var as Variable
from tile_core.ir.free_variables import free_variables
from tile_core.ir.operations import BINARY, UNARY


def evaluate(
    root: Extent,
    values: Mapping[Variable, Any],
    operators: Mapping[BinaryOp, Callable[[Any, Any], Any]] = BINARY,
) -> Any:
    """Return the value of `root` in exact Python arithmetic, without wrapping.

    Parameters
    ----------
    values
        Of variables: numbers, or whatever the operators take.
    operators
        What operations of two operands do; a shared part is computed once.

    Raises
    ------
    InternalError
        If `root` holds anything but constants, variables of `values`, and arithmetic.
    """
    known: dict[Expr, Any] = {}

    def of(node: Extent) -> Any:
        match node:
            case int():
                return node
            case Const(value=value):
                return value
            case Variable():
                return values[node]
            case Binary(op=op, a=a, b=b):
                if node not in known:
                    known[node] = operators[op](of(a), of(b))
                return known[node]
            case Unary(op=unary, a=a):
                return UNARY[unary](of(a))
            case Select(cond=cond, then=then, otherwise=otherwise):
                return of(then if of(cond) else otherwise)
            case Cast(dtype=dtype, value=value):
                inner = of(value)
                if dtype.is_float:
                    return float(inner)
                return int(inner) if isinstance(inner, float | bool) else inner
        raise InternalError(f"{type(node).__name__} cannot be evaluated on the host")

    return of(root)


def solve(equations: Iterable[tuple[Extent, int]], values: dict[Variable, Any]) -> None:
    """Add to `values` every symbol that equations ``extent == number`` determine.

    A symbol has the value of the first equation that it stands in alone, else the solution
    of the first linear one, such as ``2 * m + n == 7``, in which it is the only unknown.
    What has a value keeps it.
    """
    pairs = [*equations]
    for extent, number in pairs:
        if isinstance(extent, Variable):
            values.setdefault(extent, number)
    before = -1
    while len(values) != before:
        before = len(values)
        for extent, number in pairs:
            _solve_one(extent, number, values)


def _solve_one(extent: Extent, number: int, values: dict[Variable, Any]) -> None:
    unknown = [v for v in free_variables(extent) if v not in values]
    if len(unknown) != 1:
        return
    (var,) = unknown
    try:
        at0, at1 = (evaluate(extent, values | {var: x}) for x in (0, 1))
        candidate = (number - at0) // (at1 - at0)
        if evaluate(extent, values | {var: candidate}) == number:
            values[var] = candidate
    except ArithmeticError:
        return
