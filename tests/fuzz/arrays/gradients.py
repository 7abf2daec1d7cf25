"""Gradients of random functions of whole arrays against differences of what NumPy gives.

A function is differentiated where its floats are ordinary numbers of 64 bits, along directions: the
gradients times a direction are to be what the results change by. Two steps tell how far off the
difference is; where they disagree, or both sides do, as at a kink, nothing is compared. In half of
the programs some numbers are 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fuzz.arrays.fillings import arguments
from fuzz.arrays.program import Program, Step, kind_of
from fuzz.arrays.reference import run_lines, widened

TARGET = "gradients"
DIRECTIONS = 3
STEP = 1e-5
CORNERS = (
    ".std(", "np.sqrt(", "np.hypot(", "np.cbrt(", "np.arctan2(", ".nanstd(",
    "np.power(", "np.float_power(",
    "_norm(", "linalg.norm(",
)  # fmt: skip
"""Lines without a derivative somewhere: roots of zero, angles of nothing."""
WHOLES = ("//", "floor", "ceil", "rint", "trunc", "round", "astype('int")
OFF = 1e-6
"""How far off a derivative may be, of the terms that it is a sum of."""


def smooth(program: Program) -> Program | None:
    """Return a program of ordinary numbers of 64 bits; None if it has no such floats."""
    filling = "some zeros" if program.seed % 2 else "normal"
    taken = tuple(
        replace(a, dtype="float64", filling=filling) if "float" in a.dtype else a
        for a in program.arguments
    )
    steps = tuple(Step(widened(s.text), s.operands, s.kind) for s in program.steps)
    made = replace(program, arguments=taken, steps=steps)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = run_lines(made, arguments(made), lambda text: text)
    outputs = tuple(k for k in program.outputs if kind_of(values[k].dtype) == "f")
    outputs = tuple(k for k in outputs if values[k].size and np.isfinite(values[k]).all())
    has_floats = any(a.dtype == "float64" for a in taken)
    return replace(made, outputs=outputs) if outputs and has_floats else None


def wrong(program: Program, function: Any) -> str | None:
    """Return what is wrong with the gradients of a smooth program, in a line.

    Parameters
    ----------
    function
        It, as a function of whole arrays.
    """
    random = np.random.default_rng(program.seed)
    given = arguments(program)
    floats = [k for k, a in enumerate(program.arguments) if a.dtype == "float64"]
    results = _results(program, given)
    has_none = any(word in s.text for s in program.steps for word in CORNERS)
    has_none |= any(
        not np.isfinite(x).all() for x in _values(program, given) if x.dtype.kind == "f"
    )
    weights = [random.standard_normal(r.shape).astype(r.dtype) for r in results]
    _, pull = function.vjp(*given)
    found = pull(*weights)
    gradients = [np.asarray(g) for g in (found if isinstance(found, tuple) else (found,))]
    wholes = [
        len(given) + k for k, s in enumerate(program.steps) if any(w in s.text for w in WHOLES)
    ]
    for _ in range(DIRECTIONS):
        along = [random.standard_normal(given[k].shape) for k in floats]
        terms = [g * d for g, d in zip(gradients, along, strict=True)]
        mine = float(sum(term.sum() for term in terms))
        size = float(sum(np.abs(term).sum() for term in terms))

        def slopes(step: float) -> tuple[float, float]:
            ends = _ends(program, given, floats, along, step)
            return _slopes(program, weights, results, ends, step)

        def change(step: float) -> float:
            return sum(slopes(step)) / 2

        with np.errstate(all="ignore"):
            wide, half, least = change(STEP), change(STEP / 2), change(STEP / 64)
            one, other = slopes(STEP / 64)
            before, after = _ends(program, given, floats, along, STEP / 64)
        if any(not np.array_equal(before[k], after[k], equal_nan=True) for k in wholes):
            continue  # it jumps, once or many times, within a step
        spread = abs(wide - half) + abs(half - least)
        scale = max(abs(half), size)
        if not abs(one - other) <= 1e-4 * (scale + 1e-9):
            continue  # a corner: there are other derivatives on both sides
        if not np.isfinite(size) and has_none:
            continue
        if not np.isfinite(spread) or not spread <= 1e-3 * (scale + 1e-9):
            continue
        if spread > max(abs(wide), abs(half)) + 1e-9:  # the differences say nothing
            continue
        if not abs(mine - half) <= 20 * spread + OFF * scale + 1e-9:
            return (
                f"along a direction it changes by {half}, not by {mine}; steps differ by {spread}"
            )
    return None


def _slopes(
    program: Program,
    weights: Sequence[Any],
    results: Sequence[Any],
    ends: Sequence[Sequence[Any]],
    step: float,
) -> tuple[float, float]:
    """Return how fast the weighted results change after the point, and before it."""
    after, before = ([values[k] for k in program.outputs] for values in ends)
    pairs = list(zip(weights, after, results, before, strict=True))
    rise = sum(float((w * (a - y)).sum()) for w, a, y, _ in pairs)
    fall = sum(float((w * (y - b)).sum()) for w, _, y, b in pairs)
    return rise / step, fall / step


def _ends(
    program: Program, given: Sequence[Any], floats: Sequence[int], along: Sequence[Any], step: float
) -> list[list[Any]]:
    """Return all values a step to both sides, along a direction of the arguments of floats."""
    ends = []
    for sign in (step, -step):
        moved = [*given]
        for k, d in zip(floats, along, strict=True):
            moved[k] = given[k] + sign * d
        ends.append(_values(program, moved))
    return ends


def _results(program: Program, given: Sequence[Any]) -> list[Any]:
    values = _values(program, given)
    return [values[k] for k in program.outputs]


def _values(program: Program, given: Sequence[Any]) -> list[Any]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run_lines(program, given, lambda text: text)
