"""Fragments: which thread holds each element of a tile, and in which register."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tile_core.errors import LayoutError
from tile_core.ir.expr import Expr, Var
from tile_core.layout.box import apply_forward, call_forward, extents_of, physical_box
from tile_core.layout.formulas import (
    as_index,
    axis_names,
    coordinate,
    digest,
    evaluate,
    inputs,
    inputs_of,
    revived,
    same_expr,
    simplify,
    to_text,
)
from tile_core.layout.index_tables import Table, distinct, has_duplicates, remembered, tabulate
from tile_core.layout.layout import Layout
from tile_core.layout.mixed_radix import (
    flatten_row_major,
    row_major_position,
    substitute,
    unflatten_row_major,
)
from tile_core.layout.replicas import condensed, derived_index
from tile_core.layout.tilelang_aliases import FragmentNames
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Fragment(FragmentNames):
    """A tile spread over the registers of threads.

    Element `x` is held by the threads ``thread(x, r)`` for ``0 <= r < replication``, each time
    in register slot ``index(x)``: replicas differ in the thread only.

    Parameters
    ----------
    shape
        Extents of the tile.
    forward_fn
        ``(i, j, ...) -> (thread, index)``; with `replicate` above 1 it takes the replica
        number as one more argument. Instead of it:
    forward_thread_fn
        The thread alone, of the same arguments.
    replicate
        How many threads hold each element.
    forward_index_fn
        The register slot, one expression or several, of the coordinates only. If left out,
        the slots are what the thread leaves of the coordinates, in row-major order.
    threads
        How many threads there are, if more than the expression needs.

    Raises
    ------
    LayoutError
        If neither or both forms are given, a thread or slot is negative, the slot depends on
        the replica, or it was left out and cannot be derived.

    Notes
    -----
    For every fragment F and element x (tests/property/test_layout_fragment.py):

    * table      ``F.thread_table()[x + (r,)] == F.forward_thread(*x, rep=r)``, and slots alike
    * replicate  ``F.replicate(n)`` puts n - 1 more copies into threads behind those of F
    * repeat     ``F.repeat(reps)`` is F in each of the tiles ``reps``: in new slots of the same
      threads, or in the same slots of new threads
    * condense   ``F.condense_replication()`` holds the same elements in the same threads, and
      no two of its replicas are one
    * derived    a derived index makes thread and slot together injective

    Examples
    --------
    >>> rows = Fragment((8, 4), lambda i, j: (i * 2 + j // 2, j % 2))
    >>> rows.thread_table()[3, :, 0].tolist()
    [6, 6, 7, 7]
    """

    shape: tuple[int, ...]
    thread: Expr
    index: tuple[Expr, ...]
    replication: int
    thread_extent: int
    index_shape: tuple[int, ...]
    digest: int

    def __init__(
        self,
        shape: Sequence[int] | int,
        forward_fn: Callable[..., Any] | None = None,
        forward_thread_fn: Callable[..., Any] | Expr | None = None,
        replicate: int = 1,
        forward_index_fn: Callable[..., Any] | Sequence[Expr] | None = None,
        threads: int | None = None,
    ) -> None:
        box = extents_of(shape)
        (replication,) = extents_of(replicate)
        domain = (*box, replication)
        coords = inputs(len(box))
        extra: tuple[Expr, ...] = (coordinate(len(box)),) if replication > 1 else ()
        if (forward_fn is None) == (forward_thread_fn is None):
            raise LayoutError("a fragment takes either forward_fn or forward_thread_fn")
        forward = forward_thread_fn if forward_fn is None else forward_fn
        thread, given = _forwarded(forward, (*coords, *extra))
        if (forward_fn is None) != (given is None):
            raise LayoutError(
                "forward_fn returns a thread and a register index, forward_thread_fn a thread"
            )
        thread = simplify(thread, domain)
        derived = given is None and forward_index_fn is None
        slots = derived_index(thread, domain) if derived else given
        if forward_index_fn is not None:
            slots = apply_forward(forward_index_fn, coords)
        slots = slots or ()
        if any(len(box) in inputs_of(e) for e in slots):
            raise LayoutError("the register slot of an element does not depend on the replica")
        index = tuple(simplify(e, box) for e in slots)
        limit = None if threads is None else (threads,)
        (thread_extent,) = physical_box((thread,), domain, limit)
        for name, value in {
            "shape": box,
            "thread": thread,
            "index": index,
            "replication": replication,
            "thread_extent": thread_extent,
            "index_shape": physical_box(index, box, None),
            "digest": hash(
                (box, replication, thread_extent, digest(thread), *(digest(e) for e in index))
            ),
        }.items():
            object.__setattr__(self, name, value)
        if derived and not self.is_injective():
            raise LayoutError(
                f"no register index follows from the thread {to_text(thread)}: "
                "it sends elements to one thread that differ in the digits it uses",
                hint="give forward_index_fn as well",
            )

    def __reduce__(self) -> tuple[Any, ...]:  # coordinates are variables of one process
        formulas = (self.thread, *self.index)
        given = (self.shape, self.replication, self.thread_extent)
        return _revived, (formulas, inputs(self.rank + 1), *given)

    @property
    def rank(self) -> int:
        """Number of dimensions of the tile."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements of the tile."""
        return math.prod(self.shape)

    @property
    def slots(self) -> int:
        """Registers each thread needs, in elements."""
        return math.prod(self.index_shape)

    def forward_thread(self, *coords: Any, rep: Any = 0) -> Any:
        """Return the thread that holds replica `rep` of the element at `coords`."""
        self._check(coords)
        return evaluate(self.thread, (*coords, rep))

    def forward_index(self, *coords: Any) -> tuple[Any, ...]:
        """Return the coordinates of the register slot of the element at `coords`."""
        self._check(coords)
        return tuple(evaluate(e, coords) for e in self.index)

    def slot_at(self, *coords: Any) -> Any:
        """Return the number of the register slot of the element at `coords`."""
        return row_major_position(self.forward_index(*coords), self.index_shape)

    @remembered(64)
    def slot_expr(self) -> Expr:
        """Return the register slot as one number, row-major over `index_shape`."""
        return simplify(flatten_row_major(self.index, self.index_shape), self.shape)

    def _check(self, coords: tuple[Any, ...]) -> None:
        if len(coords) != self.rank:
            raise LayoutError(f"{len(coords)} coordinates given for a fragment of {self.shape}")
        for x, extent in zip(coords, self.shape, strict=True):
            if isinstance(x, (int, np.integer)) and not 0 <= x < extent:
                raise LayoutError(f"coordinates {coords} are outside the fragment {self.shape}")

    @remembered(64)
    def thread_table(self) -> Table:
        """Return the threads of all elements: int64 of shape ``(*shape, replication)``."""
        return tabulate(self.thread, (*self.shape, self.replication))

    @remembered(64)
    def slot_table(self) -> Table:
        """Return the register slots of all elements: int64 of shape `shape`."""
        return tabulate(self.slot_expr(), self.shape)

    def owners(self, *coords: int) -> tuple[int, ...]:
        """Return the threads that hold the element at `coords`, in ascending order."""
        threads = (self.forward_thread(*coords, rep=r) for r in range(self.replication))
        return tuple(sorted(set(threads)))

    def as_layout(self) -> Layout:
        """Return ``(i, j, ..., rep) -> (thread, *index)``; its inverse finds the element."""
        return Layout(
            (*self.shape, self.replication),
            (self.thread, *self.index),
            (self.thread_extent, *self.index_shape),
        )

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Fragment)
            and self.digest == other.digest
            and self.shape == other.shape
            and self.replication == other.replication
            and self.thread_extent == other.thread_extent
            and same_expr(self.thread, other.thread)
            and len(self.index) == len(other.index)
            and all(map(same_expr, self.index, other.index))
        )

    def __hash__(self) -> int:
        return self.digest

    def _repr_svg_(self) -> str | None:
        """Return the picture that notebooks show, if it is not too large to be read."""
        from tile_core.layout.drawing import MOST_CELLS, svg

        return svg(self) if self.size <= MOST_CELLS else None

    def __repr__(self) -> str:
        names = (*axis_names(self.rank), "rep")
        slots = ", ".join(to_text(e, names) for e in self.index)
        args = ", ".join(names if self.replication > 1 else names[:-1])
        body = f"({to_text(self.thread, names)}, {slots})"
        more = f", replicate={self.replication}" if self.replication > 1 else ""
        tight = physical_box((self.thread,), (*self.shape, self.replication), None)
        more += f", threads={self.thread_extent}" if tight != (self.thread_extent,) else ""
        return f"Fragment({self.shape}, lambda {args}: {body}{more})"

    # Questions -----------------------------------------------------------------------------

    def same_function(self, other: Fragment) -> bool:
        """Whether both hold every element in the same threads and in the same slot.

        The order of replicas, and replicas that coincide, make no difference.
        """
        if (self.shape, self.thread_extent) != (other.shape, other.thread_extent):
            return False
        return (
            self.slots == other.slots
            and np.array_equal(self.slot_table(), other.slot_table())
            and np.array_equal(_holdings(self), _holdings(other))
        )

    def covers(self, other: Fragment) -> bool:
        """Whether each thread that holds an element in `other` holds it here too."""
        if self.shape != other.shape:
            return False
        threads = max(self.thread_extent, other.thread_extent)
        wide = Fragment(self.shape, None, self.thread, self.replication, self.index, threads)
        elements = np.arange(other.size).reshape(*other.shape, 1)
        needed = elements * wide.thread_extent + other.thread_table()
        return bool(np.isin(needed, _holdings(wide)).all())

    def is_injective(self) -> bool:
        """Whether no register of any thread holds two different elements."""
        elements, threads = np.divmod(_holdings(self), self.thread_extent)
        slots = self.slot_table().reshape(-1)[elements]
        return not has_duplicates(threads * self.slots + slots)

    def is_fully_replicated(self) -> bool:
        """Whether every thread holds every element."""
        return int(_holdings(self).size) == self.size * self.thread_extent

    @remembered(64)
    def fills_registers(self) -> bool:
        """Whether every register of every thread holds an element."""
        places = self.thread_table() * self.slots + self.slot_table()[..., None]
        return distinct(places).size == self.thread_extent * self.slots

    # New fragments -------------------------------------------------------------------------

    def replicate(self, replicate: int) -> Fragment:
        """Return the fragment held `replicate` times, each time by threads of its own."""
        (count,) = extents_of(replicate)
        rep = coordinate(self.rank)
        copies = self.replication * count
        coords = (*inputs(self.rank), rep % self.replication)
        thread = substitute(self.thread, coords, (*self.shape, copies))
        thread = thread + self.thread_extent * (rep // self.replication)
        threads = self.thread_extent * count
        return Fragment(self.shape, None, thread, copies, self.index, threads)

    def repeat(
        self, repeats: Sequence[int], repeat_on_thread: bool = False, lower_dim_first: bool = True
    ) -> Fragment:
        """Return a tile of this fragment ``repeats[k]`` times along each dimension.

        Parameters
        ----------
        repeats
            How often, along each dimension.
        repeat_on_thread
            True: each copy has threads of its own. False: each has slots of its own, in the
            same threads, and slots become one number.
        lower_dim_first
            Number the copies with the last dimension fastest; False: the first dimension.
        """
        factors = extents_of(repeats)
        if len(factors) != self.rank:
            raise LayoutError(f"repeats {factors} do not suit a fragment of {self.shape}")
        box = inputs(self.rank)
        shape = tuple(s * f for s, f in zip(self.shape, factors, strict=True))
        domain = (*shape, self.replication)
        inner = [x % s for x, s in zip(box, self.shape, strict=True)]
        tiles = [x // s for x, s in zip(box, self.shape, strict=True)]
        order = 1 if lower_dim_first else -1
        number = flatten_row_major(tiles[::order], factors[::order])
        thread = substitute(self.thread, (*inner, coordinate(self.rank)), domain)
        if repeat_on_thread:
            index = [substitute(e, inner, shape) for e in self.index]
            threads = self.thread_extent * math.prod(factors)
            thread = thread + self.thread_extent * number
            return Fragment(shape, None, thread, self.replication, index, threads)
        slot = substitute(self.slot_expr(), inner, shape) + self.slots * number
        return Fragment(shape, None, thread, self.replication, [slot], self.thread_extent)

    def condense_replication(self) -> Fragment:
        """Return the fragment without the parts of the replica number the thread ignores."""
        thread, copies = condensed(self.thread, (*self.shape, self.replication))
        return Fragment(self.shape, None, thread, copies, self.index, self.thread_extent)

    def reshape(self, shape: Sequence[int]) -> Fragment:
        """Return the fragment seen through a box of another shape, in row-major order."""
        return _reshaped(self, extents_of(shape))


def _forwarded(forward: Any, coords: Sequence[Expr]) -> tuple[Expr, tuple[Expr, ...] | None]:
    """Return the thread, and the register slot if `forward` gives one."""
    result = call_forward(forward, coords) if callable(forward) else forward
    if not isinstance(result, (tuple, list)):
        return as_index(result), None
    thread, *slots = result
    if len(slots) == 1 and isinstance(slots[0], (tuple, list)):
        slots = list(slots[0])
    return as_index(thread), tuple(map(as_index, slots)) if slots else None


def fully_replicated(shape: Sequence[int], threads: int) -> Fragment:
    """Return the fragment of which every one of `threads` holds every element."""
    box = extents_of(shape)
    thread = coordinate(len(box)) if threads > 1 else as_index(0)
    slot = flatten_row_major(inputs(len(box)), box)
    return Fragment(box, None, thread, threads, (slot,), threads)


@remembered(64)
def _holdings(fragment: Fragment) -> Table:
    """Return every pair (element, thread that holds it) as one number, each once."""
    elements = np.arange(fragment.size).reshape(*fragment.shape, 1)
    pairs = distinct(elements * fragment.thread_extent + fragment.thread_table())
    pairs.flags.writeable = False
    return pairs


@remembered(64)
def _reshaped(fragment: Fragment, box: tuple[int, ...]) -> Fragment:
    if math.prod(box) != fragment.size:
        raise LayoutError(f"a fragment of {fragment.shape} cannot be reshaped to {box}")
    old = unflatten_row_major(flatten_row_major(inputs(len(box)), box), fragment.shape)
    domain = (*box, fragment.replication)
    thread = substitute(fragment.thread, (*old, coordinate(len(box))), domain)
    index = [substitute(e, old, box) for e in fragment.index]
    return Fragment(box, None, thread, fragment.replication, tuple(index), fragment.thread_extent)


def _revived(
    formulas: tuple[Expr, ...],
    coords: tuple[Var, ...],
    shape: tuple[int, ...],
    replication: int,
    threads: int,
) -> Fragment:
    thread, *index = revived(formulas, coords)
    return Fragment(shape, None, thread, replication, index, threads)
