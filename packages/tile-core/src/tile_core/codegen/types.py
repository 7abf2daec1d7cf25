"""What element types are called in printed C++, and literals that denote exactly one value."""

from __future__ import annotations

import math
import struct

from tile_core.dtypes import DType
from tile_core.errors import InternalError

CPP_TYPES = {
    "bool": "bool",
    "int4": "tile::i4",
    "int8": "tile::i8",
    "int16": "tile::i16",
    "int32": "int",
    "int64": "tile::i64",
    "uint4": "tile::u4",
    "uint8": "tile::u8",
    "uint16": "tile::u16",
    "uint32": "tile::u32",
    "uint64": "tile::u64",
    "float16": "half_t",
    "bfloat16": "bfloat16_t",
    "tfloat32": "float",
    "float32": "float",
    "float64": "double",
    "float8_e3m4": "tile::e3m4",
    "float8_e4m3fn": "tile::e4m3",
    "float8_e4m3fnuz": "tile::e4m3_fnuz",
    "float8_e4m3b11fnuz": "tile::e4m3_b11_fnuz",
    "float8_e5m2": "tile::e5m2",
    "float8_e5m2fnuz": "tile::e5m2_fnuz",
    "float8_e8m0fnu": "tile::e8m0",
    "float6_e2m3fn": "tile::e2m3",
    "float6_e3m2fn": "tile::e3m2",
    "float4_e2m1fn": "tile::e2m1",
    "float4_e2m1_unpacked": "tile::e2m1",
    "handle": "tile::u64",
}
"""By the scalar's name. Types of fewer than 8 bits have a byte to themselves."""


def cpp_type(dtype: DType) -> str:
    """Return the C++ type of one scalar."""
    if dtype.lanes != 1:
        raise InternalError(f"a vector of type {dtype} reached the printer")
    return CPP_TYPES[dtype.base]


def is_small_int(dtype: DType) -> bool:
    """Whether C++ computes in int where the language computes in `dtype`."""
    return dtype.is_int and dtype.bits < 32


_INT32_MAX = 2**31 - 1
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def literal(value: int | float, dtype: DType) -> str:
    """Return a constant of type `dtype`; negative numbers start with a minus sign."""
    if dtype.is_bool:
        return "true" if value else "false"
    if dtype.is_float:
        return _float(float(value), dtype)
    return _integer(int(value), dtype)


def is_bare(value: int | float) -> bool:
    """Whether an integer can stand as it is next to an operand of 64 bits."""
    return -_INT32_MAX <= value <= _INT32_MAX


def _integer(value: int, dtype: DType) -> str:
    match dtype.base:
        case "int32":
            return "-2147483647 - 1" if value < -_INT32_MAX else str(value)
        case "uint32":
            return f"{value}u"
        case "int64":
            if value < -(2**63) + 1:
                return "tile::i64(-9223372036854775807ll - 1)"
            return f"tile::i64({value}{'' if is_bare(value) else 'll'})"
        case "uint64" | "handle":
            return f"tile::u64({value}{'' if value <= _INT32_MAX else 'ull'})"
    return f"{cpp_type(dtype)}({value})"


def _float(value: float, dtype: DType) -> str:
    if dtype.base == "float64":
        return _special(value) or _with_point(repr(value))
    if dtype.base in ("float32", "tfloat32"):
        return _special(value) or float32_literal(value)
    if dtype.bits == 16:
        value = float(dtype.numpy().type(value))
    return f"tile::cast<{cpp_type(dtype)}>({_special(value) or float32_literal(value)})"


def _special(value: float) -> str | None:
    """Return what ``tile.h`` calls numbers that have no literal."""
    if math.isnan(value):
        return "TILE_NAN"
    if math.isinf(value):
        return "TILE_INFINITY" if value > 0 else "-TILE_INFINITY"
    return None


def float32_literal(value: float) -> str:
    """Return the shortest literal of the float32 nearest to `value`."""
    exact = _to_float32(value)
    if math.isinf(exact):
        return "TILE_INFINITY" if exact > 0 else "-TILE_INFINITY"
    for digits in range(1, 10):
        text = f"{exact:.{digits}g}"
        if _to_float32(float(text)) == exact:
            break
    short = repr(float(text))  # 1e+02 is better read as 100.0
    return f"{_with_point(short)}f"


def _to_float32(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _with_point(text: str) -> str:
    return text if "." in text or "e" in text else f"{text}.0"


def string_literal(text: str) -> str:
    """Return `text` as a C string; what is no printable ASCII is escaped byte by byte."""
    return '"' + "".join(_escaped(c) for c in text) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if " " <= char <= "~":
        return char
    return "".join(f"\\{byte:03o}" for byte in char.encode())
