"""`tile::cast` between all pairs of element types, against NumPy and ml_dtypes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tile_sim.sources import SourceKernel

CPP = {
    "bool": "bool",
    "int8": "tile::i8", "int16": "tile::i16", "int32": "int", "int64": "tile::i64",
    "uint8": "tile::u8", "uint16": "tile::u16", "uint32": "tile::u32", "uint64": "tile::u64",
    "float16": "half_t", "bfloat16": "bfloat16_t", "float32": "float", "float64": "double",
    "float8_e4m3fn": "tile::e4m3", "float8_e5m2": "tile::e5m2",
    "float8_e4m3fnuz": "tile::e4m3_fnuz", "float8_e5m2fnuz": "tile::e5m2_fnuz",
    "float8_e4m3b11fnuz": "tile::e4m3_b11_fnuz",
    "float8_e3m4": "tile::e3m4", "float8_e8m0fnu": "tile::e8m0",
    "float6_e2m3fn": "tile::e2m3", "float6_e3m2fn": "tile::e3m2", "float4_e2m1fn": "tile::e2m1",
}  # fmt: skip
NARROW = [name for name in CPP if name.startswith(("float4_", "float6_", "float8_"))]
INTEGERS = [name for name in CPP if "int" in name]
COUNT = 256


def _source(source: str) -> str:
    outputs = ", ".join(f"tile::gptr<{t}> {n.upper()}" for n, t in CPP.items())
    stores = "\n".join(f"  {n.upper()}[tid] = tile::cast<{t}>(A[tid]);" for n, t in CPP.items())
    return f"""#include "tile.h"
TILE_KERNEL({COUNT}, 1) void casts(tile::gptr<const {CPP[source]}> A, {outputs}) {{
  const int tid = threadIdx.x;
{stores}
}}
TILE_EXPORT(casts)
"""


def _values(dtype: str) -> np.ndarray:
    """Return every code of a type of 8 bits, or ends, ties and random numbers of others."""
    if dtype == "bool":
        return np.arange(COUNT) % 3 == 0
    if dtype in NARROW or dtype in ("int8", "uint8"):
        bits = ml_dtypes.finfo(dtype).bits if dtype in NARROW else 8
        return (np.arange(COUNT) % 2**bits).astype(np.uint8).view(np.dtype(dtype))
    rng = np.random.default_rng(7)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        ends = [0, 1, 2, 127, 128, 255, 256, info.max, info.max - 1, info.min, info.min + 1]
        ends = [v for v in ends if info.min <= v <= info.max]
        ends += [v for v in (2**24 + 1, 2**25 + 2, 2**31 - 1, 2**31, 65519, 65520) if v <= info.max]
        drawn = rng.integers(info.min, info.max, COUNT - len(ends), np.dtype(dtype), endpoint=True)
        shifts = rng.integers(0, info.bits - 1, len(drawn)).astype(drawn.dtype)
        return np.concatenate([np.array(ends, np.dtype(dtype)), drawn >> shifts])
    ends = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -1.5, 448, 463, 464, 465, 479, 57344, 61440, 65504,
            65519, 65520, 1e30, -1e30, 127.5, 255.5, -128.9, 2147483648.0, -2147483648.0,
            4294967295.0, 9.3e18, -9.3e18, 1.9e19, np.inf, -np.inf, np.nan, 2.0**-9, 2.0**-10,
            3 * 2.0**-11, 2.0**-17, 1e-40, 6.0, 7.0, 5.0, 28.0, 30.0, 7.75]  # fmt: skip
    scale = 2.0 ** rng.integers(-20, 40, COUNT - len(ends))
    drawn = np.concatenate([np.array(ends), rng.standard_normal(COUNT - len(ends)) * scale])
    with np.errstate(over="ignore"):
        return drawn.astype(np.float32).astype(np.dtype(dtype))


def _expected(x: np.ndarray, dtype: str) -> np.ndarray:
    if x.dtype.name == dtype:
        return x
    target, is_float = np.dtype(dtype), x.dtype.name not in (*INTEGERS, "bool")
    if dtype == "bool":
        return x.astype(np.float64) != 0 if is_float else x != 0
    if dtype in INTEGERS:
        return _to_integer(x.astype(np.float64), dtype) if is_float else x.astype(target)
    if dtype == "float8_e8m0fnu":
        return _to_power(x.astype(np.float64))
    if dtype in NARROW:
        return _to_narrow(x, dtype)
    if dtype == "bfloat16" and not is_float:
        return _nearest_bfloat16(x)
    return x.astype(target)


def _to_integer(x: np.ndarray, dtype: str) -> np.ndarray:
    """Truncate, saturate, and take NaN to 0; in Python's integers, which have no ends."""
    info = np.iinfo(dtype)

    def one(v: float) -> int:
        if np.isnan(v):
            return 0
        return info.max if v >= info.max else info.min if v <= info.min else int(v)

    return np.array([one(float(v)) for v in x], dtype)


def _to_narrow(x: np.ndarray, dtype: str) -> np.ndarray:
    """Round to nearest even, then saturate: ml_dtypes rounds, between the largest numbers."""
    top = float(ml_dtypes.finfo(dtype).max)
    wide = x.astype(np.float64)
    rounded = np.clip(wide, -top, top).astype(np.float32).astype(np.dtype(dtype))
    has_nan = dtype not in ("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn")
    if not has_nan:
        rounded[np.isnan(wide)] = top
    return rounded


def _to_power(x: np.ndarray) -> np.ndarray:
    """Return the code of the nearest power of two, ties to the even code; 255 is NaN."""

    def one(v: float) -> int:
        if not v >= 0:
            return 255
        powers = [2.0 ** (code - 127) for code in range(255)]
        return min(range(255), key=lambda code: (abs(powers[code] - v), code % 2))

    return np.array([254 if v >= 2.0**127 else one(float(v)) for v in x], np.uint8).view(
        ml_dtypes.float8_e8m0fnu
    )


def _nearest_bfloat16(x: np.ndarray) -> np.ndarray:
    """Round integers once, with Python's integers."""

    def one(v: int) -> float:
        excess = max(abs(v).bit_length() - 8, 0)
        unit = 1 << excess
        low, rest = divmod(abs(v), unit)
        up = 2 * rest > unit or (2 * rest == unit and low & 1)
        return float((low + up) * unit) * (-1 if v < 0 else 1)

    return np.array([one(int(v)) for v in x]).astype(np.float32).astype(ml_dtypes.bfloat16)


def _same(got: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Compare bits, but any NaN is as good as another."""
    unsigned = np.dtype(f"u{got.dtype.itemsize}")
    equal = got.view(unsigned) == wanted.view(unsigned)
    if got.dtype.name in INTEGERS or got.dtype.name == "bool":
        return equal
    with np.errstate(invalid="ignore"):
        return equal | (np.isnan(got.astype(np.float64)) & np.isnan(wanted.astype(np.float64)))


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("source", CPP)
def test_every_conversion_of(source: str) -> None:
    values = _values(source)
    arguments: dict[str, Any] = {"A": values}
    for name in CPP:
        arguments[name.upper()] = (
            np.full(COUNT, 0xEE, np.uint8).repeat(np.dtype(name).itemsize).view(np.dtype(name))
        )
    SourceKernel(_source(source), "casts", block=COUNT)(1, **arguments)
    for target in CPP:
        with np.errstate(all="ignore"):
            wanted = _expected(values, target)
        wrong = ~_same(arguments[target.upper()], wanted)
        i = int(wrong.argmax())
        got = arguments[target.upper()][i]
        assert not wrong.any(), f"{source} {values[i]!r} to {target}: {got!r}, not {wanted[i]!r}"
