"""Scalar expressions evaluated on whole arrays of points at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from tile_core.arith.evaluate import Evaluation
from tile_core.dtypes import DType
from tile_core.ir.expr import BinaryOp, Call, Expr, Extent, Load, Select, UnaryOp, Var
from tile_core.ir.operations import BINARY, UNARY

Number: TypeAlias = "int | float | np.ndarray[Any, Any]"


class Unknown(Exception):
    """A value that only a run of the kernel tells. Callers assume something, and say so."""


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

    Arrays of `values` broadcast against each other; `names` are what other variables were bound
    to. An element of a buffer is taken for `loads`; None makes it unknown.

    Raises `Unknown` if it depends on more than these.
    """
    return _OfArrays(values, names, loads).of(root)  # type: ignore[no-any-return]


def _quotient(a: Any, b: Any) -> Any:
    return np.floor_divide(a, np.where(np.equal(b, 0), 1, b))


def _truncated(a: Any, b: Any) -> Any:
    return np.sign(a) * np.sign(b) * _quotient(np.abs(a), np.abs(b))


class _OfArrays(Evaluation):
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
