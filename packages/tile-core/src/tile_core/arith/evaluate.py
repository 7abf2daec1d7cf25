"""Scalar expressions evaluated on exact numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tile_core.dtypes import DType
from tile_core.errors import InternalError
from tile_core.ir.expr import (
    Binary,
    BinaryOp,
    Cast,
    Const,
    Expr,
    Extent,
    Select,
    Unary,
    UnaryOp,
    Var,
)
from tile_core.ir.free_variables import free_variables
from tile_core.ir.operations import BINARY, UNARY
from tile_launch import symbol_solver


def evaluate(
    root: Extent,
    values: Mapping[Var, Any],
    operators: Mapping[BinaryOp, Callable[[Any, Any], Any]] = BINARY,
) -> Any:
    """Return the value of `root` in exact Python arithmetic, without wrapping.

    Variables have `values`, numbers or whatever the `operators` take, which say what operations of
    two operands do. A shared part is computed once.

    Raises `InternalError` if `root` holds anything but constants, variables of `values`, and
    arithmetic.
    """
    return Evaluation(values, operators).of(root)


class Evaluation:
    """One expression; what occurs in it twice is computed once."""

    unary: Mapping[UnaryOp, Callable[[Any], Any]] = UNARY

    def __init__(
        self, values: Mapping[Var, Any], binary: Mapping[BinaryOp, Callable[[Any, Any], Any]]
    ) -> None:
        self.values, self.binary = values, binary
        self.known: dict[Expr, Any] = {}

    def of(self, node: Extent) -> Any:
        """Return the value of a part."""
        if isinstance(node, int):
            return node
        if node not in self.known:
            self.known[node] = self.computed(node)
        return self.known[node]

    def computed(self, node: Expr) -> Any:
        """Return the value of a part that is met for the first time."""
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
        """Return what a variable is."""
        return self.values[node]

    def chosen(self, node: Select) -> Any:
        """Return one of two values."""
        return self.of(node.then if self.of(node.cond) else node.otherwise)

    def converted(self, value: Any, dtype: DType) -> Any:
        """Return a value as `dtype`."""
        if dtype.is_float:
            return float(value)
        return int(value) if isinstance(value, float | bool) else value

    def other(self, node: Expr) -> Any:
        """Return the value of what is no arithmetic."""
        raise InternalError(f"{type(node).__name__} cannot be evaluated on the host")


def solve(equations: Iterable[tuple[Extent, int]], values: dict[Var, Any]) -> None:
    """Add to `values` every symbol that equations ``extent == number`` determine.

    See `tile_launch.symbol_solver.solve`.
    """
    symbol_solver.solve(equations, values, Var, free_variables, evaluate)
