"""Whether a statement certainly overwrites all of a buffer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from tile_core.analysis.memory_access import is_whole, memory_accesses
from tile_core.arith.affine import linear_in
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.effects import Mode
from tile_core.ir.expr import Expr, Var
from tile_core.ir.stmt import For, Leaf, Parallel, Seq, Stmt, Store


def overwrites(stmt: Stmt, storage: Buffer) -> bool:
    """Whether `stmt`, if it does not read `storage`, overwrites all of it.

    Operators say so themselves. Loops do if they store to every index, whatever the values:
    each dimension is made of variables of the loop that no other dimension has.

    Before   parallel i, j < 128, 32:  W[i, 2*j] = …;  W[i, 2*j + 1] = …     (W is 128 x 64)
    """
    match stmt:
        case Leaf():
            return any(
                a.storage is storage and a.mode is Mode.WRITE and is_whole(a.box, a.buffer)
                for a in memory_accesses(stmt)
            )
        case Store(buffer=buffer):
            return buffer is storage and buffer.static_shape == (1,) * buffer.rank
        case Parallel():
            return _fills(stmt, storage)
    return False


def _fills(loop: Parallel, fragment: Buffer) -> bool:
    """Whether the stores that every point of `loop` makes cover the fragment."""
    shape = fragment.static_shape
    counts = {v: static_value(e) or 0 for v, e in zip(loop.vars, loop.extents, strict=True)}
    if shape is None or not all(counts.values()):
        return False
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
            count = static_value(stop) or 0
            if (static_value(start), static_value(step)) == (0, 1) and count > 0:
                yield from _stores(body, {**counts, var: count})


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
