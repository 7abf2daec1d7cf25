"""Indivisible updates of elements: the lanes of one statement take their turns in order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_core.dtypes import DType
from tile_core.interp import access
from tile_core.interp.execution_state import Lanes
from tile_core.interp.memory import Storage
from tile_core.interp.values import Array, decode, encode, settle
from tile_core.ir.expr import AddressOf, Call, Expr, StringConst

Evaluate = Callable[[Expr, Lanes], Array]
Combine = Callable[[Array, Array], Array]

COMBINE: dict[str, Combine] = {
    "add": np.add,
    "max": np.fmax,
    "min": np.fmin,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exchange": lambda old, new: new,
    "store": lambda old, new: new,
    "load": lambda old, new: old,
}
"""By atomic operation: the new value of the element from the old one and the operand."""


def update(
    storage: Storage, offsets: Array, dtype: DType, values: Array, combine: Combine
) -> Array:
    """Update the elements at flat `offsets` one after the other; return their old values."""
    old = np.empty(offsets.shape, values.dtype)
    order = np.argsort(offsets, kind="stable")
    ordered = offsets[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    turn = np.arange(len(ordered)) - np.repeat(starts, np.diff([*starts, len(ordered)]))
    for number in range(int(turn.max(initial=-1)) + 1):
        now = order[turn == number]
        place = offsets[now]
        before = decode(storage.get(place, dtype), dtype)
        old[now] = before
        after = settle(combine(before, values[now]), dtype)
        storage.put(place, dtype, encode(after, dtype))
    return old


def element(expr: Call, lanes: Lanes, evaluate: Evaluate) -> Array:
    """Run an atomic intrinsic on one element per lane; return the previous values.

    Outside a global buffer nothing happens and the result is the safe value.
    """
    address = expr.args[0]
    assert isinstance(address, AddressOf)
    at = access.Site.of(lanes, address.buffer, expr)
    operation = expr.function.removeprefix("atomic_")
    indices = [evaluate(i, lanes) for i in address.indices]
    offsets, inside = at.place.locate(indices)
    active = access.check_bounds(at, offsets, inside, indices)
    shape = (lanes.count, *offsets.shape[1:])
    where = np.broadcast_to(offsets, shape)
    keep = np.broadcast_to(_mask(lanes, active, len(shape)), shape)
    flat = where[keep]
    if operation == "load":
        values = np.zeros(1, decode(at.storage.get(flat[:0], at.dtype), at.dtype).dtype)
    else:
        values = evaluate(expr.args[1], lanes)
    operands = np.broadcast_to(values, shape)[keep]
    known = at.storage.is_written(flat, at.dtype)
    if operation != "store" and known is not None and not known.all():
        access.uninitialised(at, flat[~known])
    access.watch(at, where, keep, "atomic")
    result: Array = np.broadcast_to(access.safe_value(lanes, at.buffer), shape).copy()
    if len(flat):
        result[keep] = update(at.storage, flat, at.dtype, operands, COMBINE[operation])
        at.storage.mark(flat, at.dtype)
    if operation != "load":
        lanes.machine.stores += 1
    _synchronise(expr, lanes)
    return result


_ACQUIRES = frozenset({"acquire", "consume", "acq_rel", "seq_cst"})


def _synchronise(expr: Call, lanes: Lanes) -> None:
    """Let what these lanes do from now on follow what others did before they were seen.

    Any acquiring operation counts, whoever released: races it would still leave are missed,
    but programs that hand data over by a flag are not accused.
    """
    order = expr.args[-1]
    if isinstance(order, StringConst) and order.value in _ACQUIRES and lanes.block is not None:
        if lanes.machine.clocks is not None:
            lanes.machine.clocks.meet_all(lanes.block.number)
        lanes.block.epoch = lanes.block.thread_epoch = lanes.machine.next_epoch()


def _mask(lanes: Lanes, active: Array | None, rank: int) -> Array:
    mask = lanes.active
    if rank > 1:
        mask = mask[:, None]
    return mask if active is None else mask & active
