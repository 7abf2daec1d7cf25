"""Sizes that remember which dimension they are: equal sizes of unequal things stay apart."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any, SupportsIndex

from tile_api.arrays.equations.sizes import Size, number_of, whole


class Symbol:
    """A dimension of a parameter; dimensions that are found to be one share a symbol."""

    __slots__ = ("_same", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._same: Symbol | None = None

    def found(self) -> Symbol:
        """Return the oldest symbol that this one is the same as."""
        at = self
        while at._same is not None:
            at = at._same
        return at

    def join(self, other: Symbol) -> None:
        """Make both one dimension."""
        mine, others = self.found(), other.found()
        if mine is not others:
            others._same = mine


class Dim(int):
    """The size of a dimension: a number, with the symbol of the dimension; see `dimension`.

    Arithmetic gives plain numbers: half of a dimension is no dimension that has a name.
    """

    __slots__ = ()
    symbol: Symbol


def _left_to_sizes(name: str) -> Callable[[Dim, object], Any]:
    """Return an operation of numbers that leaves those with a symbol as a size to the latter.

    Python asks the left operand, unless the other one is of a class derived from the left one's.
    """
    of_numbers = getattr(int, name)

    def operation(self: Dim, other: object) -> Any:
        return NotImplemented if isinstance(other, Size) else of_numbers(self, other)

    return operation


_ARITHMETIC = ("add", "sub", "mul", "floordiv", "mod", "divmod", "truediv")
for _name in (*_ARITHMETIC, "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Dim, f"__{_name}__", _left_to_sizes(f"__{_name}__"))


class _NumberedDim(Dim):
    def __new__(cls, size: int, symbol: Symbol) -> _NumberedDim:
        self = super().__new__(cls, size)
        self.symbol = symbol
        return self


class _SymbolicDim(Size, Dim):
    pass


def dimension(size: int, symbol: Symbol) -> Dim:
    """Return the size of a dimension that has a symbol."""
    if isinstance(size, Size):
        made: Dim = _SymbolicDim(number_of(size), size.terms, size.usual)
        made.symbol = symbol
        return made
    return _NumberedDim(size, symbol)


def joined(x: SupportsIndex, y: SupportsIndex) -> int:
    """Return the size of a dimension that is both `x` and `y`, which are equal numbers."""
    if isinstance(x, Dim) and isinstance(y, Dim):
        x.symbol.join(y.symbol)
    return x if isinstance(x, Dim) else y if isinstance(y, Dim) else whole(x)


def told(shape: Sequence[int]) -> str:
    """Return a shape as users read it: sizes, with the names of dimensions that have one."""
    return f"({', '.join(map(size_told, shape))}{',' * (len(shape) == 1)})"


def size_told(size: int) -> str:
    """Return a size as users read it."""
    return f"{size.symbol.name}={whole(size)}" if isinstance(size, Dim) else str(whole(size))


def name_of(size: int) -> str:
    """Return the name of a dimension; empty if it has none."""
    return size.symbol.found().name if isinstance(size, Dim) else ""


def variable_of(size: int, taken: frozenset[str]) -> str:
    """Return the name of the index variable of a dimension: its symbol's first that is free.

    Two reductions over one dimension bind the same variable, and so does what reads them there:
    that is how common subexpressions meet.
    """
    name = size.symbol.found().name if isinstance(size, Dim) else f"k'{whole(size)}"
    return another(name, taken)  # as no parameter is called


def another(name: str, taken: Container[str]) -> str:
    """Return the first of a dimension's names from `name` on that is not taken."""
    while name in taken:
        name += "'"
    return name
