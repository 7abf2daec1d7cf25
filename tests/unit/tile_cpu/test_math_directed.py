"""The ieee_* operations against exact arithmetic, in every direction of rounding."""

import mpmath
import numpy as np
import pytest

from support.vector_kernels import apply, compiled, elementwise, padded
from tile_cpu.machine import host_machine
from tile_cpu.math.table import call

EXACT = {
    "add": (2, lambda a, b: a + b),
    "sub": (2, lambda a, b: a - b),
    "mul": (2, lambda a, b: a * b),
    "fmaf": (3, lambda a, b, c: a * b + c),
    "fdiv": (2, lambda a, b: a / b),
    "frcp": (1, lambda a: 1 / a),
    "fsqrt": (1, mpmath.sqrt),
    "frsqrt": (1, lambda a: 1 / mpmath.sqrt(a)),
}
MODES = ("rn", "rz", "ru", "rd")
LANES = {"float32": 16, "float64": 8}


@pytest.fixture(scope="module")
def module():
    functions = {}
    for dtype, lanes in LANES.items():
        for name, (arity, _) in EXACT.items():
            for mode in MODES:
                full = f"ieee_{name}_{mode}"
                functions[f"{full}_{dtype}"] = elementwise(
                    lambda keep, *xs, full=full, lanes=lanes: call(keep, full, *xs, lanes=lanes),
                    [dtype] * arity, dtype, lanes,
                )  # fmt: skip
    return compiled(functions, host_machine())


def _inputs(dtype: str, arity: int, positive: bool) -> list[np.ndarray]:
    rng = np.random.default_rng(arity)
    spread = (30, 60) if dtype == "float32" else (200, 300)
    plain = rng.normal(0, 1, (arity, 300)) * 2.0 ** rng.integers(
        -spread[0], spread[0], (arity, 300)
    )
    near = rng.integers(-9, 10, (arity, 200)) * 1.0  # exact results, exact zeros
    ends = rng.choice([0.0, -0.0, 1.0, 2.0 ** -spread[1], 2.0 ** spread[1], 3.0], (arity, 140))
    values = np.concatenate([plain, near, ends], axis=1).astype(dtype)
    return [padded(np.abs(row) if positive else row) for row in values]


def _exactly(function, mode: str, dtype: str, row: tuple) -> float:
    """Round the exact value of `function` in the direction `mode`; None where it has none."""
    try:
        value = function(*(mpmath.mpf(float(v)) for v in row))
    except ZeroDivisionError:
        return None
    near = np.dtype(dtype).type(float(value))
    with np.errstate(all="ignore"):
        up, down = np.nextafter(near, np.dtype(dtype).type([np.inf, -np.inf]))
    as_mp = mpmath.mpf(float(near))
    if mode == "rn":
        return min((near, up, down), key=lambda v: (abs(mpmath.mpf(float(v)) - value), v != near))
    below = near if as_mp <= value else down
    above = near if as_mp >= value else up
    if mode == "rz":
        return below if value > 0 else above
    return above if mode == "ru" else below


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("dtype", LANES)
def test_rounds_in_the_direction_asked_for(module, dtype, name, mode):
    arity, function = EXACT[name]
    inputs = _inputs(dtype, arity, positive="sqrt" in name)
    got = apply(module, f"ieee_{name}_{mode}_{dtype}", dtype, LANES[dtype], *inputs)
    with mpmath.workprec(3000 if dtype == "float64" and "sqrt" not in name else 700):
        checked = 0
        for k, row in enumerate(zip(*inputs, strict=True)):
            want = _exactly(function, mode, dtype, row)
            if want is not None and mpmath.isfinite(want):
                assert got[k] == want, (name, mode, row)
                checked += 1
    assert checked > 300


def test_overflow_stops_at_the_largest_number_when_rounding_inwards(module):
    top = np.finfo(np.float32).max
    big = np.full(16, top, np.float32)
    for mode, want in (("rn", np.inf), ("ru", np.inf), ("rz", top), ("rd", top)):
        assert apply(module, f"ieee_add_{mode}_float32", "float32", 16, big, big)[0] == want
        assert apply(module, f"ieee_mul_{mode}_float32", "float32", 16, big, big)[0] == want
    wide = np.full(8, np.finfo(np.float64).max)
    assert apply(module, "ieee_mul_rz_float64", "float64", 8, wide, wide)[0] == wide[0]
    assert apply(module, "ieee_add_ru_float64", "float64", 8, wide, wide)[0] == np.inf


def test_infinities_nan_and_division_by_zero(module):
    x = np.float32([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0] + [1.0] * 10)
    zero = np.zeros(16, np.float32)
    for mode in MODES:
        with np.errstate(all="ignore"):
            quotient = apply(module, f"ieee_fdiv_{mode}_float32", "float32", 16, x, zero)
            np.testing.assert_array_equal(quotient, x / zero)
            root = apply(module, f"ieee_frsqrt_{mode}_float32", "float32", 16, x)
            np.testing.assert_array_equal(root[:5], (1 / np.sqrt(x))[:5])
            total = apply(module, f"ieee_add_{mode}_float32", "float32", 16, x, zero)
            np.testing.assert_array_equal(total[:3], x[:3])


def test_exact_zero_sums_are_negative_only_when_rounding_down(module):
    one = np.ones(16, np.float32)
    for mode in MODES:
        added = apply(module, f"ieee_add_{mode}_float32", "float32", 16, one, -one)
        taken = apply(module, f"ieee_sub_{mode}_float32", "float32", 16, one, one)
        fused = apply(module, f"ieee_fmaf_{mode}_float32", "float32", 16, one, one, -one)
        for result in (added, taken, fused):
            assert (result == 0).all()
            assert np.signbit(result).all() == (mode == "rd")
        plus = apply(module, f"ieee_add_{mode}_float32", "float32", 16, one * 0, one * 0)
        assert not np.signbit(plus).any()
