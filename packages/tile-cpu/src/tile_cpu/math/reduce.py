"""Horizontal reductions: the lanes of one vector combined into a scalar, pairwise."""

from __future__ import annotations

import re
from collections.abc import Callable

from tile_core.errors import InternalError
from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.llvm.builder import Function, Type, Value
from tile_cpu.math import exact
from tile_cpu.math.common import Keep
from tile_cpu.tir.build import dtype_of_expr
from tile_cpu.tir.nodes import PrimExpr, tirx

_SYMBOL = re.compile(r"tile_reduce_(\w+)_([fiu]\d+)x(\d+)")
_SCALARS = {"f32": "float", "f64": "double"}
Combine = Callable[[Function, Value, Value], Value]
_FLOATS: dict[str, Combine] = {
    "sum": lambda fn, a, b: a + b,
    "max_number": lambda fn, a, b: b.lt(a).where(a, b),
    "min_number": lambda fn, a, b: a.lt(b).where(a, b),
    "max_nan": exact.maximum_or_nan,
    "min_nan": exact.minimum_or_nan,
}
_INTEGERS: dict[str, Combine] = {
    "sum": lambda fn, a, b: a + b,
    "and": lambda fn, a, b: a & b,
    "or": lambda fn, a, b: a | b,
    "xor": lambda fn, a, b: a ^ b,
}
_TABLES = {
    "f": _FLOATS,
    "i": {**_INTEGERS, "max": exact.maximum, "min": exact.minimum},
    "u": {**_INTEGERS, "max": exact.maximum_unsigned, "min": exact.minimum_unsigned},
}


def horizontal(keep: Keep, vector: PrimExpr, kind: str, *, lanes: int) -> PrimExpr:
    """Return one scalar made of all lanes: halves are combined until one lane is left.

    `kind` is ``sum``; for float32 and float64 ``max_nan``, ``min_nan`` (a NaN wins),
    ``max_number`` or ``min_number`` (there is no NaN); for integers ``max``, ``min``, ``and``,
    ``or`` or ``xor``.

    Raises
    ------
    InternalError
        If the elements have no such reduction.
    """
    dtype = dtype_of_expr(vector).partition("x")[0]
    code = {"float": "f", "int": "i", "uint": "u"}.get(dtype.rstrip("0123456789"), "")
    if kind not in _TABLES.get(code, {}):
        raise InternalError(f"no reduction {kind!r} of {dtype}")
    if lanes == 1:
        return vector
    bits = dtype.lstrip("floatuin")
    return keep(tirx.call_pure_extern(dtype, f"tile_reduce_{kind}_{code}{bits}x{lanes}", vector))


def define(symbol: str, machine: CpuMachine) -> Function | None:
    """Return the LLVM function called `symbol`, or None if it is no reduction."""
    match = _SYMBOL.fullmatch(symbol)
    combine = _TABLES[match[2][0]].get(match[1]) if match else None
    if match is None or combine is None:
        return None
    fn, code, lanes = Function(symbol, machine), match[2], int(match[3])
    vector = fn.parameter(Type(_SCALARS.get(code, f"i{code[1:]}"), lanes))
    return fn.finish(_fold(fn, vector, combine))


def _fold(fn: Function, vector: Value, combine: Combine) -> Value:
    lanes = vector.type.lanes
    if lanes == 1:
        return vector
    half = lanes // 2
    folded = combine(fn, vector.lanes(range(half)), vector.lanes(range(half, 2 * half)))
    result = _fold(fn, folded, combine)
    return combine(fn, result, vector.lanes([lanes - 1])) if lanes % 2 else result
