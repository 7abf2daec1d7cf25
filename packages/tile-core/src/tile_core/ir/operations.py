"""What the operators of scalar expressions compute, in exact arithmetic on numbers of Python."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tile_core.ir.expr import BinaryOp, UnaryOp
from tile_launch.expressions import OPERATIONS

BINARY: dict[BinaryOp, Callable[[Any, Any], Any]] = {
    **{op: OPERATIONS[op.value][1] for op in BinaryOp},
    BinaryOp.SHL: operator.lshift,
    BinaryOp.SHR: operator.rshift,
}
"""Operators of two operands. Those that Python spells as operators do for arrays, too."""

UNARY: dict[UnaryOp, Callable[[Any], Any]] = {
    UnaryOp.NEG: operator.neg,
    UnaryOp.NOT: operator.not_,
    UnaryOp.BITNOT: operator.invert,
}
"""Operators of one operand."""

DIVISIONS = frozenset({BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD})
"""Divisions and remainders of integers: nothing is the result for a divisor of 0."""
