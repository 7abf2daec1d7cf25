"""Arguments on which kernels are compared with what they should compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tile_api.arrays.equations.equations import Equations, Parameter
from tile_api.arrays.equations.expressions import walk


@dataclass(frozen=True)
class Supply:
    """Where the elements of a parameter come from.

    Parameters
    ----------
    low, high
        Bounds of whole numbers, the second excluded; of floats there are none.
    values
        The elements, where they are known: of arrays that stand in the function.
    """

    parameter: Parameter
    low: int
    high: int
    values: np.ndarray[Any, Any] | None = None

    def text(self) -> str:
        """Return an expression of NumPy for it; there is a generator `random`."""
        p = self.parameter
        if p.dtype.is_float:
            return f'random.standard_normal({p.shape}).astype("{p.dtype}")'
        return f'random.integers({self.low}, {self.high}, {p.shape}).astype("{p.dtype}")'

    def array(self, random: np.random.Generator) -> np.ndarray[Any, Any]:
        """Return random elements, unless they are known."""
        if self.values is not None:
            return self.values
        p = self.parameter
        if p.dtype.is_float:
            return np.asarray(random.standard_normal(p.shape)).astype(p.dtype.numpy())
        return np.asarray(random.integers(self.low, self.high, p.shape)).astype(p.dtype.numpy())


def supplies(equations: Equations) -> list[Supply]:
    """Return a supply for each parameter; indices stay within what they are indices of."""
    constants = {t.parameter.name: t.values for t in equations.constants}
    return [
        replace(_supply(equations, p), values=constants.get(p.name)) for p in equations.parameters
    ]


def _supply(equations: Equations, parameter: Parameter) -> Supply:
    if parameter.dtype.is_float:
        return Supply(parameter, 0, 0)
    if parameter.dtype.is_bool:
        return Supply(parameter, 0, 2)
    shapes = {p.tensor: p.shape for p in equations.parameters}
    shapes |= {o.name: o.shape for o in equations.materialised}
    sizes = [
        size
        for x in walk(*(o.element for o in equations.computed))
        if x.op == "load"
        for size, i in zip(shapes[x.value], x.args, strict=True)
        if any(n.op == "load" and n.value == parameter.tensor for n in walk(i))
    ]
    if sizes:
        return Supply(parameter, 0, max(1, min(sizes)))
    return Supply(parameter, 0 if parameter.dtype.startswith("uint") else -4, 5)


Arguments = list[np.ndarray[Any, Any]]


def random_and_edges(equations: Equations) -> Iterator[tuple[str, Arguments]]:
    """Yield arguments, and what they are: two random sets, then edges."""
    known = supplies(equations)
    first, second = ([s.array(np.random.default_rng(seed)) for s in known] for seed in (0, 1))

    def changed(change: Callable[[Any], Any], number: Callable[[Supply], int]) -> Arguments:
        return [
            x
            if s.values is not None
            else np.asarray(change(x.astype("float64"))).astype(x.dtype)
            if s.parameter.dtype.is_float
            else np.full(x.shape, number(s), x.dtype)
            for s, x in zip(known, first, strict=True)
        ]

    yield "random arrays", first
    yield "other random arrays", second
    yield "zeros", changed(np.zeros_like, lambda s: 0)
    yield "numbers around 3", changed(lambda x: x + 3, lambda s: s.high - 1)
    yield "the smallest whole numbers", changed(lambda x: x, lambda s: s.low)
