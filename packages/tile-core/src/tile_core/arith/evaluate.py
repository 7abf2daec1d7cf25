"""Integer expressions of symbols, evaluated on Python ints: shapes, grids, host checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tile_core.errors import InternalError
from tile_core.ir.expr import Binary, Cast, Const, Extent, Select, Unary
from tile_core.ir.expr import Var as Variable
from tile_core.ir.free_variables import free_variables
from tile_core.ir.operations import BINARY, UNARY


def evaluate(root: Extent, values: Mapping[Variable, Any]) -> Any:
    """Return the value of `root` in exact Python arithmetic, without wrapping.

    Raises
    ------
    InternalError
        If `root` holds anything but constants, variables of `values`, and arithmetic.
    """
    match root:
        case int():
            return root
        case Const(value=value):
            return value
        case Variable():
            return values[root]
        case Binary(op=op, a=a, b=b):
            return BINARY[op](evaluate(a, values), evaluate(b, values))
        case Unary(op=unary, a=a):
            return UNARY[unary](evaluate(a, values))
        case Select(cond=cond, then=then, otherwise=otherwise):
            return evaluate(then if evaluate(cond, values) else otherwise, values)
        case Cast(dtype=dtype, value=value):
            inner = evaluate(value, values)
            if dtype.is_float:
                return float(inner)
            return int(inner) if isinstance(inner, float | bool) else inner
        case _:
            raise InternalError(f"{type(root).__name__} cannot be evaluated on the host")


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
