"""Conversions against ml_dtypes and NumPy: every code of the narrow types, ties, ends."""

import ml_dtypes
import numpy as np
import pytest

from support.vector_kernels import apply, compiled, elementwise, machines
from tile_core.dtypes import FORMATS, dtype_of
from tile_core.interp import values as meaning
from tile_cpu.math.convert import convert, decode_narrow, encode_narrow
from tile_cpu.tir.build import Temporaries, splat, vector_type
from tile_cpu.tir.nodes import Cast, FloatImm, IntImm, tirx

MACHINE_ROWS = machines()
NARROW = [n for n in FORMATS if dtype_of(n).is_narrow_float and n != "float4_e2m1_unpacked"]
WIDE = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = [n for n in FORMATS if dtype_of(n).is_int]
PAIRS = [
    *((n, "float32", True) for n in NARROW),
    *(("float32", n, saturate) for n in NARROW for saturate in (True, False)),
    *(("float64", n, True) for n in ("float8_e4m3fn", "float8_e5m2fnuz", "float4_e2m1fn")),
    ("float8_e4m3fn", "bfloat16", True),
    ("float8_e5m2", "float8_e4m3fn", False),
    ("float4_e2m1fn", "int4", True),
    ("int64", "float8_e4m3fn", True),
    ("uint32", "bfloat16", True),
    ("int32", "float16", True),
    *((a, b, True) for a in WIDE for b in WIDE if a != b),
    *(("float32", n, True) for n in (*INTEGERS, "bool")),
    *(("float64", n, True) for n in ("int32", "int64", "uint64", "uint8")),
    *((n, "float32", True) for n in (*INTEGERS, "bool")),
    ("int64", "float64", True),
    ("int32", "int4", True),
    ("int32", "uint4", True),
    ("int64", "uint8", True),
    ("int8", "uint32", True),
    ("uint4", "bool", True),
    ("bool", "int8", True),
    ("bool", "float16", True),
]


def _carrier(name: str) -> str:
    dtype = dtype_of(name)
    if dtype.is_narrow_float or name in ("uint4", "bool"):
        return "uint8"
    return {"int4": "int8", "bfloat16": "uint16"}.get(name, name)


def _function(source: str, target: str, saturate: bool, lanes: int):
    def body(keep, x):
        if source == "bool":
            x = tirx.NE(x, splat(IntImm("uint8", 0), lanes))
        y = convert(keep, x, source, target, lanes, saturate=saturate)
        if target == "bool":
            return Cast(vector_type("uint8", lanes), y)
        if target == "bfloat16":
            return tirx.reinterpret("uint16" if lanes == 1 else f"uint16x{lanes}", y)
        return y

    return elementwise(body, [_carrier(source)], _carrier(target), lanes)


@np.errstate(all="ignore")
def _float32_samples() -> np.ndarray:
    """Values near and on every boundary between 16-bit floats, and a sweep of the line."""
    codes = np.arange(0, 65536, 5, dtype=np.uint16)
    halves = (codes.view(kind).astype(np.float32) for kind in (np.float16, ml_dtypes.bfloat16))
    near = np.concatenate(list(halves))
    sweep = np.arange(0, 2**32, 99991, dtype=np.uint64).astype(np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        above, below = (np.nextafter(near, np.float32(e)) for e in (np.inf, -np.inf))
    values = np.concatenate([near, above, below, sweep])
    return values[: len(values) // 16 * 16]


@np.errstate(all="ignore")
def _samples(name: str) -> np.ndarray:
    dtype, carrier = dtype_of(name), np.dtype(_carrier(name))
    rng = np.random.default_rng(dtype.bits)
    if name == "bool":
        return np.array([0, 1] * 16, np.uint8)
    if dtype.bits <= 16:
        codes = np.arange(2**dtype.bits, dtype=np.uint32).astype(f"u{carrier.itemsize}")
        return ((codes ^ 8) - 8).view(carrier) if name == "int4" else codes.view(carrier)
    if dtype.is_float:
        single = _float32_samples()
        if name == "float32":
            return single
        wide = single.astype(np.float64)
        with np.errstate(all="ignore"):
            return np.concatenate([wide, np.nextafter(wide, np.inf), np.nextafter(wide, -np.inf)])
    info = np.iinfo(carrier)
    values = rng.integers(info.min, info.max, 8000, carrier, endpoint=True)
    values >>= rng.integers(0, dtype.bits - 1, 8000).astype(carrier)
    powers = [2**k + e for k in range(1, dtype.bits - 1) for e in (-1, 0, 1)]
    ties = [(257 + 2 * j) * 2**k + e for j in range(60) for k in range(1, dtype.bits - 11)
            for e in (-1, 0, 1)]  # fmt: skip
    values = np.concatenate([values, np.array([*powers, *ties, info.min, info.max], carrier)])
    return values[: len(values) // 16 * 16]


def _meant(source: str, target: str, saturate: bool, x: np.ndarray) -> np.ndarray:
    """Return what the reference interpreter, which goes through ml_dtypes, makes of `x`."""
    a, b = dtype_of(source), dtype_of(target)
    stored = x
    if source == "bool":
        stored = x.astype(bool)
    elif a.bits == 4:
        stored = x.view(np.uint8) & np.uint8(15)
    elif a.is_float and a.bits <= 16:
        stored = x.view(a.numpy())
    with np.errstate(all="ignore"):
        result = meaning.convert(meaning.decode(stored, a), a, b, saturate=saturate)
        codes = np.ascontiguousarray(meaning.encode(result, b))
    if target == "int4":
        codes = (codes.astype(np.int8) ^ 8) - 8
    return codes.view(_carrier(target))


@pytest.fixture(scope="module", params=MACHINE_ROWS, ids=[row[0] for row in MACHINE_ROWS])
def build(request):
    _, machine, lanes = request.param
    pairs = [*PAIRS, ("int64", "bfloat16", True)]
    functions = {"_to_".join(p[:2]) + str(p[2]): _function(*p, lanes) for p in pairs}
    return compiled(functions, machine), lanes


@pytest.fixture(scope="module")
def samples():
    return {name: _samples(name) for pair in PAIRS for name in pair[:1]}


@pytest.mark.parametrize(("source", "target", "saturate"), PAIRS)
def test_conversion(build, samples, source, target, saturate):
    module, lanes = build
    x = samples[source]
    got = apply(module, f"{source}_to_{target}{saturate}", _carrier(target), lanes, x)
    want = _meant(source, target, saturate, x)
    differs = got.view(want.dtype) != want
    if target in WIDE:  # the payload of NaN is free
        numbers = dtype_of(target).numpy()
        with np.errstate(invalid="ignore"):
            wide = [a.view(numbers).astype(np.float64) for a in (got, want)]
        differs &= ~(np.isnan(wide[0]) & np.isnan(wide[1]))
    wrong = np.flatnonzero(differs)
    assert not len(wrong), [(x[k], got[k], want[k]) for k in wrong[:5]]


# The others lack NaN or a sign, and ml_dtypes has its own way to say so.
SIGNED_WITH_NAN = [n for n in NARROW if n.startswith("float8") and n != "float8_e8m0fnu"]


@pytest.mark.parametrize("name", SIGNED_WITH_NAN)
def test_unsaturated_codes_are_those_of_ml_dtypes(build, samples, name):
    module, lanes = build
    x = samples["float32"]
    got = apply(module, f"float32_to_{name}False", "uint8", lanes, x)
    with np.errstate(all="ignore"):
        want = x.astype(dtype_of(name).numpy()).view(np.uint8)
    np.testing.assert_array_equal(got, want)


def test_long_integers_round_once(build):
    module, lanes = build
    x = _samples("int64")
    got = apply(module, "int64_to_bfloat16True", "uint16", lanes, x)
    for value, code in zip(x.tolist(), got.tolist(), strict=True):
        size = abs(value)
        shift = max(size.bit_length() - 8, 0)
        kept, rest = size >> shift, size & ((1 << shift) - 1)
        half = (1 << shift) >> 1
        kept += shift > 0 and (rest > half or (rest == half and kept % 2 == 1))
        exact = np.array(np.sign(value) * float(kept << shift), np.float32)
        assert int(exact.view(np.uint32)) >> 16 == code, value


def test_encode_and_decode_are_conversions_from_and_to_float32():
    keep = Temporaries()
    x = splat(FloatImm("float32", 1.0), 8)
    code = encode_narrow(keep, x, "float8_e4m3fn", 8)
    assert str(code.ty.dtype) == "uint8x8"
    assert str(decode_narrow(keep, code, "float8_e4m3fn", 8).ty.dtype) == "float32x8"
    text = str(keep.statements)
    assert "tile_cast_float32_to_float8_e4m3fn_sat_x8" in text
    assert "tile_cast_float8_e4m3fn_to_float32_sat_x8" in text
