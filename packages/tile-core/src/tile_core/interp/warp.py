"""Exchange of values between the threads of a warp, which run in step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_core.errors import Deadlock
from tile_core.interp.execution_state import Lanes
from tile_core.interp.values import Array, settle
from tile_core.ir.expr import Call

_REDUCE: dict[str, Callable[[Array], Array]] = {
    "warp_reduce_sum": lambda x: np.add.reduce(x.astype(np.float64)) if x.dtype.kind == "f" else (
        np.add.reduce(x)
    ),
    "warp_reduce_max": np.fmax.reduce,
    "warp_reduce_min": np.fmin.reduce,
    "warp_reduce_bitand": np.bitwise_and.reduce,
    "warp_reduce_bitor": np.bitwise_or.reduce,
}  # fmt: skip


def collective(expr: Call, args: list[Array], lanes: Lanes) -> Array:
    """Return what a warp-wide intrinsic gives each lane.

    Raises
    ------
    Deadlock
        If some threads of the warp do not take part; ``activemask`` alone does not wait.
    """
    name = expr.function
    if name == "activemask":
        return np.array([_bits(lanes.active)], np.uint32)
    if lanes.mask is not None and not lanes.mask.all():
        missing = int((~lanes.mask).sum())
        raise Deadlock(
            f"T.{name} waits for all {lanes.count} threads of the warp, and {missing} of them do "
            "not get here",
            span=expr.span or lanes.span,
            hint="move it out of the `if`, so that every thread of the warp runs it",
        )
    values = np.broadcast_to(args[0], (lanes.count,)) if args else np.zeros(lanes.count)
    if name.startswith("shfl_"):
        return _shuffle(name, values, args[1], args[2], lanes)
    if name.startswith("warp_reduce_"):
        return np.broadcast_to(settle(np.asarray([_REDUCE[name](values)]), expr.dtype), (1,))
    if name.startswith("match_"):
        return _match(name, values)
    true = values != 0
    if name == "ballot_sync":
        return np.array([_bits(true)], np.uint32)
    return np.array([int(true.any() if name == "any_sync" else true.all())], np.int32)


def _bits(flags: Array) -> int:
    return sum(1 << k for k in np.flatnonzero(flags).tolist())


def _shuffle(name: str, values: Array, by: Array, width: Array, lanes: Lanes) -> Array:
    """Lanes exchange within groups of `width`; a source outside the group is the lane itself."""
    lane = np.arange(lanes.count)
    step = np.broadcast_to(by, (lanes.count,)).astype(np.int64)
    group = np.broadcast_to(width, (lanes.count,)).astype(np.int64)
    first = lane // group * group
    match name:
        case "shfl_xor":
            source = lane ^ step
            stays = source >= first + group
        case "shfl_down":
            source = lane + step
            stays = source >= first + group
        case "shfl_up":
            source = lane - step
            stays = source < first
        case _:
            source = first + step % group
            stays = np.zeros(lanes.count, np.bool_)
    stays |= source >= lanes.count
    result: Array = values[np.where(stays, lane, source)]
    return result


def _match(name: str, values: Array) -> Array:
    same = values[:, None] == values[None, :]
    masks = np.array([_bits(row) for row in same], np.uint32)
    if name == "match_any_sync":
        return masks
    return masks[:1] if same.all() else np.zeros(1, np.uint32)
