"""Loads and stores of elements, with every check the interpreter makes."""

from __future__ import annotations

import numpy as np

from tile_core.dtypes import DType
from tile_core.errors import DataRace, Note, OutOfBounds, Span, UninitialisedRead
from tile_core.interp.execution_state import Lanes, declared
from tile_core.interp.memory import ElementAddresses, Storage
from tile_core.interp.races import MANY, Conflict
from tile_core.interp.values import Array, constant, decode, encode
from tile_core.ir.buffer import Buffer
from tile_core.ir.node import Node

_PARTY = {"iterations": "iteration", "threads": "thread", "blocks": "block"}


def load(lanes: Lanes, buffer: Buffer, indices: list[Array], node: Node) -> Array:
    """Return the elements of `buffer` at `indices`, one array of values per dimension.

    Global buffers give their safe value outside.

    Raises
    ------
    OutOfBounds, UninitialisedRead, DataRace
        In an active lane.
    """
    place = lanes.place(buffer)
    offsets, inside = place.locate(indices)
    active = check_bounds(lanes, offsets, inside, buffer, place, indices, node)
    if active is not None:
        offsets = np.where(active, offsets, 0)
    known = place.storage.is_written(offsets, buffer.dtype)
    if known is not None and lanes.machine.options.check_uninitialised:
        missing = ~known if active is None else active & ~known
        if missing.any():
            uninitialised(lanes, buffer, place, offsets[missing], node)
    watch(lanes, buffer, place.storage, offsets, active, node, "read")
    values = decode(place.storage.get(offsets, buffer.dtype), buffer.dtype)
    if inside is None:
        return values
    return np.where(inside, values, safe_value(lanes, buffer))


def safe_value(lanes: Lanes, buffer: Buffer) -> Array:
    """Return what loads of `buffer` give outside its box."""
    known = lanes.safe.get(buffer)
    return constant(0, buffer.dtype.scalar) if known is None else known


def store(lanes: Lanes, buffer: Buffer, indices: list[Array], values: Array, node: Node) -> None:
    """Write `values` to `buffer` in the active lanes; outside a global buffer nothing happens.

    Raises
    ------
    OutOfBounds, DataRace
        In an active lane.
    """
    place = lanes.place(buffer)
    offsets, inside = place.locate(indices)
    active = check_bounds(lanes, offsets, inside, buffer, place, indices, node)
    rows = (lanes.count, 1) if offsets.ndim > 1 else (lanes.count,)
    shape = np.broadcast_shapes(rows, offsets.shape, values.shape)
    where = np.broadcast_to(offsets, shape)
    stored = np.broadcast_to(encode(values, buffer.dtype), shape)
    keep = _keep(lanes, active, shape)
    if keep is not None:
        write_elements(lanes, buffer, place, where[keep], stored[keep], node, keep)
    else:
        write_elements(lanes, buffer, place, where.ravel(), stored.ravel(), node, None)


def _keep(lanes: Lanes, active: Array | None, shape: tuple[int, ...]) -> Array | None:
    """Return which accesses of all lanes happen, or None for all of them."""
    mask = lanes.mask
    if mask is not None and len(shape) > 1:
        mask = mask[:, None]
    if mask is None or active is None:
        only = active if mask is None else mask
        return None if only is None else np.broadcast_to(only, shape)
    return np.broadcast_to(mask & active, shape)


def write_elements(
    lanes: Lanes,
    buffer: Buffer,
    place: ElementAddresses,
    offsets: Array,
    stored: Array,
    node: Node,
    keep: Array | None,
) -> None:
    """Write stored elements at flat `offsets`; `keep` tells from which lanes they come."""
    if not len(offsets):
        return
    storage = place.storage
    lanes.machine.stores += 1
    if not _watched(lanes, storage):
        storage.put(offsets, buffer.dtype, stored)
        storage.mark(offsets, buffer.dtype)
        return
    before = storage.get(offsets, buffer.dtype)
    known = storage.is_written(offsets, buffer.dtype)
    storage.put(offsets, buffer.dtype, stored)
    storage.mark(offsets, buffer.dtype)
    after = storage.get(offsets, buffer.dtype)
    changes = _differ(before, stored)
    if known is not None:
        changes |= ~known
    lost = _differ(after, stored)
    for kind, parties, epoch in _levels(lanes, buffer, storage):
        party = _parties(parties, offsets, keep, lanes.count)
        conflict = storage.tracker(kind).write(
            *_expanded(storage, offsets, buffer.dtype, party), epoch,
            (node, _span(node, lanes)), _spread(storage, offsets, buffer.dtype, changes),
        )  # fmt: skip
        if conflict is not None:
            raise _race(kind, "writes", buffer, place, offsets, party, conflict, node, lanes)
        if kind != "blocks" and lost.any():
            raise _lost(kind, buffer, place, offsets, party, lost, node, lanes)


def watch(
    lanes: Lanes,
    buffer: Buffer,
    storage: Storage,
    offsets: Array,
    active: Array | None,
    node: Node,
    how: str,
) -> None:
    """Note that the active lanes read, or update atomically, the elements at `offsets`.

    Raises
    ------
    DataRace
        If another party touched one of them in a conflicting way since they last met.
    """
    if not _watched(lanes, storage):
        return
    shape = offsets.shape
    if lanes.count > 1 and lanes.rivals is not None:
        shape = (lanes.count, *shape[1:])
    where = np.broadcast_to(offsets, shape)
    keep = active if lanes.count > 1 and len(where) == 1 else _keep(lanes, active, shape)
    flat = where.ravel() if keep is None else where[keep]
    for kind, parties, epoch in _levels(lanes, buffer, storage):
        party = _parties(parties, flat, keep, lanes.count)
        tracker = storage.tracker(kind)
        note = tracker.read if how == "read" else tracker.atomic
        at = (node, _span(node, lanes))
        conflict = note(*_expanded(storage, flat, buffer.dtype, party), epoch, at)
        if conflict is not None:
            verb = "reads" if how == "read" else "updates"
            place = lanes.place(buffer)
            raise _race(kind, verb, buffer, place, flat, party, conflict, node, lanes)


def check_bounds(
    lanes: Lanes,
    offsets: Array,
    inside: Array | None,
    buffer: Buffer,
    place: ElementAddresses,
    indices: list[Array],
    node: Node,
) -> Array | None:
    """Return which elements are accessed, or None for all of them.

    Raises
    ------
    OutOfBounds
        If an active lane leaves a buffer that is not global.
    """
    mask = lanes.mask
    if mask is not None:
        mask = mask[:, None] if offsets.ndim > 1 else mask
    if inside is None:
        return None if mask is None or len(offsets) == 1 else mask
    wrong = ~inside if mask is None or len(inside) == 1 else mask & ~inside
    if not place.guarded and wrong.any():
        raise _outside(buffer, place, indices, wrong, node, lanes)
    return inside if mask is None or len(inside) == 1 else mask & inside


def _watched(lanes: Lanes, storage: Storage) -> bool:
    if not lanes.machine.options.check_races or storage.copy_bytes:
        return False
    return storage.contended or lanes.rivals is not None


def _levels(lanes: Lanes, buffer: Buffer, storage: Storage) -> list[tuple[str, Array, int]]:
    """Return the kinds of parties that may race for `storage`, who runs now, and the epoch."""
    levels: list[tuple[str, Array, int]] = []
    rivals = lanes.rivals
    if rivals is not None and (rivals.storages is None or buffer.storage in rivals.storages):
        levels.append((rivals.kind, rivals.party, rivals.epoch()))
    if storage.is_global and storage.contended and lanes.block is not None:
        levels.append(("blocks", lanes.block.party, lanes.block.epoch))
    return levels


def _parties(parties: Array, flat: Array, keep: Array | None, count: int) -> Array:
    """Return the party of each flat access."""
    if len(parties) == 1:
        return np.broadcast_to(parties, flat.shape)
    if keep is None:
        return np.repeat(parties, len(flat) // count)
    column = parties.reshape(-1, *(1,) * (keep.ndim - 1))
    return np.asarray(np.broadcast_to(column, keep.shape)[keep])


def _expanded(storage: Storage, offsets: Array, dtype: DType, party: Array) -> tuple[Array, Array]:
    units = storage.units(offsets, dtype)
    if units is offsets:
        return units, party
    return units.ravel(), np.repeat(party, units.shape[-1])


def _spread(storage: Storage, offsets: Array, dtype: DType, flags: Array) -> Array:
    units = storage.units(offsets, dtype)
    return flags if units is offsets else np.repeat(flags, units.shape[-1])


def _differ(a: Array, b: Array) -> Array:
    """Return where two arrays of stored elements differ in bits."""
    width = a.dtype.itemsize
    left = np.ascontiguousarray(a).view(np.uint8).reshape(len(a), width)
    right = np.ascontiguousarray(b).view(np.uint8).reshape(len(b), width)
    result: Array = (left != right).any(axis=1)
    return result


# What went wrong, in words -------------------------------------------------------------------


def coordinates(place: ElementAddresses, offset: int) -> str:
    """Return ``i, j`` for an element offset of a buffer whose strides do not overlap."""
    rest = int(offset) - (place.base if isinstance(place.base, int) else 0)
    if not isinstance(place.base, int):
        rest = rest % max(1, place.storage.copy_bytes * 8 // place.storage.granule)
    found = [0] * len(place.shape)
    for axis in sorted(range(len(place.shape)), key=lambda k: -place.strides[k]):
        stride = place.strides[axis]
        found[axis] = min(rest // stride, place.shape[axis] - 1) if stride else 0
        rest -= found[axis] * stride
    return ", ".join(map(str, found))


def _span(node: Node, lanes: Lanes) -> Span | None:
    return node.span or lanes.span


def _outside(
    buffer: Buffer,
    place: ElementAddresses,
    indices: list[Array],
    wrong: Array,
    node: Node,
    lanes: Lanes,
) -> OutOfBounds:
    lane = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    at = [np.broadcast_to(i if i.ndim == wrong.ndim else i[:, None], wrong.shape)[lane]
          for i in indices]  # fmt: skip
    where = ", ".join(str(int(i)) for i in at)
    return OutOfBounds(
        f"{buffer.name}[{where}] is outside {buffer.name}[{', '.join(map(str, place.shape))}]",
        span=_span(node, lanes),
        notes=declared(buffer),
        hint=f"only global tensors are guarded; guard the access to this {buffer.scope.value} "
        "buffer with `if`, or make it larger",
    )


def uninitialised(
    lanes: Lanes, buffer: Buffer, place: ElementAddresses, offsets: Array, node: Node
) -> None:
    """Raise for reading the first of `offsets` too early.

    Among explicit threads the error waits until they meet: if one of them writes the element
    before, what is wrong is a race.
    """
    error = UninitialisedRead(
        f"{buffer.name}[{coordinates(place, offsets.flat[0])}] is read before anything is "
        "written to it",
        span=_span(node, lanes),
        notes=declared(buffer),
        hint="initialise it with T.clear, T.fill or T.copy",
    )
    block, among_threads = lanes.block, lanes.rivals and lanes.rivals.kind == "threads"
    watched = lanes.machine.options.check_races and not place.storage.copy_bytes
    if block is None or not among_threads or not watched:
        raise error
    block.pending = block.pending or error


def _race(
    kind: str,
    verb: str,
    buffer: Buffer,
    place: ElementAddresses,
    offsets: Array,
    party: Array,
    conflict: Conflict,
    node: Node,
    lanes: Lanes,
) -> DataRace:
    factor = max(1, len(place.storage.units(offsets, buffer.dtype).ravel()) // len(offsets))
    position = conflict.position // factor
    noun = _PARTY[kind]
    other = f"other {noun}s" if conflict.party == MANY else f"{noun} {conflict.party}"
    element = f"{buffer.name}[{coordinates(place, offsets[position])}]"
    return DataRace(
        f"{noun} {int(party[position])} {verb} {element}, which was {conflict.earlier.value} "
        f"by {other} without synchronisation in between",
        span=_span(node, lanes),
        notes=(Note(f"{conflict.earlier.value} here", conflict.span), *declared(buffer)),
        hint=_way_out(kind),
    )


def _lost(
    kind: str,
    buffer: Buffer,
    place: ElementAddresses,
    offsets: Array,
    party: Array,
    lost: Array,
    node: Node,
    lanes: Lanes,
) -> DataRace:
    position = int(np.argmax(lost))
    rival = int(np.flatnonzero(offsets == offsets[position])[-1])
    noun = _PARTY[kind]
    element = f"{buffer.name}[{coordinates(place, offsets[position])}]"
    return DataRace(
        f"{noun}s {int(party[position])} and {int(party[rival])} write different values to "
        f"{element}",
        span=_span(node, lanes),
        notes=declared(buffer),
        hint=_way_out(kind),
    )


def _way_out(kind: str) -> str:
    return {
        "iterations": "let each iteration write elements of its own, or use T.reduce or an atomic",
        "threads": "separate the two with T.sync_threads(), or use an atomic",
        "blocks": "blocks run in any order: use an atomic, or two launches",
    }[kind]
