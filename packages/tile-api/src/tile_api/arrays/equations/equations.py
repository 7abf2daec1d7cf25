"""What a function computes: the arrays that it takes, and equations for those that it returns."""

from __future__ import annotations

import re

from tile_api.arrays.equations.expressions import Expr
from tile_core.dtypes import DType
from tile_core.records import dataclass

_PRINTED = re.compile(
    r"T|tile|np|main|launch|in_numpy|threads|k[ot]|b[xyz]|B[MNC]|[d-j]|ro?|g\d+|[pt]\d+|out\d*|first|last|wholly|rest"
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


@dataclass(frozen=True, slots=True)
class Equations:
    """What a function computes, for arguments of given shapes and types.

    Parameters
    ----------
    structure
        None if the function returns one array, else the type of what holds them.
    remarks
        What users might not expect, with its line.
    """

    name: str
    parameters: tuple[Parameter, ...]
    outputs: tuple[Output, ...]
    structure: type | None
    remarks: tuple[str, ...] = ()
