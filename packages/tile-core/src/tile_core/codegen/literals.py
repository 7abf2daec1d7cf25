"""Numbers and texts as C++ literals that denote exactly the same value."""

from __future__ import annotations

import math
import struct

from tile_core.codegen.types import cpp_type
from tile_core.dtypes import DType

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
