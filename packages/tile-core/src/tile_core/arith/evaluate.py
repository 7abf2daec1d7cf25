"""Scalar expressions evaluated: on exact numbers, or on whole arrays of points at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from tile_core.dtypes import DType
from tile_core.errors import InternalError
from tile_core.ir.expr import (
    Binary,
    BinaryOp,
    Call,
    Cast,
    Const,
    Expr,
    Extent,
    Load,
    Select,
    Unary,
    UnaryOp,
    Var,
)
from tile_core.ir.free_variables import free_variables
from tile_core.ir.operations import BINARY, UNARY

Number: TypeAlias = "int | float | np.ndarray[Any, Any]"


class Unknown(Exception):
    """A value that only a run of the kernel tells. Callers assume something, and say so."""


UNIFORM = ("device:uniform", "device:shfl_idx", "shfl_sync")
"""Functions whose value is that of their first argument, where a warp agrees on it."""

ELECT = "device:elect"
"""True in one lane of a warp: what it guards is run by every warp."""


def evaluate(
    root: Extent,
    values: Mapping[Var, Any],
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
    return _Evaluation(values, operators).of(root)


def value_of(
    root: Extent,
    values: Mapping[Var, Number],
    names: Mapping[Var, Expr],
    *,
    loads: int | None = None,
) -> Number:
    """Return the value of `root` at every point for which `values` holds arrays.

    Arithmetic is that of unbounded integers: indices are taken not to overflow. What has no
    meaning, such as a division by zero at a point that is never met, is any number.

    Parameters
    ----------
    values
        Of variables; arrays broadcast against each other.
    names
        What other variables were bound to.
    loads
        What an element of a buffer is taken for; None makes it unknown.

    Raises
    ------
    Unknown
        If it depends on more than these.
    """
    return _OfArrays(values, names, loads).of(root)  # type: ignore[no-any-return]


class _Evaluation:
    """One expression; what occurs in it twice is computed once."""

    unary: Mapping[UnaryOp, Callable[[Any], Any]] = UNARY

    def __init__(
        self, values: Mapping[Var, Any], binary: Mapping[BinaryOp, Callable[[Any, Any], Any]]
    ) -> None:
        self.values, self.binary = values, binary
        self.known: dict[Expr, Any] = {}

    def of(self, node: Extent) -> Any:
        if isinstance(node, int):
            return node
        if node not in self.known:
            self.known[node] = self.computed(node)
        return self.known[node]

    def computed(self, node: Expr) -> Any:
        match node:
            case Const(value=value):
                return value
            case Var():
                return self.variable(node)
            case Binary(op=op, a=a, b=b):
                return self.binary[op](self.of(a), self.of(b))
            case Unary(op=unary, a=a):
                return self.unary[unary](self.of(a))
            case Select():
                return self.chosen(node)
            case Cast(dtype=dtype, value=value):
                return self.converted(self.of(value), dtype)
        return self.other(node)

    def variable(self, node: Var) -> Any:
        return self.values[node]

    def chosen(self, node: Select) -> Any:
        return self.of(node.then if self.of(node.cond) else node.otherwise)

    def converted(self, value: Any, dtype: DType) -> Any:
        if dtype.is_float:
            return float(value)
        return int(value) if isinstance(value, float | bool) else value

    def other(self, node: Expr) -> Any:
        raise InternalError(f"{type(node).__name__} cannot be evaluated on the host")


def _quotient(a: Any, b: Any) -> Any:
    return np.floor_divide(a, np.where(np.equal(b, 0), 1, b))


def _truncated(a: Any, b: Any) -> Any:
    return np.sign(a) * np.sign(b) * _quotient(np.abs(a), np.abs(b))


class _OfArrays(_Evaluation):
    """One expression at many points: those without a meaning have any value."""

    unary = UNARY | {UnaryOp.NOT: np.logical_not}

    def __init__(
        self, values: Mapping[Var, Number], names: Mapping[Var, Expr], loads: int | None
    ) -> None:
        super().__init__(values, _OF_ARRAYS)
        self.names, self.loads = names, loads

    def variable(self, node: Var) -> Any:
        if node in self.values:
            return self.values[node]
        if node in self.names:
            return self.of(self.names[node])
        raise Unknown(node.name)

    def chosen(self, node: Select) -> Any:
        return np.where(self.of(node.cond), self.of(node.then), self.of(node.otherwise))

    def converted(self, value: Any, dtype: DType) -> Any:
        if dtype.is_bool:
            return np.not_equal(value, 0)
        if isinstance(value, np.ndarray):
            return value.astype(np.float64 if dtype.is_float else np.int64)
        return float(value) if dtype.is_float else int(value)

    def other(self, node: Expr) -> Any:
        match node:
            case Call(function=function, args=args) if function in UNIFORM:
                return self.of(args[0])
            case Call(function=function) if function == ELECT:
                return 1
            case Load() if self.loads is not None:
                return self.loads
        raise Unknown(type(node).__name__)


_MOST_BITS = 40
"""Shifts beyond it leave the numbers of the arrays."""

_OF_ARRAYS = BINARY | {
    BinaryOp.DIV: lambda a, b: a / np.where(np.equal(b, 0), 1, b),
    BinaryOp.FLOORDIV: _quotient,
    BinaryOp.FLOORMOD: lambda a, b: a - _quotient(a, b) * b,
    BinaryOp.TRUNCDIV: _truncated,
    BinaryOp.TRUNCMOD: lambda a, b: a - _truncated(a, b) * b,
    BinaryOp.MIN: np.minimum,
    BinaryOp.MAX: np.maximum,
    BinaryOp.AND: np.logical_and,
    BinaryOp.OR: np.logical_or,
    BinaryOp.SHL: lambda a, b: np.left_shift(a, np.clip(b, 0, _MOST_BITS)),
    BinaryOp.SHR: lambda a, b: np.right_shift(a, np.clip(b, 0, _MOST_BITS)),
}


def solve(equations: Iterable[tuple[Extent, int]], values: dict[Var, Any]) -> None:
    """Add to `values` every symbol that equations ``extent == number`` determine.

    A symbol has the value of the first equation that it stands in alone, else the solution
    of the first linear one, such as ``2 * m + n == 7``, in which it is the only unknown.
    What has a value keeps it.
    """
    pairs = [*equations]
    for extent, number in pairs:
        if isinstance(extent, Var):
            values.setdefault(extent, number)
    before = -1
    while len(values) != before:
        before = len(values)
        for extent, number in pairs:
            _solve_one(extent, number, values)


def _solve_one(extent: Extent, number: int, values: dict[Var, Any]) -> None:
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
