"""Gradients of captured functions, beside slopes of what their equations compute."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from tile_api.arrays.capturing.capture import captured
from tile_api.arrays.equations.equations import Equations, Parameter
from tile_api.arrays.equations.evaluate import evaluated
from tile_api.arrays.gradients.stages import adjoint_of
from tile_core.dtypes import dtype_of

STEP = 1e-6


def equations_of(function, *arrays) -> Equations:
    """Return what a function computes of arrays."""
    names = inspect.signature(function).parameters
    parameters = [
        Parameter(name, x.shape, dtype_of(str(x.dtype)))
        for name, x in zip(names, arrays, strict=True)
    ]
    return captured(function, parameters, {})


def gradients(function, cotangents, *arrays) -> list[Any]:
    """Return the gradients with respect to all arrays of floats, by the interpreter."""
    equations = equations_of(function, *arrays)
    wrt = [p.name for p in equations.parameters if p.dtype.is_float]
    backward = adjoint_of(equations, wrt)
    held = zip((p.name for p in backward.parameters), (*arrays, *cotangents), strict=True)
    return evaluated(backward, dict(held))


class Backward:
    """A function at some arguments, with a random cotangent and a random direction."""

    def __init__(self, function, *arrays) -> None:
        self.function = function
        self.equations = equations_of(function, *arrays)
        self.names = [p.name for p in self.equations.parameters]
        self.arrays = dict(zip(self.names, arrays, strict=True))
        self.results = evaluated(self.equations, self.arrays)
        random = np.random.default_rng(4)
        self.cotangents = [random.standard_normal(y.shape) for y in self.results]
        self.directions = {
            name: random.standard_normal(x.shape)
            for name, x in self.arrays.items()
            if x.dtype.kind == "f"
        }

    @property
    def is_float(self) -> bool:
        return all(y.dtype == "float64" for y in self.results)

    def slope(self, step: float) -> float:
        """Return how fast the results change in the direction, weighted with the cotangents."""
        ends = []
        for moved in (step, -step):
            at = {
                name: x + moved * self.directions[name] if name in self.directions else x
                for name, x in self.arrays.items()
            }
            results = evaluated(self.equations, at)
            ends.append([(c * y).sum() for c, y in zip(self.cotangents, results, strict=True)])
        return sum(a - b for a, b in zip(*ends, strict=True)) / (2 * step)

    @property
    def is_smooth(self) -> bool:
        """Whether no step or kink lies near."""
        wide, narrow = self.slope(4 * STEP), self.slope(STEP)
        return bool(abs(wide - narrow) <= 1e-5 * (1 + abs(narrow)))

    def check(self, tolerance: float = 1e-6) -> None:
        """Compare the gradients with the slope."""
        found = gradients(self.function, self.cotangents, *self.arrays.values())
        along = sum((g * d).sum() for g, d in zip(found, self.directions.values(), strict=True))
        slope = self.slope(STEP)
        assert abs(along - slope) <= tolerance * (1 + abs(slope)), (along, slope)
