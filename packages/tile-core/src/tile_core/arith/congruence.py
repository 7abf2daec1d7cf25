"""Which numbers divide the result of an operation."""

from __future__ import annotations

import math
from collections.abc import Callable

from tile_core.ir.expr import BinaryOp

DIVISORS: dict[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.FLOORMOD: math.gcd,
    BinaryOp.TRUNCMOD: math.gcd,
    BinaryOp.MIN: math.gcd,
    BinaryOp.MAX: math.gcd,
    BinaryOp.SHL: lambda a, b: a,
    BinaryOp.BITAND: lambda a, b: max(a & -a, b & -b),
    BinaryOp.BITOR: lambda a, b: math.gcd(a & -a, b & -b),
    BinaryOp.BITXOR: lambda a, b: math.gcd(a & -a, b & -b),
}
"""A number that divides ``x op y``, from numbers that divide `x` and `y`; 0 divides 0 only."""
