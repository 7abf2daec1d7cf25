"""Whether a round overwrites all of a fragment before it looks at it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from tile_core.arith.affine import linear_in
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.effects import Mode, accesses
from tile_core.ir.expr import Expr, Var
from tile_core.ir.stmt import For, Parallel, Seq, Stmt, Store
from tile_core.passes.liveness import Meets, meets


def is_overwritten(items: Sequence[Stmt], fragment: Buffer) -> bool:
    """Whether the first of `items` that touches `fragment` overwrites all of it, unread.

    Operators say so themselves. Loops do if they store to every index, whatever the values:
    each dimension is made of variables of the loop that no other dimension has.

    Before   parallel i, j < 128, 32:  W[i, 2*j] = …;  W[i, 2*j + 1] = …     (W is 128 x 64)
    """
    for item in items:
        how = meets(item, fragment)
        if how is not Meets.NOT:
            return how is Meets.REPLACES
        if any(a.buffer.storage is fragment for a in accesses(item)):
            return isinstance(item, Parallel) and _fills(item, fragment)
    return False


def _fills(loop: Parallel, fragment: Buffer) -> bool:
    """Whether the stores that every point of `loop` makes cover the fragment."""
    shape = fragment.static_shape
    if shape is None or any(
        a.buffer.storage is fragment and a.mode is not Mode.WRITE for a in accesses(loop)
    ):
        return False
    counts = {v: static_value(e) or 0 for v, e in zip(loop.vars, loop.extents, strict=True)}
    boxes = [
        box
        for store, around in _stores(loop.body, counts)
        if store.buffer is fragment
        and (box := _indices(store.indices, around)) is not None
        and all(v in range(e) for side, e in zip(box, shape, strict=True) for v in side)
    ]
    return any(
        _cover([b for b in boxes if _are_whole(b, shape, apart_from=d)], shape, d)
        for d in range(len(shape))
    )


def _stores(stmt: Stmt, counts: Mapping[Var, int]) -> Iterator[tuple[Store, dict[Var, int]]]:
    """Yield the stores that run at every point, with the variables around them."""
    match stmt:
        case Store():
            yield stmt, dict(counts)
        case Seq(body=body):
            for item in body:
                yield from _stores(item, counts)
        case For(var=var, start=start, stop=stop, step=step, body=body):
            if (static_value(start), static_value(step)) == (0, 1):
                yield from _stores(body, {**counts, var: static_value(stop) or 0})


def _indices(
    indices: Sequence[Expr], counts: Mapping[Var, int]
) -> tuple[frozenset[int], ...] | None:
    """Return the values of each index; None if they are not independent, or unknown."""
    left = dict(counts)
    found = []
    for index in indices:
        values, rest = {0}, static_value(index)
        expr: Expr | int = index if rest is None else rest
        for var in list(left):
            parts = linear_in(expr, var)
            if parts is None:
                return None
            factor, expr = parts
            if factor:
                count = left.pop(var)
                values = {v + factor * k for v in values for k in range(count)}
        first = static_value(expr)
        if first is None:
            return None
        found.append(frozenset(v + first for v in values))
    return tuple(found)


def _are_whole(box: Sequence[frozenset[int]], shape: Sequence[int], apart_from: int) -> bool:
    return all(len(side) == shape[d] for d, side in enumerate(box) if d != apart_from)


def _cover(boxes: Sequence[Sequence[frozenset[int]]], shape: Sequence[int], dim: int) -> bool:
    """Whether boxes that are whole in all other dimensions make up the fragment."""
    covered = frozenset[int]().union(*(box[dim] for box in boxes))
    return math.prod(shape) > 0 and len(covered) == shape[dim]


__all__ = ["is_overwritten"]
