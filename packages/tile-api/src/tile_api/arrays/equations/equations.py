"""What a function computes: the arrays that it takes, and equations for those that it returns."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from tile_api.arrays.equations.dims import variable_of
from tile_api.arrays.equations.expressions import Expr, const, index, load, walk
from tile_api.arrays.equations.sizes import Size, whole
from tile_api.arrays.equations.substitution import substituted
from tile_core.dtypes import DType
from tile_core.records import dataclass

_PRINTED = re.compile(
    r"T|tile|np|main|launch|in_numpy|threads|k[ot]|b[xyz]|B[MNC]|[d-j]|ro?|g\d+|[pt]\d+(_\d+)?|out\d*|first|last|wholly|rest"
)
"""Names that the text of a kernel uses for what is its own."""


def printed_name(name: str) -> str:
    """Return what a kernel calls something that users call `name`."""
    if not name.isidentifier():  # a lambda
        return "function"
    return f"{name}_" if _PRINTED.fullmatch(name.rstrip("_")) else name


@dataclass(frozen=True, slots=True)
class Parameter:
    """An array that a function takes."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    dims: tuple[str | int | None, ...] = ()
    """What users call its dimensions: equal names are one dimension."""

    @property
    def tensor(self) -> str:
        """What kernels call it."""
        return printed_name(self.name)


@dataclass(frozen=True, slots=True)
class ConstantArray:
    """An array that stands in a function, as it was when the function was captured.

    Parameters
    ----------
    digest
        What tells its elements, bit by bit, from others.
    """

    parameter: Parameter
    digest: str
    values: np.ndarray[Any, Any] = field(compare=False, repr=False)


def constant_array(name: str, values: np.ndarray[Any, Any], dtype: DType) -> ConstantArray:
    """Return a table of the elements that an array has now."""
    copy = np.array(values, order="C")
    copy.flags.writeable = False
    digest = hashlib.sha256(copy.tobytes()).hexdigest()[:16]
    return ConstantArray(Parameter(name, copy.shape, dtype), digest, copy)


@dataclass(frozen=True, slots=True)
class Output:
    """An array that a function returns.

    Parameters
    ----------
    indices
        The index variable of each dimension; the constant 0 where its size is 1.
    element
        The element there.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    indices: tuple[Expr, ...]
    element: Expr

    def read_from(self, tensor: str) -> Expr:
        """Return the element, read from a tensor with all of them.

        It is the first one along what the element does not change along.
        """
        first = {name: const(0) for i in self.indices for name in i.free - self.element.free}
        return load(tensor, (substituted(i, first) for i in self.indices), self.dtype)


def indices_of(shape: Sequence[int]) -> tuple[Expr, ...]:
    """Return the index variable of each dimension; the constant 0 where its size is 1."""
    indices: list[Expr] = []
    for size in shape:
        taken = frozenset().union(*(i.free for i in indices))
        indices.append(const(0) if size == 1 else index(variable_of(size, taken), whole(size)))
    return tuple(indices)


def described(equations: Equations) -> list[object]:
    """Return what tells equations apart that have symbols for sizes, whatever their numbers."""
    return [*(t.digest for t in equations.constants), *structure_of(equations.computed)]


def structure_of(outputs: Sequence[Output], tensors: dict[str, int] | None = None) -> list[object]:
    """Return what tells apart how outputs are computed, but for their names.

    Parameters
    ----------
    tensors
        If it is given, tensors that are loaded are told by numbers, which it gets.
    """
    numbers: dict[Expr, int] = {}
    made: list[object] = []
    for o in outputs:
        for x in walk(*o.indices, o.element):
            if x not in numbers:
                numbers[x] = len(numbers)
                args = [numbers[arg] for arg in x.args]
                value = x.value
                if x.op == "load" and tensors is not None:
                    value = tensors.setdefault(value, len(tensors))
                made.append((x.op, args, str(value), x.dtype))
        indices = [numbers[i] for i in o.indices]
        made.append((str(o.shape), o.dtype, indices, numbers[o.element]))
    return made


@dataclass(frozen=True, slots=True)
class Equations:
    """What a function computes, for arguments of given shapes and types.

    Parameters
    ----------
    structure
        None if the function returns one array, else the type of what holds them.
    remarks
        What users might not expect, with its line.
    dimensions
        Of each parameter: what its dimensions are called, equally if they are one; empty for
        those of one element.
    conditions
        For which values of symbols they are right, as expressions of Python.
    constants
        Arrays that the function is not called with: kernels take them as its last parameters.
    materialised
        Arrays that are computed once and stored, each before those that load its elements.
    """

    name: str
    parameters: tuple[Parameter, ...]
    outputs: tuple[Output, ...]
    structure: type | None
    remarks: tuple[str, ...] = ()
    dimensions: tuple[tuple[str, ...], ...] = ()
    conditions: tuple[str, ...] = ()
    constants: tuple[ConstantArray, ...] = ()
    materialised: tuple[Output, ...] = ()

    @property
    def computed(self) -> tuple[Output, ...]:
        """All arrays that are computed: those that are materialised, then the results."""
        return (*self.materialised, *self.outputs)

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """The parameters that the function is called with."""
        return self.parameters[: len(self.parameters) - len(self.constants)]

    @property
    def symbols(self) -> dict[str, tuple[Parameter, int]]:
        """The sizes that are symbols, each with the first dimension that tells it."""
        found: dict[str, tuple[Parameter, int]] = {}
        for p in self.parameters:
            for k, n in enumerate(p.shape):
                if isinstance(n, Size):
                    found.setdefault(str(n), (p, k))
        return found
