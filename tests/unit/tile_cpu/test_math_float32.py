"""Elementary functions in float32: within 2 ulp on all of the line, exact at its ends."""

import math

import mpmath
import numpy as np
import pytest

from support.vector_kernels import apply, compiled, elementwise, machines, padded, ulp_error
from tile_cpu.machine import MACHINES
from tile_cpu.math.table import call

MACHINE_ROWS = machines()


def _exp10(x):
    return np.power(np.float64(10.0), x)


def _sigmoid(x):
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1.0) / (1.0 + small)


def _erf(x):
    return np.array([math.erf(v) for v in x])


def _at_most_one(function):
    return lambda x: function(np.minimum(x, 0.0))


UNARY = {
    "exp": np.exp, "exp2": np.exp2, "exp10": _exp10, "expm1": np.expm1, "sigmoid": _sigmoid,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "erf": _erf,
    "tanh": np.tanh, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "rsqrt": lambda x: 1 / np.sqrt(x),
    "exp_nonpositive": _at_most_one(np.exp), "exp2_nonpositive": _at_most_one(np.exp2),
}  # fmt: skip
CORRECTLY_ROUNDED = {
    "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint,
    "nearbyint": np.rint, "abs": np.abs, "fast_rcp": lambda x: 1 / x,
    "__exp": None, "__sin": None,
}  # fmt: skip
BINARY = {
    "pow": np.power, "atan2": np.arctan2, "hypot": np.hypot, "fmod": np.fmod,
    "copysign": np.copysign, "nextafter": None, "max": np.fmax, "min": np.fmin,
    "max_nan": np.maximum, "min_nan": np.minimum,
}  # fmt: skip
EXPONENTIALS = ("exp", "exp2", "exp10")
ENDS = np.array(
    [0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x00000001,
     0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F800000, 0xBF800000,
     0x3F000000, 0x40490FDB],
    np.uint32,
)  # fmt: skip


def _line(step: int) -> np.ndarray:
    """Every `step`-th float there is, and the ends."""
    every = np.arange(0, 2**32, step, dtype=np.uint64).astype(np.uint32)
    return padded(np.concatenate([every, ENDS])).view(np.float32)


def _module(machine, lanes):
    functions = {}
    for name in (*UNARY, *CORRECTLY_ROUNDED):
        functions[name] = elementwise(
            lambda keep, x, name=name: call(keep, name, x, lanes=lanes),
            ["float32"], "float32", lanes,
        )  # fmt: skip
    for name in BINARY:
        functions[name] = elementwise(
            lambda keep, x, y, name=name: call(keep, name, x, y, lanes=lanes),
            ["float32"] * 2, "float32", lanes,
        )  # fmt: skip
    for name in EXPONENTIALS:
        functions[f"{name}_less"] = elementwise(
            lambda keep, x, y, name=name: call(keep, name, x, lanes=lanes) - y,
            ["float32"] * 2, "float32", lanes,
        )  # fmt: skip
    return compiled(functions, machine)


@pytest.fixture(scope="module", params=MACHINE_ROWS, ids=[row[0] for row in MACHINE_ROWS])
def build(request):
    _, machine, lanes = request.param
    return _module(machine, lanes), lanes


@pytest.mark.in_turn(8)
@pytest.mark.parametrize("name", UNARY)
def test_unary_on_the_whole_line(build, name):
    module, lanes = build
    x = _line(104729)
    got = apply(module, name, "float32", lanes, x)
    with np.errstate(all="ignore"):
        error = ulp_error(got, UNARY[name](x.astype(np.float64)))
    worst = int(np.argmax(error))
    assert error[worst] <= 2.0, (name, x[worst], got[worst])


@pytest.mark.parametrize("name", UNARY)
def test_unary_where_it_matters(build, name):
    module, lanes = build
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.uniform(-1, 1, 8000), rng.normal(0, 8, 8000), rng.uniform(0, 2, 4000)])
    x = padded(x.astype(np.float32))
    got = apply(module, name, "float32", lanes, x)
    with np.errstate(all="ignore"):
        error = ulp_error(got, UNARY[name](x.astype(np.float64)))
    worst = int(np.argmax(error))
    assert error[worst] <= 2.0, (name, x[worst], got[worst])


@pytest.mark.parametrize("name", [n for n in CORRECTLY_ROUNDED if CORRECTLY_ROUNDED[n]])
def test_correctly_rounded(build, name):
    module, lanes = build
    x = _line(104729)
    got = apply(module, name, "float32", lanes, x)
    with np.errstate(all="ignore"):
        exact = CORRECTLY_ROUNDED[name](x)
    np.testing.assert_array_equal(got, exact)
    numbers = ~np.isnan(exact)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(exact)[numbers])


def test_fast_spellings_are_the_accurate_functions(build):
    module, lanes = build
    x = padded(np.linspace(-20, 20, 1000, dtype=np.float32))
    for fast, name in (("__exp", "exp"), ("__sin", "sin")):
        got, want = (apply(module, n, "float32", lanes, x) for n in (fast, name))
        np.testing.assert_array_equal(got, want)


def _pairs() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(11)
    special = np.concatenate([ENDS.view(np.float32), np.float32([2, -2, 3, -3, 0.5, 2.5, 1e30])])
    a, b = (g.reshape(-1) for g in np.meshgrid(special, special))
    wild = rng.integers(0, 2**32, (2, 6000), dtype=np.uint32).view(np.float32)
    tame = np.abs(rng.normal(0, 3, (2, 6000))).astype(np.float32)
    whole = np.rint(rng.normal(0, 9, (2, 3000))).astype(np.float32)
    x, y = (np.concatenate([s, *rest]) for s, *rest in zip((a, b), wild, tame, whole, strict=True))
    return padded(x), padded(y)


@pytest.mark.parametrize("name", BINARY)
def test_binary(build, name):
    module, lanes = build
    x, y = _pairs()
    got = apply(module, name, "float32", lanes, x, y)
    with np.errstate(all="ignore"):
        if name == "nextafter":
            np.testing.assert_array_equal(got, np.nextafter(x, y))
            return
        wide = BINARY[name](x.astype(np.float64), y.astype(np.float64))
    error = ulp_error(got, wide)
    if name.startswith(("max", "min")):  # of two zeros either may be returned
        error = np.where((got == 0) & (wide == 0), 0.0, error)
    worst = int(np.argmax(error))
    assert error[worst] <= (1.0 if name in ("pow", "atan2", "hypot") else 0.5), (
        name, x[worst], y[worst], got[worst], wide[worst],
    )  # fmt: skip


def test_angles_of_any_size_against_mpmath(build):
    module, lanes = build
    hard = [1e4, 71476.0625, 1e7, 16367173 * 2.0**72, 3.4e38, 2.0**30, 2.0**30 - 64, 1.5e9]
    hard += [float(np.float32(k * math.pi / 2)) for k in (1, 2, 3, 1000, 52174, 573204, 10**8)]
    x = padded(np.array([*hard, *(-v for v in hard)], np.float32))
    with mpmath.workdps(80):
        for name in ("sin", "cos", "tan"):
            exact = np.array([float(getattr(mpmath, name)(mpmath.mpf(float(v)))) for v in x])
            got = apply(module, name, "float32", lanes, x)
            assert ulp_error(got, exact).max() <= 2.0, name


def test_powers_of_two_are_exact(build):
    module, lanes = build
    n = padded(np.arange(-149, 128).astype(np.float32))
    powers = np.ldexp(np.float32(1), n.astype(np.int32)).astype(np.float32)
    np.testing.assert_array_equal(apply(module, "exp2", "float32", lanes, n), powers)
    np.testing.assert_array_equal(apply(module, "log2", "float32", lanes, powers), n)


def test_exp2_overflows_and_vanishes_however_large_the_argument(build):
    module, lanes = build
    large = np.array([151.0, 200.5, 2.0**22 + 0.5, 1e9, 3.4e38, np.inf], np.float32)
    got = apply(module, "exp2", "float32", lanes, padded(np.concatenate([large, -large])))
    assert np.all(got[: len(large)] == np.inf)
    assert np.all(got[len(large) : 2 * len(large)] == 0)


@pytest.mark.parametrize("name", EXPONENTIALS)
def test_exponentials_are_infinite_before_something_is_subtracted(build, name):
    """The last product within is not to be fused with the subtraction unless it is finite."""
    module, lanes = build
    x = padded(np.array([np.inf, 1e9, 500, 0, -np.inf], np.float32))
    got = apply(module, f"{name}_less", "float32", lanes, x, np.full_like(x, np.inf))
    np.testing.assert_array_equal(np.isnan(got), x > 0)
    np.testing.assert_array_equal(got[x <= 0], -np.inf)


def test_erf_where_its_pieces_meet(build):
    module, lanes = build
    edges = np.arange(1, 64, dtype=np.float32) / 16
    x = np.concatenate([np.nextafter(edges, np.float32(0)), edges, np.nextafter(edges, 9)])
    x = padded(np.concatenate([x, -x]).astype(np.float32))
    got = apply(module, "erf", "float32", lanes, x)
    assert ulp_error(got, _erf(x.astype(np.float64))).max() <= 2.0


def test_no_library_call_is_left_in_the_hot_functions():
    machine = MACHINES["znver4"]
    functions = {
        name: elementwise(
            lambda keep, x, name=name: call(keep, name, x, lanes=16), ["float32"], "float32", 16
        )
        for name in ("exp", "exp2", "log", "tanh", "erf", "sigmoid", "rsqrt")
    }
    asm = compiled(functions, machine).asm()
    called = [line for line in asm.splitlines() if "call" in line and "expf" in line]
    assert "vfmadd" in asm
    assert "zmm" in asm
    assert "vscalefps" in asm
    assert not called
    assert "logf" not in asm
    assert "tanhf" not in asm
    assert "erff" not in asm
