"""Layouts: where the element at each logical coordinate of a buffer is stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tile_core.errors import LayoutError
from tile_core.ir.expr import Expr, Var
from tile_core.layout.box import Forward, apply_forward, extents_of, normal_axis, physical_box
from tile_core.layout.formulas import (
    axis_names,
    axis_of,
    coordinate,
    digest,
    evaluate,
    inputs,
    linear_form,
    revived,
    same_expr,
    simplify,
    to_text,
)
from tile_core.layout.index_tables import (
    Table,
    aligned_runs,
    check_size,
    distinct,
    has_duplicates,
    remembered,
    tabulate,
)
from tile_core.layout.mixed_radix import flatten_row_major, invert, substitute
from tile_core.layout.reshaped_layouts import reshaped
from tile_core.layout.tilelang_aliases import LayoutNames
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Layout(LayoutNames):
    """A function from a box of logical coordinates to physical coordinates.

    ``Layout((128, 32), lambda i, j: (i, j ^ (i % 8)))`` stores element ``(i, j)`` at physical
    coordinate ``(i, j ^ (i % 8))``. Physical coordinates live in a box of their own, which is
    linearised row-major: that is the address, in elements.

    Parameters
    ----------
    shape
        Extents of the logical box, integers >= 1.
    forward
        A function of as many coordinates as `shape` has extents, built from
        ``+ - * // % ^`` and `minimum`, `maximum`, that returns one expression or several; or
        these expressions themselves.
    output_shape
        Extents of the physical box. By default the exact bounds of `forward`; larger ones pad.

    Raises
    ------
    LayoutError
        If a physical coordinate is negative or outside `output_shape`, an extent is not a
        positive integer, or `forward` is no such function.

    Notes
    -----
    For all layouts F, G and H and every coordinate x (tests/property/test_layout_laws.py):

    * table        ``F.table()[x] == F(*x)`` and ``F.linear_table()[x] == F.address(*x)``
    * compose      ``F.compose(G)(*x) == F(*G(*x))``, and it is associative
    * inverse      ``F.inverse().compose(F)`` and ``F.compose(F.inverse())`` are identities
    * reshape      ``F.reshape(s)`` has the addresses of F, read in row-major order
    * reshape back ``F.reshape(s, a, b).reshape(F.shape, b, a)`` is F
    * permute      ``F.permute(p)(*(x[k] for k in p)) == F(*x)``
    * slice        ``F.slice(b, e).linear_table() == F.linear_table()[b : b + e]``
    * expand       ``F.expand(lead)(*l, *x) == (*l, *F(*x))``
    * repeat       ``F.repeat(d, f)`` is f copies of F, one after the other, along d

    ``==`` compares formulas, `same_function` compares functions. Every question about a
    layout is answered exactly, from its table if need be, or raises.

    Examples
    --------
    >>> swizzled = Layout((4, 8), lambda i, j: (i, j ^ i))
    >>> swizzled(2, 5), swizzled.address(2, 5)
    ((2, 7), 23)
    """

    shape: tuple[int, ...]
    outputs: tuple[Expr, ...]
    output_shape: tuple[int, ...]

    def __init__(
        self,
        shape: Sequence[int] | int,
        forward_fn: Forward,
        output_shape: Sequence[int] | None = None,
    ) -> None:
        box = extents_of(shape)
        exprs = tuple(simplify(e, box) for e in apply_forward(forward_fn, inputs(len(box))))
        object.__setattr__(self, "shape", box)
        object.__setattr__(self, "outputs", exprs)
        object.__setattr__(self, "output_shape", physical_box(exprs, box, output_shape))

    def __reduce__(self) -> tuple[Any, ...]:  # coordinates are variables of one process
        return _revived, (self.shape, self.outputs, self.output_shape, inputs(self.rank))

    @property
    def rank(self) -> int:
        """Number of logical dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of logical elements."""
        return math.prod(self.shape)

    @property
    def cosize(self) -> int:
        """Number of elements of storage, padding included."""
        return math.prod(self.output_shape)

    def __call__(self, *coords: Any) -> tuple[Any, ...]:
        """Return the physical coordinates of the element at `coords`.

        Coordinates are integers, int64 arrays, index expressions, or expressions of another
        room that have Python's integer operators.

        Raises
        ------
        LayoutError
            If their number is not the rank, or an integer is outside the box.
        """
        self._check_coords(coords)
        return tuple(evaluate(e, coords) for e in self.outputs)

    def address(self, *coords: Any) -> Any:
        """Return the address, in elements, of the element at `coords`, which are as in a call."""
        self._check_coords(coords)
        return evaluate(self.linear_index_expr(), coords)

    def _check_coords(self, coords: tuple[Any, ...]) -> None:
        if len(coords) != self.rank:
            raise LayoutError(
                f"{len(coords)} coordinates given for a layout of {self.rank} dimensions",
                hint="expand adds leading dimensions to a layout",
            )
        for axis, (x, extent) in enumerate(zip(coords, self.shape, strict=True)):
            if isinstance(x, (int, np.integer)) and not 0 <= x < extent:
                raise LayoutError(
                    f"coordinate {x} of dimension {axis} is outside 0 ... {extent - 1}"
                )

    @remembered(256)
    def linear_index_expr(self) -> Expr:
        """Return the address as a formula of the logical coordinates."""
        return simplify(flatten_row_major(self.outputs, self.output_shape), self.shape)

    def table(self) -> Table:
        """Return all physical coordinates: int64 of shape ``(*shape, len(output_shape))``."""
        check_size(self.shape)
        columns = [tabulate(e, self.shape) for e in self.outputs]
        if not columns:
            return np.zeros((*self.shape, 0), dtype=np.int64)
        return np.stack(columns, axis=-1)

    @remembered(256)
    def linear_table(self) -> Table:
        """Return all addresses: int64 of shape `shape`, read-only."""
        return tabulate(self.linear_index_expr(), self.shape)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Layout)
            and (self.shape, self.output_shape) == (other.shape, other.output_shape)
            and len(self.outputs) == len(other.outputs)
            and all(map(same_expr, self.outputs, other.outputs))
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.output_shape, tuple(map(digest, self.outputs))))

    def _repr_svg_(self) -> str | None:
        """Return the picture that notebooks show, if it is not too large to be read."""
        from tile_core.layout.drawing import MOST_CELLS, svg

        return svg(self) if self.size <= MOST_CELLS else None

    def __repr__(self) -> str:
        names = axis_names(self.rank)
        body = ", ".join(to_text(e, names) for e in self.outputs)
        body = f"({body},)" if len(self.outputs) == 1 else f"({body})"
        tight = self.output_shape == physical_box(self.outputs, self.shape, None)
        box = "" if tight else f", output_shape={self.output_shape}"
        head = f"lambda {', '.join(names)}" if names else "lambda"
        return f"Layout({self.shape}, {head}: {body}{box})"

    # Questions -----------------------------------------------------------------------------

    def same_function(self, other: Layout) -> bool:
        """Whether both store every element at the same physical coordinate of the same box."""
        if (self.shape, self.output_shape) != (other.shape, other.output_shape):
            return False
        return self == other or self.first_difference(other) is None

    def first_difference(self, other: Layout) -> tuple[int, ...] | None:
        """Return the first element, in row-major order, whose address differs; None if none.

        Raises
        ------
        LayoutError
            If the layouts are not of one shape.
        """
        if self.shape != other.shape:
            raise LayoutError(f"layouts of {self.shape} and {other.shape} have no common elements")
        if same_expr(self.linear_index_expr(), other.linear_index_expr()):
            return None
        differs = self.linear_table() != other.linear_table()
        if not differs.any():
            return None
        return tuple(int(x) for x in np.unravel_index(int(differs.argmax()), self.shape))

    def is_injective(self) -> bool:
        """Whether no two elements share an address."""
        return self._spreads_affinely() or not has_duplicates(self.linear_table())

    def is_bijective(self) -> bool:
        """Whether every address of the physical box holds exactly one element."""
        return self.size == self.cosize and self.is_injective()

    def is_padded(self) -> bool:
        """Whether some address of the physical box holds no element."""
        if self.size < self.cosize:
            return True
        if self.is_injective():
            return False
        return distinct(self.linear_table()).size < self.cosize

    def _spreads_affinely(self) -> bool:
        """Whether each stride steps over everything below it: enough to be injective."""
        room = 1
        value = linear_form(self.linear_index_expr(), self.shape)
        for atom, coef in sorted(value.terms, key=lambda item: item[1]):
            if not isinstance(atom.expr, Var) or coef < room:
                return False
            room = coef * atom.high + room
        return len(value.terms) == sum(extent > 1 for extent in self.shape)

    def affine(self) -> tuple[int, tuple[int, ...]] | None:
        """Return ``(offset, strides)`` if the address is a sum of strides, else None.

        The stride of a dimension of extent 1 is 0.
        """
        value = linear_form(self.linear_index_expr(), self.shape)
        if all(isinstance(atom.expr, Var) for atom, _ in value.terms):
            strides = {axis_of(atom.expr): coef for atom, coef in value.terms}
            return value.constant, tuple(strides.get(axis, 0) for axis in range(self.rank))
        table = self.linear_table()
        offset = int(table[(0,) * self.rank])
        steps = []
        guess = np.full(self.shape, offset, dtype=np.int64)
        for axis, extent in enumerate(self.shape):
            line = table[tuple(slice(None) if k == axis else 0 for k in range(self.rank))]
            steps.append(int(line[1]) - offset if extent > 1 else 0)
            position = np.arange(extent).reshape([-1 if k == axis else 1 for k in range(self.rank)])
            guess = guess + position * steps[-1]
        return (offset, tuple(steps)) if np.array_equal(guess, table) else None

    def contiguity(self, axis: int = -1) -> int:
        """Return the longest aligned vector along `axis` that is consecutive in storage.

        The result `v` divides the extent. Elements ``k*v ... k*v + v - 1`` have consecutive
        addresses, for every `k` and all other coordinates. Their first address need not be a
        multiple of `v`: `vector_width` asks for that too.
        """
        axis = normal_axis(axis, self.rank)
        found = self.affine()
        if found is not None:
            return self.shape[axis] if found[1][axis] == 1 else 1
        return aligned_runs(self.linear_table(), axis)

    def vector_width(self, axis: int = -1, limit: int = 64) -> int:
        """Return the widest power of two, up to `limit`, for aligned vectors along `axis`.

        Each vector is consecutive in storage and starts at a multiple of its own length.
        """
        axis = normal_axis(axis, self.rank)
        width = 1
        runs = self.contiguity(axis)
        starts = np.moveaxis(self.linear_table(), axis, -1)
        while 2 * width <= limit and runs % (2 * width) == 0:
            if (starts[..., :: 2 * width] % (2 * width)).any():
                break
            width *= 2
        return width

    # New layouts ---------------------------------------------------------------------------

    def compose(self, inner: Layout) -> Layout:
        """Return the layout ``x -> self(*inner(*x))``, in the physical box of `self`.

        Raises
        ------
        LayoutError
            If the physical box of `inner` does not lie in the logical box of `self`.
        """
        fits = len(inner.output_shape) == self.rank and all(
            have <= room for have, room in zip(inner.output_shape, self.shape, strict=True)
        )
        if not fits:
            raise LayoutError(
                f"the outputs of the inner layout, {inner.output_shape}, "
                f"do not lie in the box {self.shape} of the outer one"
            )
        return self._rebuilt(inner.shape, inner.outputs)

    def _rebuilt(self, shape: tuple[int, ...], coords: Sequence[Expr]) -> Layout:
        """Return the layout over `shape` that looks up `coords` in this one."""
        exprs = [substitute(e, coords, shape) for e in self.outputs]
        return Layout(shape, exprs, self.output_shape)

    def inverse(self) -> Layout:
        """Return the layout from physical to logical coordinates.

        Raises
        ------
        LayoutError
            If this layout is not bijective, or its inverse has no formula that we can find.
        """
        self._check_injective()
        if self.size != self.cosize:
            raise LayoutError(
                f"a padded layout has no inverse: {self.size} elements in {self.cosize} places",
                hint="inverse_table marks the empty places",
            )
        exprs = invert(self.outputs, self.shape, self.output_shape)
        result = Layout(self.output_shape, exprs, self.shape)
        if not np.array_equal(result.linear_table().reshape(-1), self.inverse_table()):
            raise LayoutError(f"no formula found for the inverse of {self!r}")
        return result

    def inverse_table(self) -> Table:
        """Return, for each address, the row-major position of its element.

        The shape is ``(cosize,)``, int64; -1 marks padding.

        Raises
        ------
        LayoutError
            If two elements share an address.
        """
        self._check_injective()
        result = np.full(self.cosize, -1, dtype=np.int64)
        result[self.linear_table().reshape(-1)] = np.arange(self.size)
        return result

    def _check_injective(self) -> None:
        if self.is_injective():
            return
        flat = self.linear_table().reshape(-1)
        order = np.argsort(flat, kind="stable")
        twin = int(np.flatnonzero(np.diff(flat[order]) == 0)[0])
        one, other = (
            tuple(int(x) for x in np.unravel_index(int(order[k]), self.shape))
            for k in (twin, twin + 1)
        )
        raise LayoutError(
            f"elements {one} and {other} share the address {int(flat[order[twin]])}",
            hint="only layouts without such elements have an inverse",
        )

    def reshape(
        self, shape: Sequence[int] | int, rescale_num: int = 1, rescale_den: int = 1
    ) -> Layout:
        """Return this storage seen through a box of another shape.

        Parameters
        ----------
        shape
            The new logical shape. Elements keep their row-major order.
        rescale_num, rescale_den
            Bits of an element before and after, for views of another element type:
            ``size * rescale_num == new_size * rescale_den``.

        Raises
        ------
        LayoutError
            If the sizes do not agree, neither width is a multiple of the other, or narrow
            elements that form a wide one are not consecutive and aligned in storage.
        """
        box = extents_of(shape)
        exprs, physical = reshaped(
            self.outputs, self.shape, self.output_shape, box, rescale_num, rescale_den
        )
        return Layout(box, exprs, physical)

    def expand(self, leading_shape: Sequence[int] | int) -> Layout:
        """Return the layout with dimensions `leading_shape` put in front, on both sides."""
        lead = extents_of(leading_shape)
        front = inputs(len(lead))
        shape = lead + self.shape
        moved = [coordinate(axis + len(lead)) for axis in range(self.rank)]
        exprs = [substitute(e, moved, shape) for e in self.outputs]
        return Layout(shape, [*front, *exprs], lead + self.output_shape)

    def slice(self, begins: Sequence[int], extents: Sequence[int]) -> Layout:
        """Return the part of the layout at ``begins[k] <= x[k] < begins[k] + extents[k]``.

        Coordinates of the part count from 0; the physical box is that of the whole.
        """
        box = extents_of(extents)
        inside = len(begins) == len(box) == self.rank and all(
            b >= 0 and b + e <= n for b, e, n in zip(begins, box, self.shape, strict=True)
        )
        if not inside:
            raise LayoutError(
                f"the part at {tuple(begins)} of extents {box} is not inside {self.shape}"
            )
        return self._rebuilt(box, [x + b for x, b in zip(inputs(self.rank), begins, strict=True)])

    def repeat(self, dim: int, factor: int) -> Layout:
        """Return `factor` copies along logical dimension `dim`, one behind the other in storage.

        The copy number becomes a new leading physical coordinate.
        """
        dim = normal_axis(dim, self.rank)
        (factor,) = extents_of(factor)
        old = self.shape[dim]
        shape = (*self.shape[:dim], old * factor, *self.shape[dim + 1 :])
        coords: list[Expr] = list(inputs(self.rank))
        coords[dim] = coords[dim] % old
        exprs = [substitute(e, coords, shape) for e in self.outputs]
        return Layout(shape, [coordinate(dim) // old, *exprs], (factor, *self.output_shape))

    def permute(self, order: Sequence[int]) -> Layout:
        """Return the layout whose logical dimension `k` is dimension ``order[k]`` of this one."""
        axes = [normal_axis(axis, self.rank) for axis in order]
        if sorted(axes) != list(range(self.rank)):
            raise LayoutError(f"{tuple(order)} is no order of {self.rank} dimensions")
        coords = [coordinate(axes.index(axis)) for axis in range(self.rank)]
        return self._rebuilt(tuple(self.shape[axis] for axis in axes), coords)

    def transpose(self) -> Layout:
        """Return the layout with the logical dimensions in reverse order."""
        return self.permute(range(self.rank)[::-1])


def _revived(
    shape: tuple[int, ...],
    outputs: tuple[Expr, ...],
    output_shape: tuple[int, ...],
    coords: tuple[Var, ...],
) -> Layout:
    return Layout(shape, revived(outputs, coords), output_shape)
