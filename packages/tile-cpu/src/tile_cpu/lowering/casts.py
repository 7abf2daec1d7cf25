"""Conversions between element types, in registers and to and from memory."""

from __future__ import annotations

from tile_core.dtypes import DType, Kind
from tile_cpu.llvm_memory_access import reinterpret
from tile_cpu.lowering.context import Context
from tile_cpu.lowering.types import lanes_of, memory_type, number, scalar_name, value_type
from tile_cpu.tir.build import extern, llvm_pure, prim, with_lanes
from tile_cpu.tir.nodes import Cast, IntImm, PrimExpr, Select, tirx


def convert(
    ctx: Context, value: PrimExpr, source: DType, target: DType, *, saturate: bool = True
) -> PrimExpr:
    """Return `value` of tile type `source` as tile type `target`, both in value types.

    Floats to integers truncate toward zero, saturate and turn NaN into 0; integers to
    integers wrap; floats round to nearest even, those of 8 bits and fewer saturating if
    `saturate`.
    """
    if source.base == target.base:
        return value
    lanes = lanes_of(value)
    if target.is_bool:
        return truth(ctx, value)
    if source.is_bool:
        one, zero = (number(v, value_type(target), lanes) for v in (1, 0))
        return Select(value, one, zero)
    if source.is_float and target.is_float:
        return _float_to_float(ctx, value, source, target, saturate)
    if source.is_float:
        return _float_to_int(ctx, value, target)
    if target.is_float:
        wide = Cast(prim(value_type(target), lanes), value)
        return rounded(ctx, wide, target, saturate=saturate)
    if scalar_name(value) == value_type(target) and target.bits != 4:
        return value
    if isinstance(value, IntImm):
        return number(wrapped_constant(int(value.value), target), value_type(target))
    return wrapped(_int_to_int(value, value_type(target)), target)


def _int_to_int(value: PrimExpr, kind: str) -> PrimExpr:
    """Return an integer modulo the width of the TIR type `kind`.

    TVM takes a conversion that loses bits for a mistake as soon as its operand becomes a
    constant: what is left must fit.
    """
    lanes, width = lanes_of(value), int(kind.lstrip("uint"))
    signed, unsigned = (with_lanes(f"{sign}int{width}", lanes) for sign in ("", "u"))
    have = scalar_name(value)
    given = int(have.lstrip("uint"))
    if given < width:
        if not (kind.startswith("u") and not have.startswith("u")):
            return Cast(prim(kind, lanes), value)
        return reinterpret(Cast(prim(signed), value), unsigned)
    if given > width:
        low = tirx.bitwise_and(value, number((1 << width) - 1, have, lanes))
        value = Cast(prim(unsigned), low)
        return value if kind.startswith("u") else reinterpret(value, signed)
    return reinterpret(value, unsigned if kind.startswith("u") else signed)


def truth(ctx: Context, value: PrimExpr) -> PrimExpr:
    """Return ``value != 0``; true for NaN."""
    kind, lanes = scalar_name(value), lanes_of(value)
    if kind == "bool":
        return value
    if not kind.startswith("float"):
        return tirx.NE(value, number(0, kind, lanes))
    # On the bits, less the sign: TVM's comparison of floats is false for NaN.
    width = "uint64" if kind == "float64" else "uint32"
    bits = reinterpret(value, with_lanes(width, lanes))
    return tirx.NE(tirx.shift_left(bits, number(1, width, lanes)), number(0, width, lanes))


def wrapped_constant(value: int, dtype: DType) -> int:
    """Return a constant reduced to the width of an integer type: TVM refuses those too wide."""
    low = value & ((1 << dtype.bits) - 1)
    return low - (1 << dtype.bits) if dtype.kind is Kind.INT and low >> (dtype.bits - 1) else low


def wrapped(value: PrimExpr, dtype: DType) -> PrimExpr:
    """Return an integer reduced to the width of `dtype`; only four-bit types need it."""
    if dtype.bits != 4 or not dtype.is_int:
        return value
    kind, lanes = value_type(dtype), lanes_of(value)
    if dtype.kind is Kind.UINT:
        return tirx.bitwise_and(value, number(15, kind, lanes))
    four = number(4, kind, lanes)
    return tirx.shift_right(tirx.shift_left(value, four), four)


def rounded(ctx: Context, value: PrimExpr, dtype: DType, *, saturate: bool = True) -> PrimExpr:
    """Return a float value rounded to the nearest one of `dtype`, still in its value type."""
    if dtype.bits > 16:
        return value
    if dtype.is_narrow_float and scalar_name(value) == "float32":
        from tile_cpu.math.narrow import round_narrow

        return round_narrow(ctx.keep, value, dtype, lanes_of(value), saturate=saturate)
    return decode(ctx, encode(ctx, value, dtype, saturate=saturate), dtype)


def _float_to_float(
    ctx: Context, value: PrimExpr, source: DType, target: DType, saturate: bool
) -> PrimExpr:
    if target.bits == 64:
        return Cast(prim("float64", lanes_of(value)), value)
    if target.base in ("float32", "tfloat32"):
        return Cast(prim("float32", lanes_of(value)), value) if source.bits == 64 else value
    if _contains(target, source):
        return value
    return rounded(ctx, value, target, saturate=saturate)


def _contains(wide: DType, narrow: DType) -> bool:
    """Whether every value of `narrow` is one of `wide`: no rounding is needed."""
    if wide.base not in ("float16", "bfloat16"):
        return False
    return narrow.is_narrow_float and narrow.base != "float8_e8m0fnu"


def _float_to_int(ctx: Context, value: PrimExpr, target: DType) -> PrimExpr:
    lanes = lanes_of(value)
    signed = target.kind is Kind.INT
    name = "llvm.fptosi.sat" if signed else "llvm.fptoui.sat"
    result = llvm_pure(with_lanes(value_type(target), lanes), name, value)
    if target.bits != 4:
        return result
    low, high = (-8, 7) if signed else (0, 15)
    kind = value_type(target)
    kept = ctx.keep(result)
    return tirx.Max(tirx.Min(kept, number(high, kind, lanes)), number(low, kind, lanes))


def encode(
    ctx: Context,
    value: PrimExpr,
    dtype: DType,
    *,
    saturate: bool = True,
    for_products: bool = False,
) -> PrimExpr:
    """Return a value as it is stored in memory (four-bit elements: one per byte).

    Subnormal bfloat16 values may become zeros `for_products`: instructions that multiply take them
    so.
    """
    lanes = lanes_of(value)
    if dtype.is_bool:
        return Cast(prim("uint8", lanes), value)
    if dtype.is_handle:
        return tirx.reinterpret("uint64", value)
    if not dtype.is_float or dtype.bits >= 32:
        return value
    if dtype.base == "float16":
        return Cast(prim("float16", lanes), value)
    if scalar_name(value) == "float64":
        value = Cast(prim("float32", lanes), value)
    if dtype.base == "bfloat16":
        return _bf16_bits(ctx, value, for_products)
    from tile_cpu.math.narrow import encode_narrow

    return encode_narrow(ctx.keep, value, dtype, lanes, saturate=saturate)


def decode(ctx: Context, stored: PrimExpr, dtype: DType) -> PrimExpr:
    """Return a stored element (four-bit elements: one per byte) as a value."""
    lanes = lanes_of(stored)
    if dtype.is_bool:
        return tirx.NE(stored, number(0, "uint8", lanes))
    if dtype.is_handle:
        return tirx.reinterpret("handle", stored)
    if not dtype.is_float or dtype.bits >= 32:
        return stored
    if dtype.base == "float16":
        return Cast(prim("float32", lanes), stored)
    if dtype.base == "bfloat16":
        wide = Cast(prim("uint32", lanes), stored)
        shifted = tirx.shift_left(wide, number(16, "uint32", lanes))
        return reinterpret(shifted, with_lanes("float32", lanes))
    from tile_cpu.math.narrow import decode_narrow

    return decode_narrow(ctx.keep, stored, dtype, lanes)


def _bf16_bits(ctx: Context, value: PrimExpr, for_products: bool) -> PrimExpr:
    """Round to nearest even on the bits, so that NaN stays NaN whatever TVM simplifies."""
    lanes = lanes_of(value)
    if lanes > 1:
        name = f"tile_{'narrow' if for_products else 'round'}_bf16_x{lanes}"
        bits = extern(with_lanes("int16", lanes), name, value)
        return reinterpret(bits, with_lanes("uint16", lanes))
    bits = ctx.keep(reinterpret(value, "uint32"))

    def n(constant: int) -> PrimExpr:
        return number(constant, "uint32")

    odd = tirx.bitwise_and(tirx.shift_right(bits, n(16)), n(1))
    near = tirx.shift_right(bits + n(0x7FFF) + odd, n(16))
    magnitude = tirx.bitwise_and(bits, n(0x7FFFFFFF))
    quiet = tirx.bitwise_or(tirx.shift_right(bits, n(16)), n(64))
    result = Select(tirx.GT(magnitude, n(0x7F800000)), quiet, near)
    return Cast(prim("uint16"), result)


def bitcast(ctx: Context, value: PrimExpr, source: DType, target: DType) -> PrimExpr:
    """Return the bits of `value` read as `target`; both have one width per lane."""
    stored = encode(ctx, value, source)
    stored = reinterpret(stored, memory_type(target), lanes_of(stored))
    return wrapped(decode(ctx, stored, target), target)
