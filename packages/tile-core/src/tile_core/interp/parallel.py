"""Data-parallel loops, and memory that each iteration has a copy of."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from tile_core.interp.execution_state import ConcurrentLanes, Lanes
from tile_core.interp.memory import Storage
from tile_core.interp.values import Array, carrier
from tile_core.ir.stmt import Parallel


@contextmanager
def iterations(loop: Parallel, lanes: Lanes) -> Iterator[Lanes | None]:
    """Yield one lane per iteration of `loop`, or None if there are no iterations.

    Thread-private memory from outside that the body writes is private to each iteration. An
    element has a value afterwards if all iterations that stored to it stored the same.
    """
    extents = [lanes.extent(e) for e in loop.extents]
    total = math.prod(extents)
    if total <= 0 or min(extents) <= 0:
        yield None
        return
    machine = lanes.machine
    inner = Lanes(lanes.block, machine, total)
    inner.env = dict(lanes.env)
    inner.outer, inner.safe, inner.span = lanes, lanes.safe, lanes.span
    inner.random = {k: np.repeat(v, total) for k, v in lanes.random.items()}
    points = np.unravel_index(np.arange(total), extents)
    for var, point in zip(loop.vars, points, strict=True):
        inner.env[var] = point.astype(carrier(var.dtype))
    facts = machine.facts(loop.body)
    epoch = machine.next_epoch()
    shared = frozenset(root for root in facts.written if not root.scope.is_thread_private)
    inner.rivals = ConcurrentLanes(
        "iterations", np.arange(total, dtype=np.int32), lambda: epoch, shared
    )
    originals: list[tuple[Storage, Storage]] = []
    for root in facts.private:
        if root in facts.written and root in _visible(lanes):
            original, _ = lanes.storage(root)
            copies = replicate(original, total)
            inner.private[root] = copies
            originals.append((original, copies))
    yield inner
    for original, copies in originals:
        merge(copies, original)


def _visible(lanes: Lanes | None) -> set[object]:
    found: set[object] = set()
    while lanes is not None:
        found |= lanes.private.keys()
        lanes = lanes.outer
    return found


def replicate(storage: Storage, count: int) -> Storage:
    """Return `count` copies of one thread's memory, noting what is stored to from now on."""
    raw = np.tile(storage.raw, count)
    written = None if storage.written is None else np.tile(storage.written, count)
    copies = Storage(storage.name, raw, storage.granule, False, written=written)
    copies.copy_bytes = len(storage.raw)
    copies.touched = np.zeros(copies.granules, np.bool_)
    return copies


def granule_values(storage: Storage) -> Array:
    """Return the memory as one unsigned integer per granule."""
    if storage.granule == 4:
        return np.stack([storage.raw & 15, storage.raw >> 4], axis=-1).ravel()
    return storage.raw.view(np.dtype(f"u{storage.granule // 8}"))


def set_granules(storage: Storage, values: Array) -> None:
    """Overwrite the memory from one unsigned integer per granule."""
    if storage.granule == 4:
        pairs = values.reshape(-1, 2).astype(np.uint8)
        storage.raw[:] = pairs[:, 0] | (pairs[:, 1] << 4)
    else:
        storage.raw[:] = values.astype(f"u{storage.granule // 8}").view(np.uint8)


def merge(copies: Storage, original: Storage) -> None:
    """Bring back what all copies that were stored to agree on; the rest becomes undefined."""
    assert copies.touched is not None
    touched = copies.touched.reshape(-1, original.granules)
    values = granule_values(copies).reshape(touched.shape)
    anyone = touched.any(axis=0)
    first = touched.argmax(axis=0)
    columns = np.arange(original.granules)
    chosen = values[first, columns]
    agreed = ((values == chosen) | ~touched).all(axis=0)
    set_granules(original, np.where(anyone, chosen, granule_values(original)))
    if original.written is not None:
        assert copies.written is not None
        known = copies.written.reshape(touched.shape)[first, columns] & agreed
        original.written[:] = np.where(anyone, known, original.written)
    if original.touched is not None:
        original.touched |= anyone


def each_lane(lanes: Lanes) -> Iterator[Lanes]:
    """Yield every active lane alone, for operators on its private memory."""
    for number in np.flatnonzero(lanes.active).tolist():
        lane = Lanes(lanes.block, lanes.machine)
        lane.env = {v: a[number : number + 1] if len(a) > 1 else a for v, a in lanes.env.items()}
        lane.outer, lane.safe, lane.span = lanes, lanes.safe, lanes.span
        lane.private = lanes.private
        copy = lanes.lane_of_copy[number] if lanes.lane_of_copy is not None else number
        lane.lane_of_copy = np.array([copy], np.int64)
        if lanes.rivals is not None:
            rivals = lanes.rivals
            party = rivals.party[number : number + 1]
            lane.rivals = ConcurrentLanes(rivals.kind, party, rivals.epoch, rivals.storages)
        yield lane
