"""The mathematics of the device header, run on this machine beside the C library.

It is ordinary C++ but for the units for special functions, in whose place models stand that are
off by one step as they please. float32 is compared with float64, float64 with what the C library
computes in 64 bits of mantissa.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tile_core.codegen.source import INCLUDE_DIRECTORY
from tile_hip.compiler import HEADERS

HOST = Path(__file__).parents[2] / "support" / "hip_host"
SINGLE, DOUBLE = np.dtype("float32"), np.dtype("float64")

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def build(name: str, folder: Path) -> ctypes.CDLL:
    result = folder / f"{name}.so"
    flags = ["-std=gnu++17", "-O1", "-w", "-shared", "-fPIC", "-ffp-contract=off"]
    include = [f"-I{path}" for path in (HEADERS, INCLUDE_DIRECTORY)]
    command = ["g++", *flags, *include, str(HOST / f"{name}.cpp"), "-o", str(result)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(result))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build("mathematics", tmp_path_factory.mktemp("mathematics"))


@pytest.fixture(scope="module")
def rounding(tmp_path_factory):
    return build("rounding", tmp_path_factory.mktemp("rounding"))


SPECIAL = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, np.inf, -np.inf, np.nan, 1e10, 22.0, -22.0,
    709.7, 710.4, -745.1, 88.7, -87.4, -103.9, 38.5, -45.1, 1024.0, -1075.0, 128.0, -149.0, 0.625,
    4.0, 6.05, 9.02, 0.41, -0.29, 2.0**20, 2.0**28, np.pi / 4, np.pi / 2, np.pi, 2.0**53, 2.0**54,
]  # fmt: skip


def samples(dtype: np.dtype, seed: int, count: int = 12000) -> np.ndarray:
    """Return numbers of all sizes, many of moderate ones, and those next to special places."""
    rng = np.random.default_rng(seed)
    unit = np.dtype(f"uint{8 * dtype.itemsize}")
    bits = rng.integers(0, np.iinfo(unit).max, count, dtype=unit, endpoint=True).view(dtype)
    moderate = rng.standard_normal(2 * count) * 2.0 ** rng.integers(-12, 11, 2 * count)
    facts = np.finfo(dtype)
    edges = [facts.max, -facts.max, facts.tiny, -facts.tiny, facts.smallest_subnormal]
    special = np.array([*SPECIAL, *edges], dtype)
    with np.errstate(all="ignore"):
        near = [np.nextafter(special, dtype.type(end)) for end in (np.inf, -np.inf)]
    numbers = [bits, rng.uniform(-1, 1, count), moderate, rng.integers(-50, 50, 500), special]
    return rng.permutation(np.concatenate([np.asarray(x, dtype) for x in (*numbers, *near)]))


def errors(library, name: str, x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return results, and their errors in units in the last place."""
    y, found = np.empty_like(x), np.empty(len(x))
    pointers = (ctypes.c_void_p(a.ctypes.data) for a in (x, z, y, found))
    getattr(library, f"{name}_{x.dtype}")(*pointers, len(x))
    return y, found


EXACT = ("sqrt", "round", "fmod", "copysign", "nextafter")
BY_FLOAT64 = ("expm1", "log1p", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh",
              "atanh", "pow", "hypot", "atan2")  # fmt: skip
OF_TWO = ("pow", "fmod", "hypot", "atan2", "copysign", "nextafter")

# The unit's own error is up to one unit above a power of two, two below it.
BOUNDS_SINGLE = {
    "exp": 2.55, "exp10": 2.55, "log": 2.65, "log2": 2.1, "log10": 2.5, "rsqrt": 2.1,
    "sigmoid": 3.9, "tanh": 2.3, "sin": 1.55, "cos": 1.55, "erf": 1.3,
    **dict.fromkeys(BY_FLOAT64, 0.501), **dict.fromkeys(EXACT, 0.5),
}  # fmt: skip
BOUNDS_DOUBLE = {
    "exp": 0.9, "exp2": 0.9, "exp10": 1.15, "expm1": 2.0, "log": 0.9, "log2": 0.8, "log10": 0.8,
    "log1p": 2.5, "rsqrt": 1.51, "sigmoid": 2.3, "tanh": 2.8, "sin": 0.85, "cos": 0.85, "tan": 2.2,
    "asin": 1.2, "acos": 1.1, "atan": 1.8, "sinh": 2.5, "cosh": 1.6, "asinh": 2.8, "acosh": 2.7,
    "atanh": 2.8, "erf": 1.0, "pow": 0.9, "hypot": 0.52, "atan2": 1.8, "fast_rcp": 0.5,
    **dict.fromkeys(EXACT, 0.5),
}  # fmt: skip


def worst(library, name: str, dtype: np.dtype) -> tuple[float, str]:
    x, z = samples(dtype, 1), samples(dtype, 2)
    if name == "pow":  # most numbers have no power but whole ones
        x[::2] = np.abs(x[::2])
    y, found = errors(library, name, x, z)
    at = int(np.argmax(found))
    return found[at], f"{name}({x[at]!r}, {z[at]!r}) = {y[at]!r}"


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", BOUNDS_SINGLE)
def test_float32_is_right_in_the_last_place_or_next_to_it(library, name):
    error, where = worst(library, name, SINGLE)
    assert error <= BOUNDS_SINGLE[name], where


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", BOUNDS_DOUBLE)
def test_float64_is_right_in_the_last_place_or_next_to_it(library, name):
    if np.finfo(np.longdouble).nmant < 63:
        pytest.skip("the C library here has nothing wider than float64")
    error, where = worst(library, name, DOUBLE)
    assert error <= BOUNDS_DOUBLE[name], where


def test_quotients_by_way_of_float64_are_those_of_the_division(library):
    x, z = samples(SINGLE, 9, 40000), samples(SINGLE, 10, 40000)
    y, _ = errors(library, "quotient", x, z)
    with np.errstate(all="ignore"):
        exact = x / z
    same = (y == exact) & (np.signbit(y) == np.signbit(exact)) | (np.isnan(y) & np.isnan(exact))
    assert same.all(), (x[~same][:3], z[~same][:3], y[~same][:3], exact[~same][:3])


def test_powers_of_two_and_reciprocals_in_float32_are_the_units(library):
    x = samples(SINGLE, 3)
    for name in ("exp2", "fast_rcp"):
        y, found = errors(library, name, x, x)
        is_normal = np.abs(y) >= 2.0**-126
        if name == "fast_rcp":
            is_normal &= np.abs(x) >= 2.0**-126
        assert is_normal.sum() > 10000
        assert found[is_normal].max() <= 2.5


def test_angles_of_any_size_keep_their_sign_and_their_zeros(library):
    x = np.array([0.0, -0.0, 2.0**1000, -(2.0**1000), 6381956970095103.0 * 2.0**797], DOUBLE)
    y, found = errors(library, "sin", x, x)
    assert found.max() <= 0.85
    assert (np.signbit(y[:2]) == [False, True]).all()
    _, found = errors(library, "cos", x, x)  # the last of them is next to a multiple of pi/2
    assert found.max() <= 0.85


@pytest.mark.parametrize(
    ("name", "low", "high", "bound"),
    [("fast_exp", -10, 10, 2e-6), ("fast_exp10", -4, 4, 2e-6), ("fast_sin", -3, 3, 5e-7),
     ("fast_cos", -3, 3, 5e-7), ("fast_tan", -1, 1, 2e-6), ("fast_log", 0.1, 0.9, 1e-6),
     ("fast_log2", 0.1, 0.9, 1e-6), ("fast_log10", 0.1, 0.9, 1e-6)],
)  # fmt: skip
def test_fast_forms_are_near(library, name, low, high, bound):
    x = np.random.default_rng(4).uniform(low, high, 4000).astype(SINGLE)
    y, found = errors(library, name, x, x)
    unit = np.spacing(np.abs(y)).astype(np.float64)
    scale = np.maximum(np.abs(y), 1.0) if "sin" in name or "cos" in name else np.abs(y)
    assert (found * unit / scale).max() <= bound


MODES = ("rn", "rz", "ru", "rd")
OPERATIONS = ("add", "sub", "mul", "fdiv", "fmaf", "frcp", "fsqrt", "frsqrt")


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [(n, d) for n in OPERATIONS for d in (SINGLE, DOUBLE) if (n, d) != ("frsqrt", DOUBLE)],
)
def test_directed_rounding_bit_for_bit(rounding, name, dtype):
    if name == "frsqrt" and np.finfo(np.longdouble).nmant < 63:
        pytest.skip("the C library here has nothing wider than float64")
    rng = np.random.default_rng(5)
    a, b, c = (samples(dtype, seed) for seed in (6, 7, 8))
    near = rng.integers(0, 3, len(a))
    with np.errstate(all="ignore"):  # exact results, or nearly so
        b[::3] = a[::3] * rng.choice([1, -1, 2, 3], len(a[::3])).astype(dtype)
        c[::5] = -(a[::5] * b[::5]) * (1 + near[::5] * np.finfo(dtype).eps).astype(dtype)
    if dtype is DOUBLE:  # where the loss itself underflows its sign is not known
        size = np.abs(a)
        keep = (size > 1e-100) & (size < 1e100) & (np.abs(b) > 1e-100) & (np.abs(b) < 1e100)
        keep &= (np.abs(c) > 1e-100) & (np.abs(c) < 1e100)
        special = rng.choice(
            [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, np.finfo(dtype).max], (3, 300)
        )
        a, b, c = (np.concatenate([x[keep], s]) for x, s in zip((a, b, c), special, strict=True))
    first = ctypes.c_int(-1)
    for mode in MODES:
        pointers = (ctypes.c_void_p(x.ctypes.data) for x in (a, b, c))
        function = getattr(rounding, f"ieee_{name}_{mode}_{dtype}")
        count = function(*pointers, len(a), ctypes.byref(first))
        at = first.value
        assert count == 0, f"{name}_{mode}({a[at]!r}, {b[at]!r}, {c[at]!r}), and {count} in all"


def test_every_function_of_the_language_is_measured():
    from tile_core.ir.intrinsics import INTRINSICS, Effect

    floats = {n for n, row in INTRINSICS.items() if row.effect is Effect.NONE and row.arity}
    measured = {*BOUNDS_SINGLE, *BOUNDS_DOUBLE, "exp2", "fast_rcp"}
    measured |= {f"__{name.removeprefix('fast_')}" for name in
                 ("exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan")}  # fmt: skip
    measured |= {f"ieee_{name}_{mode}" for name, mode in product(OPERATIONS, MODES)}
    exact = {"floor", "ceil", "trunc", "nearbyint", "fma", "ldexp", "abs", "isnan", "isinf",
             "isfinite", "popcount", "clz", "ffs", "dp4a"}  # fmt: skip
    assert floats <= measured | exact
