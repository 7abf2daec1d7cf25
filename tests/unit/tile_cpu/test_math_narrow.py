"""Narrow floats against ml_dtypes and NumPy: every code, ties, ends."""

import ml_dtypes
import numpy as np
import pytest

from support.vector_kernels import apply, compiled, elementwise, machines
from tile_core.dtypes import FORMATS, dtype_of
from tile_core.interp import values as meaning
from tile_cpu.math.narrow import decode_narrow, encode_narrow, round_narrow

MACHINE_ROWS = machines()
NARROW = [n for n in FORMATS if dtype_of(n).is_narrow_float and n != "float4_e2m1_unpacked"]
PAIRS = [
    *((n, "float32", True) for n in NARROW),
    *(("float32", n, saturate) for n in NARROW for saturate in (True, False)),
]
ROUNDINGS = [pair for pair in PAIRS if pair[0] == "float32"]


def _carrier(name: str) -> str:
    return name if name == "float32" else "uint8"


def _rounding(target: str, saturate: bool, lanes: int):
    def body(keep, x):
        return round_narrow(keep, x, dtype_of(target), lanes, saturate=saturate)

    return elementwise(body, ["float32"], "float32", lanes)


def _function(source: str, target: str, saturate: bool, lanes: int):
    def body(keep, x):
        if target == "float32":
            return decode_narrow(keep, x, dtype_of(source), lanes)
        return encode_narrow(keep, x, dtype_of(target), lanes, saturate=saturate)

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


def _samples(name: str) -> np.ndarray:
    if name == "float32":
        return _float32_samples()
    return np.arange(2 ** dtype_of(name).bits, dtype=np.uint8)


def _meant(source: str, target: str, saturate: bool, x: np.ndarray) -> np.ndarray:
    """Return what the reference interpreter, which goes through ml_dtypes, makes of `x`."""
    a, b = dtype_of(source), dtype_of(target)
    stored = x
    if a.bits == 4:
        stored = x.view(np.uint8) & np.uint8(15)
    elif source != "float32":
        stored = x.view(a.numpy())
    with np.errstate(all="ignore"):
        result = meaning.convert(meaning.decode(stored, a), a, b, saturate=saturate)
        codes = np.ascontiguousarray(meaning.encode(result, b))
    return codes.view(_carrier(target))


@pytest.fixture(scope="module", params=MACHINE_ROWS, ids=[row[0] for row in MACHINE_ROWS])
def build(request):
    _, machine, lanes = request.param
    functions = {"_to_".join(p[:2]) + str(p[2]): _function(*p, lanes) for p in PAIRS}
    functions |= {f"round_to_{p[1]}{p[2]}": _rounding(*p[1:], lanes) for p in ROUNDINGS}
    return compiled(functions, machine), lanes


@pytest.fixture(scope="module")
def samples():
    return {name: _samples(name) for pair in PAIRS for name in pair[:1]}


@pytest.mark.in_turn(10)
@pytest.mark.parametrize(("source", "target", "saturate"), PAIRS)
def test_conversion(build, samples, source, target, saturate):
    module, lanes = build
    x = samples[source]
    got = apply(module, f"{source}_to_{target}{saturate}", _carrier(target), lanes, x)
    want = _meant(source, target, saturate, x)
    differs = got.view(want.dtype) != want
    if target == "float32":  # the payload of NaN is free
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


@pytest.mark.parametrize(("source", "target", "saturate"), ROUNDINGS)
def test_rounding_is_that_of_codes(build, samples, source, target, saturate):
    module, lanes = build
    x = samples[source]
    codes = apply(module, f"{source}_to_{target}{saturate}", "uint8", lanes, x)
    want = apply(module, f"{target}_to_{source}True", "float32", lanes, codes)
    got = apply(module, f"round_to_{target}{saturate}", "float32", lanes, x)
    same = got.view(np.uint32) == want.view(np.uint32)
    has_one_nan = target.endswith("fnuz")  # the code of -0, whatever the sign was
    assert np.all(same | (has_one_nan & np.isnan(got) & np.isnan(want)))
