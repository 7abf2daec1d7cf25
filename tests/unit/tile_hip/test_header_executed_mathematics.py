"""The mathematics of the device header, as the compiler made it: nothing wrong was fused.

What the functions themselves are worth is measured in `test_header_mathematics`, on many more
numbers; here few show that the machine code is those functions.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from support.hip_executed import THREADS, executed

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

LARGE = 2.0 ** np.linspace(29, 120, 24)


def _vectorised(function):
    return np.vectorize(function, otypes=[np.float64])


FUNCTIONS = {
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.float64(10.0) ** x, "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "tanh": np.tanh,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "erf": _vectorised(math.erf), "floor": np.floor,
    "round": np.rint,
}  # fmt: skip
OF_TWO = {
    "pow": lambda x, y: np.abs(x) ** y, "fmod": np.fmod, "hypot": np.hypot, "atan2": np.arctan2,
    "copysign": np.copysign, "nextafter": np.nextafter,
}  # fmt: skip


def numbers(dtype, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    moderate = rng.uniform(-1, 1, 60) * 2.0 ** rng.integers(-6, 4, 60)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 88.5, -87.0, -100.0, 1e-40, 3e38]
    x = [moderate, LARGE, special, np.abs(moderate[:32])]
    return np.concatenate(x).astype(dtype)[:THREADS]


def check(found: np.ndarray, expected: np.ndarray, x: np.ndarray, name: str, bound: float) -> None:
    exact = expected.astype(found.dtype)
    same = (found == exact) | (np.isnan(found) & np.isnan(exact))
    unit = np.spacing(np.abs(exact)).astype(np.float64)
    off = np.abs(found.astype(np.float64) - expected) / unit
    is_gone = (np.abs(exact) < np.finfo(found.dtype).tiny) & (name in ("exp2",)) & (found == 0)
    wrong = ~(same | (off <= bound) | is_gone)
    assert not wrong.any(), (
        f"{name}: {x[wrong][:4]} gave {found[wrong][:4]}, not {exact[wrong][:4]}"
    )


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
@pytest.mark.parametrize(("p", "dtype", "bound"), [("F", np.float32, 3.0), ("D", np.float64, 5.0)])
def test_functions_of_one_number(arch, p, dtype, bound):
    x = numbers(dtype, 1)
    found = np.concatenate([x, np.full(len(FUNCTIONS) * THREADS, 0.123)]).astype(dtype)
    kind = "float" if p == "F" else "double"
    body = f"const {kind} x = {p}[tid];\n" + "\n".join(
        f"{p}[{THREADS * row} + tid] = tile::{name}(x);" for row, name in enumerate(FUNCTIONS, 1)
    )
    executed(arch, body, **{p: found})
    for row, (name, function) in enumerate(FUNCTIONS.items(), 1):
        wide = x.astype(np.float64)
        check(found[THREADS * row :][:THREADS], function(wide), x, name, bound)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
@pytest.mark.parametrize(("p", "dtype", "bound"), [("F", np.float32, 1.0), ("D", np.float64, 3.0)])
def test_functions_of_two_numbers(arch, p, dtype, bound):
    x, y = numbers(dtype, 1), np.roll(numbers(dtype, 2), 5)
    y[40:60] = np.arange(20) - 10
    found = np.concatenate([x, y, np.zeros(len(OF_TWO) * THREADS)]).astype(dtype)
    kind = "float" if p == "F" else "double"
    body = f"const {kind} x = {p}[tid], y = {p}[tid + {THREADS}];\n" + "\n".join(
        f"{p}[{THREADS * row} + tid] = tile::{name}({'tile::abs(x)' if name == 'pow' else 'x'}, y);"
        for row, name in enumerate(OF_TWO, 2)
    )
    executed(arch, body, **{p: found})
    for row, (name, function) in enumerate(OF_TWO.items(), 2):
        a, b = (x, y) if name == "nextafter" else (x.astype(np.float64), y.astype(np.float64))
        check(found[THREADS * row :][:THREADS], function(a, b), x, name, bound)


ROUNDED = {"add": "+", "sub": "-", "mul": "*", "fdiv": "/"}


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
@pytest.mark.parametrize(("p", "dtype"), [("F", np.float32), ("D", np.float64)])
def test_directed_results_enclose_the_exact_one(arch, p, dtype):
    """Rounded up and down they are neighbours around the exact result, or both are it."""
    from fractions import Fraction

    rng = np.random.default_rng(3)
    x, y = ((rng.standard_normal(THREADS) * 2.0 ** rng.integers(-9, 9, THREADS)).astype(dtype)
            for _ in range(2))  # fmt: skip
    found = np.concatenate([x, y, np.zeros(8 * THREADS)]).astype(dtype)
    kind = "float" if p == "F" else "double"
    body = f"const {kind} x = {p}[tid], y = {p}[tid + {THREADS}];\n" + "\n".join(
        f"{p}[{THREADS * (2 + 2 * row + up)} + tid] = tile::ieee_{name}_{mode}(x, y);"
        for row, name in enumerate(ROUNDED)
        for up, mode in enumerate(("rd", "ru"))
    )
    executed(arch, body, **{p: found})
    for row, sign in enumerate(ROUNDED.values()):
        low, high = found.reshape(-1, THREADS)[2 + 2 * row :][:2]
        for at in range(THREADS):
            a, b = Fraction(float(x[at])), Fraction(float(y[at]))
            exact = {"+": a + b, "-": a - b, "*": a * b, "/": a / b}[sign]
            assert Fraction(float(low[at])) <= exact <= Fraction(float(high[at]))
            is_exact = Fraction(float(low[at])) == exact
            next_up = low[at] if is_exact else np.nextafter(low[at], dtype(np.inf))
            assert high[at] == next_up
