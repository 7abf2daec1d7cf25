"""What stands in the arguments of random functions: ordinary and hostile numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.arrays.program import Program, kind_of

FLOATS = {
    "normal": 30, "whole": 12, "ties": 8, "large mean": 8, "masked": 6, "holes": 5, "infinite": 4,
    "zeros": 3, "subnormal": 3, "huge": 3, "tiny": 3, "equal rows": 4,
}  # fmt: skip
INTEGERS = {"whole": 20, "ties": 8, "extreme": 8, "zeros": 2}
"""Fillings with how often they are met."""


def arguments(program: Program) -> list[np.ndarray[Any, Any]]:
    """Return the arrays that a program is run with."""
    random = np.random.default_rng(program.seed)
    return [np.asarray(filled(random, a.shape, a.dtype, a.filling)) for a in program.arguments]


def filled(random: Any, shape: tuple[int, ...], dtype: str, filling: str) -> Any:
    """Return an array with numbers of a kind."""
    kind = np.dtype(dtype)
    if kind_of(kind) == "f":
        with np.errstate(all="ignore"):
            return _floats(random, shape, filling).astype(kind)
    if kind.kind == "b":
        return random.integers(0, 2, shape).astype(kind)
    limits = np.iinfo(kind)
    if filling == "extreme":
        near = random.integers(0, 3, shape)
        return np.where(random.random(shape) < 0.5, limits.min + near, limits.max - near).astype(
            kind
        )
    low = 0 if kind.kind == "u" else -9
    high = {"ties": 2, "zeros": 1}.get(filling, 10)
    return random.integers(0 if high < 3 else low, high, shape).astype(kind)


def _floats(random: Any, shape: tuple[int, ...], filling: str) -> Any:
    x = random.standard_normal(shape)
    some = random.random(shape)
    match filling:
        case "whole":
            return random.integers(-6, 7, shape)
        case "ties":
            return random.integers(0, 3, shape) * 0.5
        case "large mean":
            return 1e4 + x
        case "masked":  # as a mask leaves it: some rows see nothing
            rows = random.random((*shape[:-1], 1)[: len(shape)]) < 0.3
            return np.where((some < 0.4) | rows, -np.inf, x)
        case "holes":
            return np.where(some < 0.1, np.nan, x)
        case "infinite":
            return np.where(some < 0.05, np.inf, np.where(some > 0.95, -np.inf, x))
        case "zeros":
            return np.where(some < 0.5, -0.0, 0.0)
        case "some zeros":  # as weights and masks have
            return np.where(some < 0.3, 0.0, x)
        case "subnormal":
            return x * 1e-40
        case "huge":
            return x * 1e30
        case "tiny":
            return x * 1e-20
        case "equal rows":
            return np.broadcast_to(x[..., :1], shape) if shape else x
    return x
