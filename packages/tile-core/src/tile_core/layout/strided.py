"""Shape and stride layouts of one index, and their algebra."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from tile_core.errors import LayoutError
from tile_core.layout.index_tables import Table, check_size
from tile_core.records import dataclass

Nested: TypeAlias = "int | Sequence[Any]"


@dataclass(frozen=True, slots=True)
class Strided:
    """A function from the integers ``0 <= i < size`` to element offsets.

    ``Strided((s0, s1, ...), (d0, d1, ...))``, printed ``(s0, s1):(d0, d1)``, takes `i` apart
    with mode 0 fastest, ``i = x0 + s0*(x1 + s1*(...))``, and returns ``sum(xk * dk)``.
    `nested` builds one from shapes within shapes, whose function is that of the flat list.

    Parameters
    ----------
    shape
        Extent of each mode; every extent >= 1.
    stride
        Distance between neighbours along each mode, in elements; >= 0, where 0 broadcasts.

    Notes
    -----
    For all layouts A, B, C and all i of the domain (tests/property/test_layout_strided.py):

    * function       ``A.compose(B)(i) == A(B(i))``
    * associativity  ``A.compose(B).compose(C) == A.compose(B.compose(C))``
    * identity       ``A.compose(compact(A.size)) == A.coalesce()``
    * canonical      ``A.coalesce() == B.coalesce()`` iff A and B agree at every i
    * completeness   `compose` raises only if no shape and stride have the values of A(B(i))
    * complement     ``A.followed_by(A.complement(n))`` meets each of ``0 ... n-1`` once
    * inverse        ``A.inverse()(A(i)) == i``
    * divide         ``A.divide(B)`` is A, its elements reordered so that those at B come first
    * product        ``A.product(B)`` is A, repeated at ``A.size * B(j)`` for all j

    These operations raise rather than approximate: a layout that is silently wrong becomes a
    kernel that is silently wrong.

    References
    ----------
    CuTe layout algebra, NVIDIA CUTLASS documentation, ``cute/02_layout_algebra.md``.
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.shape) != len(self.stride):
            raise LayoutError(f"shape {self.shape} and stride {self.stride} differ in rank")
        if any(s < 1 for s in self.shape) or any(d < 0 for d in self.stride):
            raise LayoutError(f"extents must be >= 1 and strides >= 0, got {self}")

    @property
    def size(self) -> int:
        """Number of elements of the domain."""
        return math.prod(self.shape)

    @property
    def cosize(self) -> int:
        """One past the largest offset: the elements of storage needed."""
        return 1 + sum((s - 1) * d for s, d in self.modes)

    @property
    def modes(self) -> Iterator[tuple[int, int]]:
        """Pairs ``(extent, stride)``, fastest first."""
        return zip(self.shape, self.stride, strict=True)

    def __call__(self, index: int) -> int:
        """Return the offset of element `index`.

        Raises
        ------
        LayoutError
            If `index` is not in ``0 ... size - 1``.
        """
        if not 0 <= index < self.size:
            raise LayoutError(f"{self} has no element {index}: it has {self.size}")
        offset = 0
        for extent, stride in self.modes:
            offset += (index % extent) * stride
            index //= extent
        return offset

    def __str__(self) -> str:
        return f"{self.shape}:{self.stride}"

    def table(self) -> Table:
        """Return all offsets: int64 of shape ``(size,)``."""
        check_size(self.shape)
        return self.offsets_of(np.arange(self.size, dtype=np.int64))

    def offsets_of(self, indices: Table) -> Table:
        """Return the offsets of `indices`, each in ``0 ... size - 1``, as an array like it."""
        offsets = np.zeros_like(indices)
        for extent, stride in self.modes:
            offsets += indices % extent * stride
            indices = indices // extent
        return offsets

    def coalesce(self) -> Strided:
        """Return the unique shortest layout equal to this one as a function."""
        merged: list[tuple[int, int]] = []
        for extent, stride in self.modes:
            if extent == 1:
                continue
            if merged and merged[-1][0] * merged[-1][1] == stride:
                merged[-1] = (merged[-1][0] * extent, merged[-1][1])
            else:
                merged.append((extent, stride))
        return from_modes(merged)

    def followed_by(self, other: Strided) -> Strided:
        """Return the layout with the modes of `other` behind, that is slower than, its own."""
        return Strided(self.shape + other.shape, self.stride + other.stride)

    def compose(self, inner: Strided) -> Strided:
        """Return the layout ``i -> self(inner(i))``, coalesced.

        Raises
        ------
        LayoutError
            If `inner` leaves the domain of `self`, or no shape and stride have these values.
        """
        if inner.cosize > self.size:
            raise LayoutError(f"{inner} reaches beyond the {self.size} elements of {self}")
        result = self._composed_by_modes(inner)
        if result is None:  # the modes do not nest, but the values may still be strided
            result = from_values(self.offsets_of(inner.table()))
        if result is None:
            raise LayoutError(
                f"{self} composed with {inner} is no strided layout: "
                "a mode of the inner one crosses modes of the outer one unevenly"
            )
        return result

    def _composed_by_modes(self, inner: Strided) -> Strided | None:
        """Compose mode by mode; None where the modes do not nest."""
        outer = list(self.coalesce().modes)
        reach = [0] * len(outer)  # largest digit used of each outer mode
        result: list[tuple[int, int]] = []
        for extent, step in inner.modes:
            rest = extent
            if step == 0 or extent == 1:
                result.append((extent, 0))
                continue
            for k, (size, stride) in enumerate(outer):
                if rest == 1:
                    break
                if step % size == 0:
                    step //= size
                    continue
                inside = (rest - 1) * step < size
                count = rest if inside else size // step
                if not inside and (size % step or rest % count):
                    return None
                result.append((count, step * stride))
                reach[k] += (count - 1) * step
                rest, step = rest // count, 1
            if rest != 1:
                return None
        carries = any(digit >= size for (size, _), digit in zip(outer, reach, strict=True))
        return None if carries else from_modes(result).coalesce()

    def complement(self, size: int) -> Strided:
        """Return the layout that reaches what this one leaves out of ``0 ... size - 1``.

        Raises
        ------
        LayoutError
            If this layout meets an offset twice, or its modes leave gaps that are uneven.
        """
        gaps: list[tuple[int, int]] = []
        below = 1
        for stride, extent in sorted((d, s) for s, d in self.modes if s > 1):
            if stride == 0 or stride % below:
                raise LayoutError(
                    f"{self} has no complement: mode {extent}:{stride} overlaps others"
                )
            gaps.append((stride // below, below))
            below = stride * extent
        if size % below:
            raise LayoutError(f"{self} has no complement in {size}: it covers multiples of {below}")
        return from_modes([*gaps, (size // below, below)]).coalesce()

    def inverse(self) -> Strided:
        """Return the layout that gives back the index of an offset.

        Raises
        ------
        LayoutError
            If the offsets are not ``0 ... size - 1``, each once.
        """
        places: list[tuple[int, int, int]] = []
        below = 1
        for extent, stride in self.modes:
            if extent > 1:
                places.append((stride, extent, below))
            below *= extent
        result: list[tuple[int, int]] = []
        expected = 1
        for stride, extent, place in sorted(places):
            if stride != expected:
                raise LayoutError(f"{self} has no inverse: no mode has stride {expected}")
            result.append((extent, place))
            expected *= extent
        return from_modes(result).coalesce()

    def divide(self, tile: Strided) -> Strided:
        """Return this layout with the elements at `tile` first, then the rest of the tiles."""
        return self.compose(tile.followed_by(tile.complement(self.size)))

    def product(self, other: Strided | int) -> Strided:
        """Return copies of this layout, arranged like `other`; an int stands for ``compact``."""
        if isinstance(other, int):
            other = compact(other)
        room = self.complement(self.size * other.cosize)
        return self.followed_by(room.compose(other))


def from_modes(modes: Iterable[tuple[int, int]]) -> Strided:
    """Return the layout of ``(extent, stride)`` pairs, fastest first."""
    pairs = tuple(modes)
    return Strided(tuple(s for s, _ in pairs), tuple(d for _, d in pairs))


def compact(*shape: int) -> Strided:
    """Return the layout of `shape` without gaps, first mode fastest."""
    stride = tuple(math.prod(shape[:k]) for k in range(len(shape)))
    return Strided(shape, stride)


def nested(shape: Nested, stride: Nested) -> Strided:
    """Return the layout of a shape of shapes, such as ``((2, 4), 8)`` and ``((1, 16), 2)``."""
    return Strided(_leaves(shape), _leaves(stride))


def _leaves(tree: Nested) -> tuple[int, ...]:
    if isinstance(tree, int):
        return (tree,)
    return tuple(leaf for branch in tree for leaf in _leaves(branch))


def from_values(values: Table) -> Strided | None:
    """Return the coalesced layout with these offsets, or None if no shape and stride have them.

    Offsets are >= 0. The first mode of a coalesced layout ends exactly where the offsets stop
    growing evenly, so peeling modes off one by one decides the question.
    """
    modes: list[tuple[int, int]] = []
    rest = values
    if rest[0] != 0:
        return None
    while rest.size > 1:
        step = int(rest[1])
        even = rest == np.arange(rest.size) * step
        extent = rest.size if even.all() else int(even.argmin())
        if rest.size % extent:
            return None
        rows = rest.reshape(-1, extent)
        if (rows - rows[:, :1] != np.arange(extent) * step).any():
            return None
        modes.append((extent, step))
        rest = rows[:, 0]
    return from_modes(modes)
