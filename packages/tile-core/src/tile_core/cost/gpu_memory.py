"""Bytes that come from memory: what blocks that run together do not find in the cache."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from tile_core.arith.evaluate_arrays import Unknown, value_of
from tile_core.cost.gpu_issue import GlobalAccess
from tile_core.cost.iteration_spaces import Space
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Var

CACHE_SHARE = 0.7
"""Part of the last-level cache that one kernel's tensors fill before they push each other out."""

MOST_BLOCKS = 4096


def bytes_from_memory(
    accesses: Iterable[GlobalAccess], sizes: dict[Buffer, float], cache: int, together: int
) -> float:
    """Return the bytes that memory delivers and takes.

    The tensors have `sizes` bytes, the last-level cache has `cache`, and `together` blocks run
    at a time.

    Notes
    -----
    If all tensors fit into the cache each is fetched once. Otherwise blocks that run together
    share what they read, and later ones fetch it again. Blocks that run together have numbers
    that follow each other, and are at about the same place of their loops.
    """
    found = [*accesses]
    touched: dict[Buffer, float] = {}
    for a in found:
        touched[a.tensor] = touched.get(a.tensor, 0.0) + a.fetched
    once = {t: min(n, sizes.get(t) or n) for t, n in touched.items()}
    if math.fsum(once.values()) <= CACHE_SHARE * cache:
        return math.fsum(once.values())
    again: dict[Buffer, float] = {}
    for a in found:
        share = 1.0 if a.is_write else _distinct_share(a, together)
        again[a.tensor] = again.get(a.tensor, 0.0) + a.fetched * share
    return math.fsum(max(once[t], min(again[t], touched[t])) for t in touched)


def _distinct_share(access: GlobalAccess, together: int) -> float:
    """Return how many different parts of the tensor the blocks of one wave read, per block."""
    space = access.space
    blocks = _wave(space, together)
    if blocks is None:
        return 1.0
    values, count = blocks
    try:
        parts = [
            np.broadcast_to(np.asarray(value_of(e, values, space.names, loads=0)), (count,))
            for e in access.at
        ]
    except Unknown:
        return 1.0
    if not parts:
        return 1.0
    return len(np.unique(np.stack(parts), axis=1).T) / count


def _wave(space: Space, together: int) -> tuple[dict[Var, Any], int] | None:
    """Return the block indices of a wave in the middle of the grid; all else is zero."""
    axes = [a for a in space.axes if a.is_block]
    extents = [space.constant(a.count) for a in axes]
    if any(e is None for e in extents):
        return None
    known = [e or 1 for e in extents]
    total = math.prod(known)
    count = max(1, min(together, total, MOST_BLOCKS))
    first = (total - count) // 2 // count * count
    number = np.arange(first, first + count)
    values: dict[Var, Any] = {**space.sizes, **{a.var: 0 for a in space.axes}}
    for axis, extent in zip(reversed(axes), reversed(known), strict=True):
        values[axis.var] = number % extent
        number = number // extent
    return values, count
