"""Every scalar intrinsic has its function in the emulator's header, with the right values."""

from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from tile_core.codegen.operators import function_name
from tile_core.ir.effect import Effect
from tile_core.ir.gpu_intrinsics import GPU_INTRINSICS
from tile_core.ir.intrinsics import INTRINSICS
from tile_sim.sources import SourceKernel

CPP = {"float32": "float", "float64": "double", "float16": "half_t", "bfloat16": "bfloat16_t"}
COUNT = 32


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


UNARY: dict[str, Callable[[float], float]] = {
    **{n: getattr(math, n) for n in "exp expm1 sqrt tanh sin cos tan atan sinh cosh".split()},
    **{n: getattr(math, n) for n in "asinh erf floor ceil trunc log log2 log10 log1p".split()},
    "exp2": lambda x: 2.0**x, "exp10": lambda x: 10.0**x, "rsqrt": lambda x: x**-0.5,
    "sigmoid": _sigmoid, "round": round, "nearbyint": round, "abs": abs,
    "__exp": math.exp, "__exp10": lambda x: 10.0**x, "__log": math.log, "__log2": math.log2,
    "__log10": math.log10, "__tan": math.tan, "__cos": math.cos, "__sin": math.sin,
    "fast_rcp": lambda x: 1 / x,
}  # fmt: skip
# Functions whose arguments must stay within [-1, 1], or beyond 1.
INNER: dict[str, Callable[[float], float]] = {
    n: getattr(math, n) for n in ("asin", "acos", "atanh")
}
BINARY: dict[str, Callable[[float, float], float]] = {
    "pow": math.pow, "fmod": math.fmod, "hypot": math.hypot, "copysign": math.copysign,
    "atan2": math.atan2,
}  # fmt: skip


def _run(text: str, **arguments: np.ndarray) -> None:
    SourceKernel(text, "functions", block=COUNT)(1, **arguments)


def _unary_kernel(names: list[str], cpp: str) -> str:
    calls = "\n".join(
        f"  O[{i * COUNT} + tid] = tile::{function_name(name)}({cpp}(A[tid]));"
        for i, name in enumerate(names)
    )
    return f"""#include "tile.h"
TILE_KERNEL({COUNT}, 1) void functions(tile::gptr<const {cpp}> A, tile::gptr<{cpp}> O) {{
  const int tid = threadIdx.x;
{calls}
}}
TILE_EXPORT(functions)
"""


def _close(got: np.ndarray, wanted: list[float], dtype: str, what: str) -> None:
    # One unit of the last place beyond the rounding of the type, and two of the function's own.
    eps = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(
        got.astype(np.float64), wanted, rtol=3 * eps, atol=1e-30, err_msg=what
    )


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("dtype", CPP)
@pytest.mark.parametrize("inner", [False, True])
def test_functions_of_one_number(dtype: str, inner: bool) -> None:
    functions = INNER if inner else UNARY
    values = np.linspace(0.0625, 0.875 if inner else 3.875, COUNT).astype(np.dtype(dtype))
    output = np.full(len(functions) * COUNT, np.nan).astype(np.dtype(dtype))
    _run(_unary_kernel([*functions], CPP[dtype]), A=values, O=output)
    for (name, function), got in zip(functions.items(), output.reshape(-1, COUNT), strict=True):
        _close(got, [function(float(v)) for v in values], dtype, name)


def test_acosh() -> None:
    values, output = np.linspace(1, 4, COUNT), np.full(COUNT, np.nan)
    _run(_unary_kernel(["acosh"], "double"), A=values, O=output)
    _close(output, [math.acosh(v) for v in values], "float64", "acosh")


@pytest.mark.parametrize("dtype", CPP)
def test_functions_of_two_numbers(dtype: str) -> None:
    cpp = CPP[dtype]
    a = np.linspace(0.125, 4, COUNT).astype(np.dtype(dtype))
    b = np.linspace(2.5, -1.25, COUNT).astype(np.dtype(dtype))
    output = np.full((len(BINARY) + 1) * COUNT, np.nan).astype(np.dtype(dtype))
    calls = "\n".join(
        f"  O[{i * COUNT} + tid] = tile::{name}({cpp}(A[tid]), {cpp}(B[tid]));"
        for i, name in enumerate([*BINARY, "nextafter"])
    )
    text = f"""#include "tile.h"
TILE_KERNEL({COUNT}, 1) void functions(tile::gptr<const {cpp}> A, tile::gptr<const {cpp}> B,
                                       tile::gptr<{cpp}> O) {{
  const int tid = threadIdx.x;
{calls}
}}
TILE_EXPORT(functions)
"""
    _run(text, A=a, B=b, O=output)
    rows = output.reshape(-1, COUNT)
    for (name, function), got in zip(BINARY.items(), rows, strict=False):
        _close(got, [function(float(x), float(y)) for x, y in zip(a, b, strict=True)], dtype, name)
    np.testing.assert_array_equal(rows[-1], np.nextafter(a, b))


@pytest.mark.parametrize("mode", ["rn", "rz", "ru", "rd"])
def test_rounded_operations(mode: str) -> None:
    """Against float64, which holds sums and products of float32 exactly, rounded by hand."""
    a = np.random.default_rng(1).uniform(0.5, 2, COUNT).astype(np.float32)
    b = np.random.default_rng(2).uniform(-2, -0.5, COUNT).astype(np.float32)
    names = {
        "add": a.astype(float) + b, "sub": a.astype(float) - b, "mul": a.astype(float) * b,
        "fdiv": a.astype(float) / b,
    }  # fmt: skip
    ones = {"frcp": 1 / a.astype(float), "fsqrt": np.sqrt(a.astype(float)),
            "frsqrt": 1 / np.sqrt(a.astype(float))}  # fmt: skip
    lines = [f"tile::ieee_{n}_{mode}(float(A[tid]), float(B[tid]))" for n in names]
    lines += [f"tile::ieee_{n}_{mode}(float(A[tid]))" for n in ones]
    lines += [f"tile::ieee_fmaf_{mode}(float(A[tid]), float(B[tid]), 0.0f)"]
    calls = "\n".join(f"  O[{i * COUNT} + tid] = {line};" for i, line in enumerate(lines))
    text = f"""#include "tile.h"
TILE_KERNEL({COUNT}, 1) void functions(tile::gptr<const float> A, tile::gptr<const float> B,
                                       tile::gptr<float> O) {{
  const int tid = threadIdx.x;
{calls}
}}
TILE_EXPORT(functions)
"""
    output = np.full(len(lines) * COUNT, np.nan, np.float32)
    _run(text, A=a, B=b, O=output)
    exact = [*names.values(), *ones.values(), names["mul"]]
    for row, wanted in zip(output.reshape(-1, COUNT), exact, strict=True):
        np.testing.assert_array_equal(row, _rounded(wanted, mode))


def _rounded(x: np.ndarray, mode: str) -> np.ndarray:
    nearest = x.astype(np.float32)
    if mode == "rn":
        return nearest
    bound = {"ru": np.inf, "rd": -np.inf}.get(mode, 0.0)
    beyond = nearest.astype(float) < x if mode == "ru" else nearest.astype(float) > x
    if mode == "rz":
        beyond = np.abs(nearest.astype(float)) > np.abs(x)
    return np.where(beyond, np.nextafter(nearest, np.float32(bound)), nearest)


def test_every_intrinsic_is_there() -> None:
    """Those that no test above calls: they compile, whatever they return."""
    pure = {n for n, row in INTRINSICS.items() if row.effect == Effect.NONE} - set(GPU_INTRINSICS)
    tested = {*UNARY, *INNER, *BINARY, "acosh", "nextafter"}
    tested |= {n for n in pure if n.startswith("ieee_")}
    others = {
        "fma": "2.0f, 3.0f, 1.0f", "ldexp": "1.5f, 2", "isnan": "1.0f", "isinf": "1.0f",
        "isfinite": "1.0f", "popcount": "7", "clz": "7", "ffs": "8", "dp4a": "257, 513, 1",
    }  # fmt: skip
    wanted = [7, 6, 0, 0, 1, 3, 29, 4, 4]
    assert pure == tested | set(others)
    calls = "\n".join(
        f"  O[{i}] = float(tile::{n}({a}));" for i, (n, a) in enumerate(others.items())
    )
    text = f"""#include "tile.h"
TILE_KERNEL({COUNT}, 1) void functions(tile::gptr<float> O) {{
{calls}
}}
TILE_EXPORT(functions)
"""
    output = np.full(len(others), np.nan, np.float32)
    _run(text, O=output)
    np.testing.assert_array_equal(output, wanted)
