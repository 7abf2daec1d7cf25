"""Indices of tile IR as formulas over the variables of a loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from tile_core.arith.constraints import ConstraintSet
from tile_core.errors import LayoutError
from tile_core.ir.build_expr import binary
from tile_core.ir.expr import Binary, BinaryOp, Cast, Const, Expr, Extent, Var
from tile_core.ir.node import Node, substitute
from tile_core.layout.formulas import as_index, coordinate
from tile_core.records import dataclass

MOST_VALUES = 4096
"""A variable from outside of the loop with more values than that is not followed."""


@dataclass(slots=True)
class IndexReader:
    """Reads the indices of one access in a parallel loop.

    Coordinates 0, 1, … of the formulas are the loop's variables. Behind them stand `serial`
    coordinates: whatever else takes several values while one thread runs an iteration, such
    as a sequential loop inside or outside, and indices that no formula describes. `axes` has the
    coordinate of each loop variable, `serial` the extents of the further coordinates found so far,
    `names` what names bound in the loop stand for; `env` is what is known in its body.
    """

    axes: Mapping[Var, int]
    env: ConstraintSet
    names: dict[Node, Node] = field(default_factory=dict)
    serial: list[int] = field(default_factory=list)
    extra: dict[Var, int] = field(default_factory=dict)

    def read(self, index: Extent, extent: int) -> Expr:
        """Return the formula of `index` into a dimension of `extent` elements."""
        if isinstance(index, int):
            return as_index(index)
        expr = substitute(index, self.names) if self.names else index
        before, known = len(self.serial), dict(self.extra)
        found = self._formula(expr)
        if found is None:
            del self.serial[before:]
            self.extra = known
            self.serial.append(extent)  # any element
            return coordinate(len(self.axes) + before)
        return found

    def _formula(self, expr: Expr) -> Expr | None:
        match expr:
            case Const(value=value):
                return as_index(int(value))
            case Var():
                return self._variable(expr)
            case Cast(value=value, dtype=dtype) if dtype.is_int and value.dtype.is_int:
                return self._formula(value)
            case Binary(op=op, a=a, b=b):
                left, right = self._formula(a), self._formula(b)
                if left is None or right is None:
                    return None
                return _combined(op, left, right)
        return None

    def _variable(self, var: Var) -> Expr | None:
        if var in self.axes:
            return coordinate(self.axes[var])
        if var not in self.extra:
            range_of = self.env.bounds(var)
            if range_of.low is None or range_of.low < 0 or range_of.high is None:
                return None
            if range_of.high >= MOST_VALUES:
                return None
            self.extra[var] = len(self.serial)
            self.serial.append(int(range_of.high) + 1)
        return coordinate(len(self.axes) + self.extra[var])


def _combined(op: BinaryOp, a: Expr, b: Expr) -> Expr | None:
    if isinstance(b, Const):
        value = int(b.value)
        match op:
            case BinaryOp.SHL:
                op, b = BinaryOp.MUL, as_index(1 << value)
            case BinaryOp.SHR:
                op, b = BinaryOp.FLOORDIV, as_index(1 << value)
            case BinaryOp.BITAND if value & (value + 1) == 0:
                op, b = BinaryOp.FLOORMOD, as_index(value + 1)
    try:
        as_index(Binary(op, a, b, a.dtype))
    except LayoutError:  # no operation of formulas, or a divisor that is not a positive constant
        return None
    return binary(op, a, b)
