"""How element types look in memory and in registers.

A *memory* type is the TIR type of one stored element. A *value* type is the TIR type scalars
are computed in: floats of 16 bits and fewer become float32, four-bit integers int8 or uint8.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from tile_core.dtypes import DType, Kind
from tile_cpu.tir.build import i32, i64, prim
from tile_cpu.tir.nodes import Broadcast, Cast, FloatImm, IntImm, PointerType, PrimExpr, tirx


def memory_type(dtype: DType) -> str:
    """Return the TIR type in which one element of `dtype` (two, if of 4 bits) is stored."""
    if dtype.is_handle:
        return "uint64"
    if dtype.is_bool or dtype.is_narrow_float or dtype.base == "uint4":
        return "uint8"
    if dtype.base == "int4":
        return "int8"
    if dtype.base == "bfloat16":
        return "uint16"  # TVM would turn scratch of its own bfloat16 into float32
    return "float32" if dtype.base == "tfloat32" else str(dtype.base)


def value_type(dtype: DType) -> str:
    """Return the TIR type in which scalars of `dtype` are computed."""
    if dtype.is_bool:
        return "bool"
    if dtype.is_handle:
        return "handle"
    if dtype.is_float:
        return "float64" if dtype.bits == 64 else "float32"
    if dtype.bits == 4:
        return "int8" if dtype.kind is Kind.INT else "uint8"
    return str(dtype.base)


def scalar_name(value: PrimExpr) -> str:
    """Return the element type of a TIR value, without lanes."""
    if isinstance(value.ty, PointerType):
        return "handle"
    return str(value.ty.dtype).partition("x")[0]


def lanes_of(value: PrimExpr) -> int:
    """Return the number of lanes of a TIR value."""
    if isinstance(value.ty, PointerType):
        return 1
    return int(str(value.ty.dtype).partition("x")[2] or 1)


def number(value: int | float, dtype: str, lanes: int = 1) -> PrimExpr:
    """Return a constant of the TIR type `dtype`, repeated `lanes` times."""
    if dtype.startswith("float"):
        scalar = FloatImm(dtype, float(value))
    elif dtype == "int32":
        scalar = i32(int(value))
    elif dtype == "int64":
        scalar = i64(int(value))
    elif dtype == "uint64" and value >= 2**63:
        low, high = int(value) & 0xFFFFFFFF, int(value) >> 32
        scalar = Cast(prim("uint64"), IntImm("uint32", high)) * IntImm("uint64", 2**32)
        scalar = scalar + IntImm("uint64", low)
    else:
        scalar = IntImm(dtype, int(value))
    return scalar if lanes == 1 else Broadcast(scalar, lanes)


def spread(value: PrimExpr, lanes: int) -> PrimExpr:
    """Return `value` with `lanes` lanes, repeating a scalar."""
    return value if lanes_of(value) == lanes else Broadcast(value, lanes)


def together(*values: PrimExpr) -> tuple[PrimExpr, ...]:
    """Return the values with equally many lanes, repeating scalars."""
    lanes = max(lanes_of(v) for v in values)
    return tuple(spread(v, lanes) for v in values)


def all_of(conditions: Iterable[PrimExpr | None]) -> PrimExpr | None:
    """Return whether all of `conditions` hold; None is one that certainly does, and so is none."""
    unsure = [condition for condition in conditions if condition is not None]
    return reduce(tirx.And, unsure) if unsure else None


def is_zero(value: PrimExpr) -> bool:
    """Whether `value` is a constant 0."""
    return isinstance(value, (IntImm, FloatImm)) and float(value.value) == 0.0
