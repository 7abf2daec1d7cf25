"""Scalar expressions evaluated on whole arrays of points at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from tile_core.dtypes import DType
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
from tile_core.ir.operations import BINARY, UNARY

Number: TypeAlias = "int | float | np.ndarray[Any, Any]"


class Unknown(Exception):
    """A value that only a run of the kernel tells. Callers assume something, and say so."""


def _quotient(a: Any, b: Any) -> Any:
    return np.floor_divide(a, np.where(np.equal(b, 0), 1, b))


def _remainder(a: Any, b: Any) -> Any:
    return a - _quotient(a, b) * b


def _truncated(a: Any, b: Any) -> Any:
    return np.sign(a) * np.sign(b) * _quotient(np.abs(a), np.abs(b))


_BINARY: dict[BinaryOp, Callable[[Any, Any], Any]] = BINARY | {
    BinaryOp.DIV: lambda a, b: a / np.where(np.equal(b, 0), 1, b),
    BinaryOp.FLOORDIV: _quotient,
    BinaryOp.FLOORMOD: _remainder,
    BinaryOp.TRUNCDIV: _truncated,
    BinaryOp.TRUNCMOD: lambda a, b: a - _truncated(a, b) * b,
    BinaryOp.MIN: np.minimum,
    BinaryOp.MAX: np.maximum,
    BinaryOp.AND: np.logical_and,
    BinaryOp.OR: np.logical_or,
    BinaryOp.SHL: lambda a, b: np.left_shift(a, np.clip(b, 0, _MOST_BITS)),
    BinaryOp.SHR: lambda a, b: np.right_shift(a, np.clip(b, 0, _MOST_BITS)),
}
"""What is different for arrays: points without a meaning have any value."""

_UNARY: dict[UnaryOp, Callable[[Any], Any]] = UNARY | {UnaryOp.NOT: np.logical_not}

_MOST_BITS = 40
"""Shifts beyond it leave the numbers of the arrays."""

UNIFORM = ("device:uniform", "device:shfl_idx", "shfl_sync")
"""Functions whose value is that of their first argument, where a warp agrees on it."""

ELECT = "device:elect"
"""True in one lane of a warp: what it guards is run by every warp."""


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
    return _Evaluation(values, names, loads).of(root)


class _Evaluation:
    """One expression at many points; what occurs in it twice is computed once."""

    def __init__(
        self, values: Mapping[Var, Number], names: Mapping[Var, Expr], loads: int | None
    ) -> None:
        self.values, self.names, self.loads = values, names, loads
        self.known: dict[Expr, Number] = {}

    def of(self, node: Extent) -> Number:
        if isinstance(node, int):
            return node
        if node not in self.known:
            self.known[node] = self._compute(node)
        return self.known[node]

    def _compute(self, node: Expr) -> Number:
        match node:
            case Const(value=value):
                return value
            case Var():
                return self._variable(node)
            case Binary(op=op, a=a, b=b):
                found: Number = _BINARY[op](self.of(a), self.of(b))
                return found
            case Unary(op=unary, a=a):
                return _UNARY[unary](self.of(a))  # type: ignore[no-any-return]
            case Select(cond=cond, then=then, otherwise=otherwise):
                return np.where(self.of(cond), self.of(then), self.of(otherwise))
            case Cast(dtype=dtype, value=value):
                return _converted(self.of(value), dtype)
            case Call(function=function, args=args) if function in UNIFORM:
                return self.of(args[0])
            case Call(function=function) if function == ELECT:
                return 1
            case Load() if self.loads is not None:
                return self.loads
        raise Unknown(type(node).__name__)

    def _variable(self, node: Var) -> Number:
        if node in self.values:
            return self.values[node]
        if node in self.names:
            return self.of(self.names[node])
        raise Unknown(node.name)


def _converted(value: Number, dtype: DType) -> Number:
    if dtype.is_bool:
        return np.not_equal(value, 0)
    if isinstance(value, np.ndarray):
        return value.astype(np.float64 if dtype.is_float else np.int64)
    return float(value) if dtype.is_float else int(value)
