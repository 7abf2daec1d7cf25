"""Conversions of a device header, which is ordinary C++, against the interpreter's values."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tile_core.codegen.types import CPP_TYPES
from tile_core.dtypes import DType, dtype_of
from tile_core.interp.values import convert, decode, encode

NAMES = [n for n in CPP_TYPES if n not in ("handle", "tfloat32", "float4_e2m1_unpacked")]
NARROW = [n for n in NAMES if dtype_of(n).is_narrow_float]
MIXED = ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "int4", "uint4",
         "float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"]  # fmt: skip
PAIRS = [
    (s, t) for s in NAMES for t in NAMES if s != t and ({s, t} <= set(MIXED) or "float32" in (s, t))
]
FLAGS = ("-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-frounding-math", "-ffp-contract=off")


def built(header: str, include: Sequence[Path], folder: Path) -> ctypes.CDLL:
    """Compile all conversions of `header` for this machine."""
    lines = [f'#include "{header}"', 'extern "C" {']
    for source, target in PAIRS:
        s, t = CPP_TYPES[source], CPP_TYPES[target]
        for cast in casts_to(target):
            lines.append(
                f"void {cast}_{source}_{target}(const {s}* x, {t}* y, int n) "
                f"{{ for (int i = 0; i < n; ++i) y[i] = tile::{cast}<{t}>(x[i]); }}"
            )
    lines.append("}")
    text, result = folder / "header.cpp", folder / "header.so"
    text.write_text("\n".join(lines))
    options = [*FLAGS, *(f"-I{path}" for path in include)]
    done = subprocess.run(
        ["g++", *options, str(text), "-o", str(result)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(result))


def casts_to(target: str) -> tuple[str, ...]:
    """Return the functions that convert to a type."""
    return ("cast", "cast_unsaturated") if target in NARROW else ("cast",)


def samples(dtype: DType) -> np.ndarray:
    """Return stored elements: every code of up to 16 bits, else all sizes and all kinds."""
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.bits <= 16:
        codes = np.arange(2 ** max(dtype.bits, 4), dtype=np.uint32)
        unit = np.uint8 if dtype.bits <= 8 else np.uint16
        return codes.astype(unit) if dtype.bits == 4 else codes.astype(unit).view(dtype.numpy())
    rng = np.random.default_rng(3)
    if dtype.is_int:
        unit = np.dtype(f"uint{dtype.bits}")
        raw = rng.integers(0, 2**dtype.bits - 1, 3000, dtype=unit, endpoint=True)
        sizes = rng.integers(0, dtype.bits, 3000).astype(unit)
        edge = [0, 1, 2**dtype.bits - 1, 2 ** (dtype.bits - 1), 2 ** (dtype.bits - 1) - 1]
        near = [
            k + d
            for k in (448, 464, 65504, 65520, 2**24, 2**25, 2**30 * 3 // 2)
            for d in (-1, 0, 1)
        ]
        return np.concatenate([raw >> sizes, np.array(edge + near, dtype=unit)]).view(dtype.numpy())
    exact = np.concatenate([_finite(dtype_of(n)) for n in (*NARROW, "float16")])
    middle = (exact[:-1] + np.diff(np.sort(exact)) / 2).astype(np.float64)
    spread = rng.standard_normal(3000) * 2.0 ** rng.integers(-140, 130, 3000)
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        2.0**31,
        -(2.0**31),
        2.0**63,
        2.0**64,
        -0.5,
        255.5,
    ]
    values = np.concatenate([exact, middle, np.nextafter(middle, 9), spread, special])
    return values.astype(dtype.numpy())


def _finite(dtype: DType) -> np.ndarray:
    codes = np.arange(2**dtype.bits, dtype=np.uint32).astype(
        np.uint8 if dtype.bits <= 8 else np.uint16
    )
    stored = codes if dtype.bits == 4 else codes.view(dtype.numpy())
    values = decode(stored, dtype).astype(np.float64)
    return values[np.isfinite(values)]


def check_conversions_of(source: str, library: ctypes.CDLL) -> None:
    """Compare the conversions of one type to all others with the interpreter's, bit for bit."""
    kind = dtype_of(source)
    stored = samples(kind)
    carried = decode(stored, kind)
    for name in [t for s, t in PAIRS if s == source]:
        target = dtype_of(name)
        for cast in casts_to(name):
            found = np.zeros(len(stored), np.uint8 if target.bits == 4 else target.numpy())
            function = getattr(library, f"{cast}_{source}_{name}")
            pointers = (ctypes.c_void_p(a.ctypes.data) for a in (stored, found))
            function(*pointers, len(stored))
            wanted = encode(convert(carried, kind, target, saturate=cast == "cast"), target)
            got, expected = decode(found, target), decode(np.asarray(wanted), target)
            wrong = ~_same(got, expected, target)
            if name == "float8_e8m0fnu":  # ml_dtypes rounds up all that float32 holds as subnormal
                wrong &= ~((carried > 2.0**-127) & (carried < 1.5 * 2.0**-127))
            assert not wrong.any(), (
                f"{cast} {source} -> {name}: {carried[wrong][:5]} gave {got[wrong][:5]},"
                f" not {expected[wrong][:5]}"
            )


def _same(got: np.ndarray, expected: np.ndarray, dtype: DType) -> np.ndarray:
    if not dtype.is_float:
        return got == expected
    both_nan = np.isnan(got) & np.isnan(expected)
    return ((got == expected) & (np.signbit(got) == np.signbit(expected))) | both_nan
