"""Conversions between all element types.

In TIR a value of a float type of 8 bits and fewer is its code in a uint8, one per lane, int4 an
int8 and uint4 a uint8; the other types are TIR's own. bfloat16 may also be given as uint16.
"""

from __future__ import annotations

import re

from tile_core.dtypes import DType, Kind, dtype_of
from tile_core.errors import InternalError
from tile_cpu.llvm.builder import Function, Type, Value
from tile_cpu.llvm_memory_access import reinterpret
from tile_cpu.machine import CpuMachine
from tile_cpu.math import narrow
from tile_cpu.math.common import Keep
from tile_cpu.tir.build import dtype_of_expr
from tile_cpu.tir.nodes import PrimExpr, tirx

_SYMBOL = re.compile(r"tile_cast_(\w+)_to_(\w+)_(sat|raw)_x(\d+)")
_EXPONENT_ONLY = "float8_e8m0fnu"


def convert(
    keep: Keep,
    value: PrimExpr,
    source: str,
    target: str,
    lanes: int,
    *,
    saturate: bool = True,
) -> PrimExpr:
    """Return `value` of element type `source` as `target`, both in their TIR form.

    Parameters
    ----------
    keep
        Names the result, unless that is a mask (bool).
    saturate
        What floats of 8 bits and fewer do out of range: their largest number, or their
        infinity or NaN as in ml_dtypes. Formats with neither always saturate.

    Notes
    -----
    To floats: round to nearest even, once. Float to integer: truncates toward zero,
    saturates, NaN becomes 0. Integer to integer wraps. To bool: is not zero; NaN is true.
    """
    if source == target:
        return value
    if dtype_of(source).base == "bfloat16" and "bfloat16" in dtype_of_expr(value):
        value = reinterpret(value, _vector("uint16", lanes))
    symbol = f"tile_cast_{source}_to_{target}_{'sat' if saturate else 'raw'}_x{lanes}"
    result = tirx.call_pure_extern(_vector(_carrier(dtype_of(target)), lanes), symbol, value)
    if target == "bool":
        return result
    result = keep(result)  # as uint16: TVM would make a float32 of a stored bfloat16
    return reinterpret(result, _vector("bfloat16", lanes)) if target == "bfloat16" else result


def encode_narrow(
    keep: Keep, value: PrimExpr, dtype: str, lanes: int, *, saturate: bool = True
) -> PrimExpr:
    """Return float32 or float64 values as codes of a float type of 8 bits and fewer."""
    source = dtype_of_expr(value).partition("x")[0]
    return convert(keep, value, source, dtype_of(dtype).base, lanes, saturate=saturate)


def decode_narrow(keep: Keep, code: PrimExpr, dtype: str, lanes: int) -> PrimExpr:
    """Return codes of a float type of 8 bits and fewer as float32 values."""
    return convert(keep, code, dtype_of(dtype).base, "float32", lanes)


def _vector(dtype: str, lanes: int) -> str:
    return dtype if lanes == 1 else f"{dtype}x{lanes}"


def _carrier(dtype: DType) -> str:
    """Return the TIR type that carries values of `dtype` through a call."""
    if dtype.is_narrow_float or dtype.base == "uint4":
        return "uint8"
    carriers = {"int4": "int8", "bfloat16": "uint16", "tfloat32": "float32"}
    return carriers.get(dtype.base, str(dtype.base))


def _llvm_scalar(dtype: DType) -> str:
    scalars = {"float16": "half", "float64": "double", "float32": "float", "tfloat32": "float"}
    if dtype.base in scalars:
        return scalars[dtype.base]
    return "i1" if dtype.is_bool else f"i{max(dtype.bits, 8)}"


def define(symbol: str, machine: CpuMachine) -> Function | None:
    """Return the LLVM function called `symbol`, or None if it is no conversion."""
    match = _SYMBOL.fullmatch(symbol)
    if match is None:
        return None
    source, target = dtype_of(match[1]), dtype_of(match[2])
    if source.is_handle or target.is_handle:
        raise InternalError(f"{symbol}: addresses are not numbers")
    fn = Function(symbol, machine)
    value = fn.parameter(Type(_llvm_scalar(source), int(match[4])))
    number = _loaded(value, source)
    return fn.finish(_stored(fn, number, source, target, saturate=match[3] == "sat"))


def _loaded(value: Value, source: DType) -> Value:
    """Return what `value` means: float32, double, or an integer."""
    if source.base == "bfloat16":
        return narrow.bfloat_value(value)
    if source.base == "float16":
        return value.to("float")
    if source.base == _EXPONENT_ONLY:
        return narrow.decode_exponent(value)
    if source.is_narrow_float:
        return narrow.decode(narrow.NARROW_FORMATS[source.base], value)
    return value


def _stored(fn: Function, value: Value, source: DType, target: DType, *, saturate: bool) -> Value:
    if target.is_bool:
        return value.ne(0)
    signed = source.kind is Kind.INT
    if target.is_float:
        wide = _as_float(fn, value, target, signed)
        return _rounded(fn, wide, target, saturate)
    if source.is_float:
        return _truncated(value, target)
    return _wrapped(value.to(_llvm_scalar(target), signed=signed), target)


def _as_float(fn: Function, value: Value, target: DType, signed: bool) -> Value:
    """Return a number as the float that `_rounded` rounds next: float32, or double."""
    if value.type.is_float:
        return value.to("double") if target.bits == 64 else value
    if target.bits >= 32 or value.type.bits <= 16:
        scalar = "double" if target.bits == 64 else "float"
        return value.to(scalar, signed=signed)
    if value.type.bits == 64:
        value = _sticky(value, signed)
    return value.to("double", signed=signed)


def _sticky(value: Value, signed: bool) -> Value:
    """Fold the bits of a long integer that a double cannot hold into the last one it can."""
    size = (value.lt(0).where(-value, value)) if signed else value
    low = value & 0x7FF
    folded = (value ^ low) | low.ne(0).where(0x800, value.fn.constant(0, value.type))
    return size.ugt(1 << 53).where(folded, value)


def _rounded(fn: Function, value: Value, target: DType, saturate: bool) -> Value:
    if target.bits == 64:
        return value
    if target.base in ("float32", "tfloat32"):
        return value.to("float")
    if value.type.scalar == "double":
        value = narrow.single_rounded_to_odd(fn, value)
    if target.base == "float16":
        return value.to("half")
    if target.base == "bfloat16":
        return narrow.bfloat_bits(value)
    if target.base == _EXPONENT_ONLY:
        return narrow.encode_exponent(value, saturate=saturate)
    return narrow.encode(narrow.NARROW_FORMATS[target.base], value, saturate=saturate)


def _truncated(value: Value, target: DType) -> Value:
    signed = target.kind is Kind.INT
    low = -(1 << (target.bits - 1)) if signed else 0
    high = (1 << (target.bits - signed)) - 1
    # LLVM's own saturating conversion goes lane by lane.
    number = value.is_nan().where(0.0, value)
    number = number.lt(low).where(low, number)
    if target.bits < 32:  # both bounds are exact in every float type
        number = number.gt(high).where(high, number)
        return number.to_int_in_range("i32").to(f"i{max(target.bits, 8)}")
    beyond = number.ge(float(high + 1))
    inside = beyond.where(0.0, number).to_int_in_range(f"i{target.bits}", signed=signed)
    return beyond.where(high, inside)


def _wrapped(value: Value, target: DType) -> Value:
    if target.bits != 4:
        return value
    return value.shl(4).ashr(4) if target.kind is Kind.INT else value & 15
