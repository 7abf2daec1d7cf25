"""Numbers as the interpreter holds them: carriers, rounding, conversion, bits.

A value of element type `dtype` is computed with in its *carrier*, a plain NumPy type that
holds every value of `dtype` exactly: float32 for all floats of 32 bits and fewer, int8 and
uint8 for four-bit integers, itself for everything else. In memory it has its *stored* form:
`DType.numpy`, or a nibble in a uint8 for four-bit types.

Arrays of values have a leading axis of lanes (1 where all lanes agree) and, for vector
types, a trailing axis of vector elements. They are never changed in place.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from tile_core.dtypes import DType
from tile_core.ir.build_expr import integer_bounds

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

_WITHOUT_NAN = frozenset(
    {"float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "float4_e2m1_unpacked"}
)


@cache
def carrier(dtype: DType) -> np.dtype[Any]:
    """Return the NumPy type that values of `dtype` are computed with in."""
    if dtype.is_bool:
        return np.dtype(np.bool_)
    if dtype.is_handle:
        return np.dtype(np.uint64)
    if dtype.is_float:
        return np.dtype(np.float64 if dtype.base == "float64" else np.float32)
    return np.dtype(f"{dtype.kind.value}{max(8, dtype.bits)}")


@cache
def element_bits(dtype: DType) -> int:
    """Return the distance of neighbours in memory, in bits: 4, or a multiple of 8."""
    return 4 if dtype.bits == 4 else -(-dtype.bits // 8) * 8


def decode(stored: Array, dtype: DType) -> Array:
    """Return stored elements in their carrier."""
    if dtype.bits == 4:
        if dtype.is_float:
            result: Array = stored.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
            return result
        return _wrap4(stored, dtype)
    if dtype.base == "float4_e2m1_unpacked":
        stored = (stored.view(np.uint8) & np.uint8(15)).view(ml_dtypes.float4_e2m1fn)
    return stored.astype(carrier(dtype), copy=False)


def encode(values: Array, dtype: DType) -> Array:
    """Return carried values of `dtype` in their stored form; they are exact in it."""
    if dtype.bits == 4:
        if dtype.is_float:
            bits = values.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
        else:
            bits = values.astype(np.uint8)
        return np.asarray(bits & np.uint8(15))
    return values.astype(dtype.numpy(), copy=False)


def _wrap4(values: Array, dtype: DType) -> Array:
    low = values & 15
    if dtype.kind.value == "uint":
        return low.astype(np.uint8)
    return ((low.astype(np.int8) ^ 8) - 8).astype(np.int8)


def settle(values: Array, dtype: DType, *, saturate: bool = True) -> Array:
    """Return computed `values` (carrier, or wider) as values of `dtype`, in its carrier.

    Integers wrap, floats round to nearest even once; floats of 8 bits and fewer saturate
    unless told otherwise.
    """
    if dtype.is_float:
        return _round(values, dtype, saturate)
    if dtype.bits == 4:
        return _wrap4(values, dtype)
    return values.astype(carrier(dtype), copy=False)


def _round(values: Array, dtype: DType, saturate: bool) -> Array:
    base = dtype.base
    if base in ("float64", "float32", "tfloat32"):
        return values.astype(carrier(dtype), copy=False)
    if base == "float16":
        return values.astype(np.float16).astype(np.float32)
    values = _odd_float32(values)
    if base == "bfloat16":
        return values.astype(ml_dtypes.bfloat16).astype(np.float32)
    stored = dtype.numpy()
    limit = float(ml_dtypes.finfo(stored).max)
    if base in _WITHOUT_NAN:
        values = np.where(np.isnan(values), np.float32(limit), values)
    if base == "float8_e8m0fnu":
        smallest = float(ml_dtypes.finfo(stored).smallest_normal)
        values = np.where(values >= 0, np.maximum(values, np.float32(smallest)), np.float32("nan"))
    if saturate or base in _WITHOUT_NAN:
        values = np.clip(values, np.float32(-limit), np.float32(limit))
    return values.astype(stored).astype(np.float32)


def _odd_float32(values: Array) -> Array:
    """Round float64 to float32 so that rounding once more gives what one rounding would.

    Inexact results get an odd last bit: they are never mistaken for a tie.
    """
    if values.dtype != np.float64:
        return values.astype(np.float32, copy=False)
    near = values.astype(np.float32)
    inexact = np.isfinite(near) & (near.astype(np.float64) != values)
    beyond = inexact & (np.abs(near.astype(np.float64)) > np.abs(values))
    below = np.where(beyond, np.nextafter(near, np.float32(0)), near)
    odd = (below.view(np.uint32) | np.uint32(1)).view(np.float32)
    return np.where(inexact, odd, near)


def convert(values: Array, source: DType, target: DType, *, saturate: bool = True) -> Array:
    """Return `values` of `source` converted to `target` by the rules of `Cast`.

    Float to integer truncates toward zero, saturates, and takes NaN to 0; integer to integer
    wraps; a number is true unless it is zero.
    """
    if source.base == target.base:
        return values
    if target.is_bool:
        result: Array = values != 0
        return result
    if target.is_float:
        if not source.is_float and target.base not in ("float32", "tfloat32", "float64"):
            values = values.astype(np.float64)
        return settle(values, target, saturate=saturate)
    if source.is_float:
        return _float_to_int(values, target)
    return settle(values.astype(carrier(target)), target)


def _float_to_int(values: Array, target: DType) -> Array:
    low, high = integer_bounds(target)
    whole = np.trunc(
        np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    )
    top = float(high) if float(high) <= high else float(np.nextafter(float(high), 0))
    inside = np.clip(whole, float(low), top).astype(carrier(target))
    full = np.asarray(high).astype(carrier(target))
    return np.where(whole >= float(high), full, inside)


def constant(value: int | float, dtype: DType) -> Array:
    """Return a Python number as a uniform value of `dtype`, shape (1,)."""
    if dtype.is_float:
        with np.errstate(all="ignore"):
            return settle(np.array([value], np.float64), dtype)
    if dtype.is_bool:
        return np.array([bool(value)])
    bits = max(8, dtype.bits)
    unsigned = np.array([int(value) & (2**bits - 1)], np.dtype(f"uint{bits}"))
    return settle(unsigned.view(carrier(dtype)), dtype)


def to_bytes(values: Array, dtype: DType) -> Array:
    """Return the bits of `values` as uint8, the lanes of a vector side by side."""
    stored = encode(values, dtype)
    rows = stored.reshape(stored.shape[0], -1)
    if dtype.bits == 4 and dtype.lanes % 2 == 0:
        result: Array = rows[:, 0::2] | (rows[:, 1::2] << np.uint8(4))
        return result
    return np.ascontiguousarray(rows).view(np.uint8)


def from_bytes(raw: Array, dtype: DType) -> Array:
    """Return the values whose bits are the rows of `raw`; the inverse of `to_bytes`."""
    if dtype.bits == 4 and dtype.lanes % 2 == 0:
        rows = np.stack([raw & np.uint8(15), raw >> np.uint8(4)], axis=-1)
        rows = rows.reshape(raw.shape[0], -1)
    else:
        unit = np.dtype(np.uint8) if dtype.bits == 4 else dtype.numpy()
        rows = np.ascontiguousarray(raw).view(unit)
    values = decode(rows, dtype)
    return values if dtype.lanes > 1 else values[:, 0]
