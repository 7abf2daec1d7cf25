"""Integers, and floats of 16 bits, as the compiler made the device header's arithmetic."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from support.hip_executed import THREADS, executed

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

ARCHITECTURES = ("gfx90a", "gfx950")


def integers(dtype, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    facts = np.iinfo(dtype)
    x = rng.integers(facts.min, facts.max, THREADS, dtype=dtype, endpoint=True)
    x[::2] >>= rng.integers(0, facts.bits - 2, THREADS // 2).astype(dtype)
    return x


def _quotient(a, b):
    return np.where((a % b != 0) & ((a < 0) != (b < 0)), a // b + 1, a // b)


OPERATIONS = {
    "floordiv": lambda a, b: a // b, "floormod": lambda a, b: a % b, "truncdiv": _quotient,
    "truncmod": lambda a, b: a - _quotient(a, b) * b, "min": np.minimum, "max": np.maximum,
}  # fmt: skip
TYPES = {"I": ("int", np.int32), "U": ("tile::u32", np.uint32), "L": ("tile::i64", np.int64),
         "S8": ("tile::i8", np.int8), "U16": ("tile::u16", np.uint16)}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_quotients_and_remainders(name):
    kind, dtype = TYPES[name]
    a, b = integers(dtype, 1), integers(dtype, 2)
    b[b == 0] = 3
    b[b == -1 if np.iinfo(dtype).min else b == 0] = 5
    whole = np.concatenate([a, b, np.zeros(len(OPERATIONS) * THREADS, dtype)])
    body = f"const {kind} a = {name}[tid], b = {name}[tid + {THREADS}];\n" + "\n".join(
        f"{name}[tid + {THREADS * row}] = tile::{operation}(a, b);"
        for row, operation in enumerate(OPERATIONS, 2)
    )
    executed("gfx90a", body, **{name: whole})
    rows = whole.reshape(-1, THREADS)
    for found, (operation, function) in zip(rows[2:], OPERATIONS.items(), strict=True):
        np.testing.assert_array_equal(found, function(a, b), err_msg=operation)


@pytest.mark.parametrize("name", TYPES)
def test_bits_are_counted_within_the_type(name):
    kind, dtype = TYPES[name]
    x = integers(dtype, 3)
    x[:3] = 0, 1, np.iinfo(dtype).max
    found = np.zeros(3 * THREADS, np.int32)
    target = "I" if name != "I" else "U"
    body = "\n".join(
        f"{target}[tid + {THREADS * row}] = tile::{function}({kind}({name}[tid]));"
        for row, function in enumerate(("popcount", "clz", "ffs"))
    )
    executed("gfx90a", body, **{name: x, target: found})
    bits = np.iinfo(dtype).bits
    values = [int(v) % 2**bits for v in x]
    expected = [
        [v.bit_count() for v in values], [bits - v.bit_length() for v in values],
        [(v & -v).bit_length() for v in values],
    ]  # fmt: skip
    np.testing.assert_array_equal(found.reshape(3, -1), expected)


HALVES = {"H": ("half_t", np.float16), "B": ("bfloat16_t", ml_dtypes.bfloat16)}
BINARY = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", HALVES)
def test_arithmetic_of_sixteen_bits_rounds_once(arch, name):
    kind, dtype = HALVES[name]
    rng = np.random.default_rng(4)
    x, y, z = (
        (rng.standard_normal(THREADS) * 2.0 ** rng.integers(-6, 6, THREADS)).astype(dtype)
        for _ in range(3)
    )
    z[::4] = -(x[::4].astype(np.float64) * y[::4].astype(np.float64)).astype(dtype)
    x[5], y[6], x[7], y[8] = np.inf, np.nan, 0, 0
    texts = [f"x {sign} y" for sign in BINARY]
    texts += ["tile::fma(x, y, z)", "tile::max(x, y)", "tile::min(x, y)", "tile::max_nan(x, y)",
              "tile::nextafter(x, y)", "-tile::abs(x)"]  # fmt: skip
    whole = np.concatenate([x, y, z, np.zeros(len(texts) * THREADS, dtype)])
    body = f"const {kind} x = {name}[tid], y = {name}[tid + 128], z = {name}[tid + 256];\n"
    body += "\n".join(f"{name}[tid + {THREADS * row}] = {t};" for row, t in enumerate(texts, 3))
    executed(arch, body, **{name: whole.view(np.uint16) if name == "B" else whole})
    a, b, c = (v.astype(np.float64) for v in (x, y, z))
    expected = [f(a, b) for f in BINARY.values()]
    expected += [a * b + c, np.fmax(a, b), np.fmin(a, b), np.maximum(a, b), None, -np.abs(a)]
    rows = whole.reshape(-1, THREADS)
    for found, exact, text in zip(rows[3:], expected, texts, strict=True):
        wanted = np.nextafter(x, y) if exact is None else exact.astype(dtype)
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        assert same.all(), f"{text}: {found[~same][:4]}, not {wanted[~same][:4]}"


@pytest.mark.parametrize("name", ["F", "D", "H"])
def test_what_an_extremum_is_made_of_is_hidden(name):
    kind, dtype = {"F": ("float", np.float32), "D": ("double", np.float64), **HALVES}[name]
    x = np.resize(np.array([np.nan, -1, 0, 2], dtype), THREADS)
    zero = f"{kind}(0)"
    body = (
        f"const {kind} x = {name}[tid];\nconst {kind} m = tile::opaque(x < {zero} ? {zero} : x);\n"
    )
    executed("gfx950", f"{body}{name}[tid] = {zero} < m ? m : {zero};", **{name: x})
    np.testing.assert_array_equal(x[:4], [0, 0, 0, 2])
