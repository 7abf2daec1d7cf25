"""Pieces of tensors: their elements at constant places, or behind such.

Steps of a loop of Python read `w[k]`, or `x[16 * k : 16 * k + 16]`, with another `k` each. In terms
of pieces they do the same: pieces are tensors as well, which lie in the memory of whole ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tile_api.arrays.equations.equations import Output, Parameter
from tile_api.arrays.equations.expressions import (
    Expr,
    add,
    bound_of,
    const,
    load,
    rebuild,
    walk,
)
from tile_api.arrays.equations.sizes import Size
from tile_core.dtypes import DType

Place = tuple[int, int]
"""Where a piece starts along a dimension, and its size; -1: it has no such dimension."""


@dataclass(frozen=True)
class Piece:
    """Elements of a tensor at constant places.

    Parameters
    ----------
    places
        Of each dimension; None if all of it belongs to the piece.
    """

    tensor: str
    places: tuple[Place | None, ...]

    def __str__(self) -> str:
        """Return it as it is written in Python."""
        told = [":" if p is None else _told(p) for p in self._inner()]
        return f"{self.tensor}[{', '.join(told)}]"

    @property
    def key(self) -> tuple[int | slice, ...]:
        """What an array is indexed by to get it; it has a dimension at least."""
        whole = slice(None)
        return tuple(whole if p is None else _sliced(p) for p in self._inner())

    def _inner(self) -> Sequence[Place | None]:
        places = [*self.places]
        while places and places[-1] is None:
            places.pop()
        if len(places) == len(self.places) and all(p is not None and p[1] < 0 for p in places):
            start, _ = places[-1] or (0, 0)
            places[-1] = (start, 1)
        return places

    def is_dense(self, shape: Sequence[int]) -> bool:
        """Tell whether its elements lie one behind the other, in a tensor of a shape."""
        last = max((k for k, p in enumerate(self.places) if p is not None), default=-1)
        before = zip(self.places[:last], shape, strict=False)
        return all(n == 1 or (p is not None and p[1] in (-1, 1)) for p, n in before)

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape that it has in a tensor of a shape."""
        sizes = zip(self.places, shape, strict=True)
        return tuple(n if p is None else p[1] for p, n in sizes if p is None or p[1] >= 0)

    def parameter(self, name: str, of: Parameter) -> Parameter:
        """Return it as a parameter."""
        return Parameter(name, self.shape(of.shape), of.dtype)

    def within(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """Return indices of an element in the whole tensor, by those that it has in the piece."""
        mine = iter(indices)
        return tuple(
            next(mine) if p is None
            else const(p[0]) if p[1] < 0
            else add(const(p[0]), next(mine))
            for p in self.places
        )  # fmt: skip


def _sliced(place: Place) -> int | slice:
    start, size = place
    return start if size < 0 else slice(start, start + size)


def _told(place: Place) -> str:
    start, size = place
    return str(start) if size < 0 else f"{start}:{start + size}"


Read = tuple[Piece, tuple[Expr, ...]]
"""What a load reads: a piece that is as small as possible, and the indices in it."""


def read_by(x: Expr, shape: Sequence[int]) -> Read:
    """Return what a load reads of a tensor of a shape."""
    found = [_place(i, n) for i, n in zip(x.args, shape, strict=True)]
    inner = tuple(i for place, i in found if i is not None)
    return Piece(x.value, tuple(place for place, _ in found)), inner


def _place(i: Expr, size: int) -> tuple[Place | None, Expr | None]:
    """Return where an index starts, and the index from there on."""
    if isinstance(size, Size) or size == 1:
        return None, i
    if i.op == "const":
        is_inside = not isinstance(i.value, Size) and 0 <= i.value < size
        return ((i.value, -1), None) if is_inside else (None, i)
    start, rest = 0, i
    if i.op == "add" and i.args[0].op == "const":
        start, rest = i.args[0].value, i.args[1]
    most = bound_of(rest)
    if most is None or isinstance(most, Size) or isinstance(start, Size) or most >= size:
        return None, i
    return ((start, most), rest) if 0 <= start <= size - most else (None, i)


def in_pieces(
    outputs: Iterable[Output],
    given: Mapping[str, Parameter],
    name_of: Callable[[Piece], tuple[str, Piece] | None],
) -> tuple[Output, ...]:
    """Return outputs in terms of pieces.

    Parameters
    ----------
    given
        The tensors that they load, by name.
    name_of
        Returns the name of what is to be loaded for a piece, and the piece of that name, which
        starts along fewer dimensions; None if the tensor is.
    """
    outputs = tuple(outputs)
    known: dict[Expr, Expr] = {}
    for x in walk(*(o.element for o in outputs)):
        if x.op != "load" or not x.args:
            continue
        piece, _ = read_by(x, given[x.value].shape)
        found = name_of(piece)
        if found is not None:
            name, taken = found
            pairs = zip(x.args, taken.places, given[x.value].shape, strict=True)
            inner = [_place(i, n)[1] if p is not None else i for i, p, n in pairs]
            args = [rebuild(i, known) for i in inner if i is not None]
            known[x] = load(name, args, given[x.value].dtype)
    return tuple(replace(o, element=rebuild(o.element, known)) for o in outputs)


def out_of_pieces(x: Expr, pieces: Mapping[str, tuple[Piece, DType]]) -> Expr:
    """Return an expression that loads whole tensors for pieces, by the names of these."""
    known: dict[Expr, Expr] = {}
    for n in walk(x):
        if n.op == "load" and n.value in pieces:
            piece, dtype = pieces[n.value]
            args = piece.within([rebuild(arg, known) for arg in n.args])
            known[n] = load(piece.tensor, args, dtype)
    return rebuild(x, known)
