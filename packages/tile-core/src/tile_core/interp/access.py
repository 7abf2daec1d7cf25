"""Loads and stores of elements, with every check the interpreter makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tile_core.dtypes import DType
from tile_core.errors import DataRace, Note, OutOfBounds, Span, UninitialisedRead
from tile_core.interp.clocks import Clocks, ClockTracker
from tile_core.interp.execution_state import Lanes, declared
from tile_core.interp.memory import ElementAddresses, Storage
from tile_core.interp.races import MANY, Conflict, Tracker
from tile_core.interp.values import Array, constant, decode, encode
from tile_core.ir.buffer import Buffer
from tile_core.ir.node import Node


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """Where lanes access a buffer: in the statement or expression `node`."""

    lanes: Lanes
    buffer: Buffer
    node: Node
    place: ElementAddresses

    @classmethod
    def of(cls, lanes: Lanes, buffer: Buffer, node: Node) -> Site:
        """Return the site of an access to the memory that the lanes have for `buffer`."""
        return cls(lanes, buffer, node, lanes.place(buffer))

    @property
    def storage(self) -> Storage:
        """The memory accessed."""
        return self.place.storage

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.buffer.dtype

    @property
    def span(self) -> Span | None:
        """The line to report."""
        return self.node.span or self.lanes.span


_PARTY = {"iterations": "iteration", "threads": "thread", "blocks": "block"}


def load(lanes: Lanes, buffer: Buffer, indices: list[Array], node: Node) -> Array:
    """Return the elements of `buffer` at `indices`, one array of values per dimension.

    Global buffers give their safe value outside.

    Raises `OutOfBounds`, `UninitialisedRead`, `DataRace` in an active lane.
    """
    at = Site.of(lanes, buffer, node)
    offsets, inside = at.place.locate(indices)
    active = check_bounds(at, offsets, inside, indices)
    if active is not None:
        offsets = np.where(active, offsets, 0)
    known = at.storage.is_written(offsets, at.dtype)
    if known is not None and lanes.machine.options.check_uninitialised:
        missing = ~known if active is None else active & ~known
        if missing.any():
            uninitialised(at, offsets[missing])
    watch(at, offsets, active, "read")
    values = decode(at.storage.get(offsets, at.dtype), at.dtype)
    if inside is None:
        return values
    return np.where(inside, values, safe_value(lanes, buffer))


def safe_value(lanes: Lanes, buffer: Buffer) -> Array:
    """Return what loads of `buffer` give outside its box."""
    known = lanes.safe.get(buffer)
    return constant(0, buffer.dtype.scalar) if known is None else known


def store(
    lanes: Lanes, buffer: Buffer, indices: list[Array], value: Callable[[], Array], node: Node
) -> None:
    """Write what `value` returns to `buffer` in the active lanes.

    Outside a global buffer nothing happens: lanes whose elements are outside are not active while
    the value is evaluated, as the guard of a store is around all of it.

    Raises `OutOfBounds` or `DataRace` in an active lane.
    """
    at = Site.of(lanes, buffer, node)
    offsets, inside = at.place.locate(indices)
    active = check_bounds(at, offsets, inside, indices)
    if inside is None or inside.all():
        values = value()
    else:
        stores = lanes.where(np.asarray(inside.any(axis=tuple(range(1, inside.ndim)))))
        if not stores.any():
            return
        with lanes.only(stores):
            values = value()
    rows = (lanes.count, 1) if offsets.ndim > 1 else (lanes.count,)
    shape = np.broadcast_shapes(rows, offsets.shape, values.shape)
    where = np.broadcast_to(offsets, shape)
    stored = np.broadcast_to(encode(values, buffer.dtype), shape)
    keep = _keep(lanes, active, shape)
    if keep is not None:
        write_elements(at, where[keep], stored[keep], keep)
    else:
        write_elements(at, where.ravel(), stored.ravel(), None)


def _keep(lanes: Lanes, active: Array | None, shape: tuple[int, ...]) -> Array | None:
    """Return which accesses of all lanes happen, or None for all of them."""
    mask = lanes.mask
    if mask is not None and len(shape) > 1:
        mask = mask[:, None]
    if mask is None or active is None:
        only = active if mask is None else mask
        return None if only is None else np.broadcast_to(only, shape)
    return np.broadcast_to(mask & active, shape)


def write_elements(at: Site, offsets: Array, stored: Array, keep: Array | None) -> None:
    """Write stored elements at flat `offsets`; `keep` tells from which lanes they come."""
    if not len(offsets):
        return
    storage, dtype = at.storage, at.dtype
    at.lanes.machine.stores += 1
    if not _watched(at):
        storage.put(offsets, dtype, stored)
        storage.mark(offsets, dtype)
        return
    before = storage.get(offsets, dtype)
    known = storage.is_written(offsets, dtype)
    storage.put(offsets, dtype, stored)
    storage.mark(offsets, dtype)
    after = storage.get(offsets, dtype)
    changes = _differ(before, stored)
    if known is not None:
        changes |= ~known
    lost = _differ(after, stored)
    for kind, parties, epoch in _levels(at):
        party = _parties(parties, offsets, keep, at.lanes.count)
        conflict = _tracker(at, kind).write(
            *_expanded(at, offsets, party), epoch, (at.node, at.span), _spread(at, offsets, changes)
        )
        if conflict is not None:
            raise _race(kind, "writes", at, offsets, party, conflict)
        if kind != "blocks" and lost.any():
            raise _lost(kind, at, offsets, party, lost)


def watch(at: Site, offsets: Array, active: Array | None, how: str) -> None:
    """Note that the active lanes read, or update atomically, the elements at `offsets`.

    Raises `DataRace` if another party touched one of them in a conflicting way since they last met.
    """
    if not _watched(at):
        return
    shape, lanes = offsets.shape, at.lanes
    if lanes.count > 1 and lanes.rivals is not None:
        shape = (lanes.count, *shape[1:])
    where = np.broadcast_to(offsets, shape)
    keep = active if lanes.count > 1 and len(where) == 1 else _keep(lanes, active, shape)
    flat = where.ravel() if keep is None else where[keep]
    for kind, parties, epoch in _levels(at):
        party = _parties(parties, flat, keep, lanes.count)
        tracker = _tracker(at, kind)
        note = tracker.read if how == "read" else tracker.atomic
        conflict = note(*_expanded(at, flat, party), epoch, (at.node, at.span))
        if conflict is not None:
            verb = "reads" if how == "read" else "updates"
            raise _race(kind, verb, at, flat, party, conflict)


def check_bounds(
    at: Site, offsets: Array, inside: Array | None, indices: list[Array]
) -> Array | None:
    """Return which elements are accessed, or None for all of them.

    Raises `OutOfBounds` if an active lane leaves a buffer that is not global.
    """
    mask = at.lanes.mask
    if mask is not None and offsets.ndim > 1:
        mask = mask[:, None]
    if inside is None:
        return None if mask is None or len(offsets) == 1 else mask
    wrong = ~inside if mask is None or len(inside) == 1 else mask & ~inside
    if not at.place.guarded and wrong.any():
        raise _outside(at, indices, wrong)
    return inside if mask is None or len(inside) == 1 else mask & inside


def _watched(at: Site) -> bool:
    if not at.lanes.machine.options.check_races or at.storage.copy_bytes:
        return False
    return at.storage.contended or at.lanes.rivals is not None


def _levels(at: Site) -> list[tuple[str, Array, int]]:
    """Return the kinds of parties that may race for the memory, who runs now, and the epoch."""
    levels: list[tuple[str, Array, int]] = []
    rivals, block = at.lanes.rivals, at.lanes.block
    if rivals is not None and (rivals.storages is None or at.buffer.storage in rivals.storages):
        levels.append((rivals.kind, rivals.party, rivals.epoch()))
    if at.storage.is_global and at.storage.contended and block is not None:
        levels.append(("blocks", block.party, block.epoch))
    return levels


def _tracker(at: Site, kind: str) -> Tracker | ClockTracker:
    """Return the accesses so far among parties of a kind."""
    clocks = at.lanes.machine.clocks
    if clocks is None or kind != "blocks":
        return at.storage.tracker(kind)
    return clocks.tracker(at.storage)


def _parties(parties: Array, flat: Array, keep: Array | None, count: int) -> Array:
    """Return the party of each flat access."""
    if len(parties) == 1:
        return np.broadcast_to(parties, flat.shape)
    if keep is None:
        return np.repeat(parties, len(flat) // count)
    column = parties.reshape(-1, *(1,) * (keep.ndim - 1))
    return np.asarray(np.broadcast_to(column, keep.shape)[keep])


def _expanded(at: Site, offsets: Array, party: Array) -> tuple[Array, Array]:
    units = at.storage.units(offsets, at.dtype)
    if units is offsets:
        return units, party
    return units.ravel(), np.repeat(party, units.shape[-1])


def _spread(at: Site, offsets: Array, flags: Array) -> Array:
    units = at.storage.units(offsets, at.dtype)
    return flags if units is offsets else np.repeat(flags, units.shape[-1])


def _differ(a: Array, b: Array) -> Array:
    """Return where two arrays of stored elements differ in bits."""
    width = a.dtype.itemsize
    left = np.ascontiguousarray(a).view(np.uint8).reshape(len(a), width)
    right = np.ascontiguousarray(b).view(np.uint8).reshape(len(b), width)
    result: Array = (left != right).any(axis=1)
    return result


# What went wrong, in words -------------------------------------------------------------------


def _element(at: Site, offset: int) -> str:
    """Return ``A[i, j]`` for an element offset of a buffer whose strides do not overlap."""
    place = at.place
    rest = int(offset) - (place.base if isinstance(place.base, int) else 0)
    if not isinstance(place.base, int):
        rest = rest % max(1, place.storage.copy_bytes * 8 // place.storage.granule)
    found = [0] * len(place.shape)
    for axis in sorted(range(len(place.shape)), key=lambda k: -place.strides[k]):
        stride = place.strides[axis]
        found[axis] = min(rest // stride, place.shape[axis] - 1) if stride else 0
        rest -= found[axis] * stride
    return f"{at.buffer.name}[{', '.join(map(str, found))}]"


def _outside(at: Site, indices: list[Array], wrong: Array) -> OutOfBounds:
    lane = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    aligned = (i if i.ndim == wrong.ndim else i[:, None] for i in indices)
    where = ", ".join(str(int(np.broadcast_to(i, wrong.shape)[lane])) for i in aligned)
    name, shape = at.buffer.name, ", ".join(map(str, at.place.shape))
    return OutOfBounds(
        f"{name}[{where}] is outside {name}[{shape}]",
        span=at.span,
        notes=declared(at.buffer),
        hint=f"only global tensors are guarded; guard the access to this {at.buffer.scope.value} "
        "buffer with `if`, or make it larger",
    )


def uninitialised(at: Site, offsets: Array) -> None:
    """Raise for reading the first of `offsets` too early.

    Among explicit threads the error waits until they meet: if one of them writes the element
    before, what is wrong is a race.
    """
    error = UninitialisedRead(
        f"{_element(at, offsets.flat[0])} is read before anything is written to it",
        span=at.span,
        notes=declared(at.buffer),
        hint="initialise it with T.clear, T.fill or T.copy",
    )
    block, rivals = at.lanes.block, at.lanes.rivals
    among_threads = rivals is not None and rivals.kind == "threads"
    watched = at.lanes.machine.options.check_races and not at.storage.copy_bytes
    if block is None or not among_threads or not watched:
        raise error
    block.pending = block.pending or error


def _race(
    kind: str, verb: str, at: Site, offsets: Array, party: Array, conflict: Conflict
) -> DataRace:
    factor = max(1, len(at.storage.units(offsets, at.dtype).ravel()) // len(offsets))
    position = conflict.position // factor
    noun = _PARTY[kind]
    clocks = at.lanes.machine.clocks if kind == "blocks" else None
    if clocks is not None:
        return _race_of_ranks(verb, at, offsets[position], int(party[position]), conflict, clocks)
    other = f"other {noun}s" if conflict.party == MANY else f"{noun} {conflict.party}"
    element = _element(at, offsets[position])
    return DataRace(
        f"{noun} {int(party[position])} {verb} {element}, which was {conflict.earlier.value} "
        f"by {other} without synchronisation in between",
        span=at.span,
        notes=(Note(f"{conflict.earlier.value} here", conflict.span), *declared(at.buffer)),
        hint=_way_out(kind),
    )


def _race_of_ranks(
    verb: str, at: Site, offset: int, party: int, conflict: Conflict, clocks: Clocks
) -> DataRace:
    """Return the error for blocks that no signal orders."""
    return DataRace(
        f"{clocks.told(party)} {verb} {_element(at, offset)}, which was {conflict.earlier.value} "
        f"by {clocks.told(conflict.party)} without a signal in between",
        span=at.span,
        notes=(Note(f"{conflict.earlier.value} here", conflict.span), *declared(at.buffer)),
        hint="signal behind the one, and wait in front of the other: T.signal(F.at(p)[i]), "
        "T.wait_signal(F[i])",
    )


def _lost(kind: str, at: Site, offsets: Array, party: Array, lost: Array) -> DataRace:
    position = int(np.argmax(lost))
    rival = int(np.flatnonzero(offsets == offsets[position])[-1])
    return DataRace(
        f"{_PARTY[kind]}s {int(party[position])} and {int(party[rival])} write different values "
        f"to {_element(at, offsets[position])}",
        span=at.span,
        notes=declared(at.buffer),
        hint=_way_out(kind),
    )


def _way_out(kind: str) -> str:
    return {
        "iterations": "let each iteration write elements of its own, or use T.reduce or an atomic",
        "threads": "separate the two with T.sync_threads(), or use an atomic",
        "blocks": "blocks run in any order: use an atomic, or two launches",
    }[kind]
