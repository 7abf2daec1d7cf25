"""Functions of whole arrays run forwards and backwards."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.constant_arrays import ConstantArrays, as_given
from tile_api.arrays.equations.equations import Equations, Output
from tile_api.arrays.equations.expressions import computed_in, const
from tile_api.arrays.gradients.residuals import Passes, passes
from tile_api.arrays.gradients.stages import adjoint_of
from tile_api.frontend.source import calling_span
from tile_core.errors import ArgumentCountError, ArrayShapeError, NoGradient

Run = Callable[[Collection[Any]], Sequence[Any]]


class Differentiable:
    """A program for arguments of given shapes and types, with its vector-Jacobian products.

    Parameters
    ----------
    equations
        The program.
    prepared
        Makes kernels of equations: what takes the arrays and returns results.
    lock
        Held while equations are made.
    """

    def __init__(
        self,
        equations: Equations,
        prepared: Callable[[Equations], Run],
        lock: AbstractContextManager[Any],
    ) -> None:
        self.equations = equations
        self._plain = replace(equations, constants=())
        self._constants = ConstantArrays(equations.constants)
        self._prepared = prepared
        self._lock = lock
        self._adjoints: dict[tuple[str, ...], Differentiable] = {}
        self._passes: dict[tuple[str, ...], tuple[Passes, Run, Run]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its arguments."""
        return tuple(p.name for p in self.equations.arguments)

    def adjoint(self, wrt: tuple[str, ...]) -> Differentiable:
        """Return its vector-Jacobian product as a program of its own, which saves nothing."""
        with self._lock:
            if wrt not in self._adjoints:
                made = adjoint_of(self._plain, wrt)
                arguments, count = self.equations.arguments, len(self.equations.parameters)
                constants = made.parameters[len(arguments) : count]
                parameters = (*arguments, *made.parameters[count:], *constants)
                made = replace(made, parameters=parameters, constants=self.equations.constants)
                self._adjoints[wrt] = Differentiable(made, self._prepared, self._lock)
            return self._adjoints[wrt]

    def forward(self, arrays: Sequence[Any], wrt: tuple[str, ...]) -> tuple[list[Any], Pullback]:
        """Return the results for arrays, and what takes cotangents of them back."""
        with self._lock:
            if wrt not in self._passes:
                made = passes(self._plain, wrt)
                runs = self._prepared(made.forward), self._prepared(made.backward)
                self._passes[wrt] = (made, *runs)
        made, forward, backward = self._passes[wrt]
        arrays = self._constants.behind(arrays)
        results = forward(arrays)
        held = {p.tensor: x for p, x in zip(self.equations.parameters, arrays, strict=True)}
        held |= {o.name: x for o, x in zip(made.forward.outputs, results, strict=True)}
        kept = {name: held[name] for name in made.takes if name in held}
        return [*results[: len(self.equations.outputs)]], Pullback(made, kept, backward)


@dataclass(frozen=True)
class Pullback:
    """Takes cotangents of a function's results back to gradients of its arguments.

    Parameters
    ----------
    passes
        What is computed forwards and backwards.
    kept
        What it keeps of arguments and results, by name.
    run
        The kernels of the backward pass.
    is_one
        Whether it gives its only gradient by itself.
    """

    passes: Passes
    kept: Mapping[str, Any]
    run: Run
    is_one: bool = False

    def __call__(self, *cotangents: Any) -> Any:
        """Return the gradients for cotangents, one for each result of the function.

        Raises
        ------
        ArgumentCountError
            If there are more or fewer cotangents than results.
        ArrayShapeError, NoGradient
            If a cotangent has another shape, or another type, than the result.
        """
        made = self.passes.forward
        check_cotangents(made.name, made.outputs[: len(self.passes.cotangents)], cotangents)
        found = self.gradients(cotangents)
        return found[0] if self.is_one else tuple(found)

    def holding(self, kept: Mapping[str, Any]) -> Pullback:
        """Return it with other arrays for what it keeps."""
        return replace(self, kept=kept)

    def gradients(self, cotangents: Sequence[Any]) -> Sequence[Any]:
        """Return the gradients for cotangents of those results that are floats."""
        held = {**self.kept, **dict(zip(self.passes.cotangents, cotangents, strict=True))}
        found = self.run([held[name] for name in self.passes.takes])
        return found if self.passes.takes else as_given(found, [*held.values()])


def check_cotangents(name: str, results: Sequence[Output], cotangents: Sequence[Any]) -> None:
    """Check that cotangents are like the results of a function.

    Raises
    ------
    ArgumentCountError
        If there are more or fewer cotangents than results.
    ArrayShapeError, NoGradient
        If one has another shape, or another type, than its result.
    """
    if len(cotangents) != len(results):
        raise ArgumentCountError(
            f"the gradient of {name} takes {len(results)} cotangents, one for each result, and got "
            f"{len(cotangents)}",
            span=calling_span(),
        )
    for k, (x, result) in enumerate(zip(cotangents, results, strict=True)):
        shape = tuple(map(int, x.shape)) if hasattr(x, "shape") else np.shape(x)
        dtype = getattr(x, "dtype", type(x).__name__)
        if shape != result.shape:
            raise ArrayShapeError(
                f"the cotangent of result {k} has shape {shape}, and the result {result.shape}",
                span=calling_span(),
                hint="np.broadcast_to makes one of the right shape",
            )
        if str(dtype).removeprefix("torch.") != result.dtype:
            raise NoGradient(
                f"the cotangent of result {k} has elements of {dtype}, and the result of "
                f"{result.dtype}",
                span=calling_span(),
                hint="cast it with astype",
            )


def names_of(equations: Equations, wrt: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the parameters for which gradients are asked; all that hold floats by default.

    Raises
    ------
    NoGradient
        If there is no such parameter, or it holds no floats, or a result holds none.
    """
    parameters = {p.name: p for p in equations.arguments}
    floats = [name for name, p in parameters.items() if p.dtype.is_float]
    told = f"with respect to {', '.join(floats)}" if floats else "of floats alone"
    asked = floats if wrt is None else [wrt] if isinstance(wrt, str) else [*wrt]
    for name in asked:
        if name not in parameters:
            raise NoGradient(
                f"{equations.name} takes no array {name!r}",
                span=calling_span(),
                hint=f"there are gradients {told}",
            )
        if name not in floats:
            raise NoGradient(
                f"{name!r} holds elements of {parameters[name].dtype}: a step between integers "
                "is not small",
                span=calling_span(),
                hint=f"there are gradients {told}",
            )
    if not asked:
        raise NoGradient(
            f"{equations.name} takes no array of floats", span=calling_span(),
            hint="cast arguments with astype",
        )  # fmt: skip
    for k, output in enumerate(equations.outputs):
        if not output.dtype.is_float:
            which = f"result {k} of " if equations.structure else ""
            raise NoGradient(
                f"{which}{equations.name} has elements of {output.dtype}, which have no gradient",
                span=calling_span(),
                hint="return floats alone; astype makes floats",
            )
    return tuple(asked)


def check_number(equations: Equations) -> None:
    """Check that a function returns one number, whose gradient needs no cotangent.

    Raises
    ------
    NoGradient
        If it returns something else.
    """
    shapes = [output.shape for output in equations.outputs]
    if equations.structure is not None or shapes != [()]:
        told = ", ".join(map(str, shapes))
        raise NoGradient(
            f"grad is of a function that returns one number, and {equations.name} returns {told}",
            span=calling_span(),
            hint="sum the result; or vjp takes a cotangent for each element",
        )


def one_like(x: Any) -> Any:
    """Return the number 1 as an array of the kind of `x`."""
    if isinstance(x, Array):
        return Array((), x.dtype, lambda _: const(1, computed_in(x.dtype)))
    return x.new_ones(()) if hasattr(x, "new_ones") else np.ones((), x.dtype)
