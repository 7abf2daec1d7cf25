"""How statements first access what memory held before: they read it, overwrite it, or neither."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto

from tile_core.analysis.memory_access import is_whole, memory_accesses
from tile_core.arith.affine import linear_in
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.effects import Mode, storages_accessed
from tile_core.ir.expr import Expr, Var
from tile_core.ir.node import Node, analysis, nodes_of
from tile_core.ir.stmt import (
    Alloc,
    For,
    If,
    Leaf,
    OnThreads,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
)
from tile_core.ir.visitor import LOOPS, Loop, expressions_in, jumps, statements_in, static_range


class FirstAccess(Enum):
    """How a statement first accesses the contents a buffer had before."""

    NONE = auto()  # it does not look at them, nor surely overwrites them
    READ = auto()  # it may read them
    OVERWRITE = auto()  # it overwrites all of them first


@analysis
def storages_named(root: Node) -> frozenset[Buffer]:
    """Return the storages of all buffers that `root` names."""
    return frozenset(n.storage for n in nodes_of(root, Buffer))


def first_access(
    stmt: Stmt, storage: Buffer, without: type[Node] | Stmt | None = None
) -> FirstAccess:
    """Return how `stmt`, apart from a part `without`, first accesses old contents of `storage`.

    Of a kind of statements in the place of a part it counts what they read alone.
    """
    if stmt is without or storage not in storages_named(stmt):
        return FirstAccess.NONE
    match stmt:
        case Seq(body=body):
            return first_of(body, storage, without)
        case OnThreads(body=inside):
            return first_access(inside, storage, without)
        case If() | For() | Pipelined() | While():
            if _reads(expressions_in(stmt), storage):
                return FirstAccess.READ
            ways = {first_access(s, storage, without) for s in statements_in(stmt)}
            if FirstAccess.READ in ways:
                return FirstAccess.READ
            surely = stmt.otherwise is not None if isinstance(stmt, If) else _runs(stmt)
            return ways.pop() if surely and len(ways) == 1 else FirstAccess.NONE
        case Alloc():
            return FirstAccess.OVERWRITE
    if _reads((stmt,), storage):
        return FirstAccess.READ
    sure = not isinstance(stmt, without) if isinstance(without, type) else True
    return FirstAccess.OVERWRITE if sure and overwrites(stmt, storage) else FirstAccess.NONE


def first_of(
    stmts: Iterable[Stmt], storage: Buffer, without: type[Node] | Stmt | None = None
) -> FirstAccess:
    """Return how statements that follow each other first access old contents of `storage`."""
    ways = (first_access(stmt, storage, without) for stmt in stmts)
    return next((way for way in ways if way is not FirstAccess.NONE), FirstAccess.NONE)


def is_overwritten(stmts: Iterable[Stmt], storage: Buffer) -> bool:
    """Whether the first of `stmts` that accesses `storage` overwrites all of it, unread."""
    for stmt in stmts:
        way = first_access(stmt, storage)
        if way is not FirstAccess.NONE or storage in storages_accessed(stmt):
            return way is FirstAccess.OVERWRITE
    return False


def flows_out(body: Stmt, loop: Stmt, storage: Buffer) -> bool:
    """Whether contents that `loop` left in `storage` may be read elsewhere in `body`.

    `loop` itself is taken to write whatever it reads.
    """
    return _behind(body, loop, storage) is FirstAccess.READ


def _behind(stmt: Stmt, loop: Stmt, storage: Buffer) -> FirstAccess | None:
    """Return how what follows `loop` in `stmt` accesses the storage; None if it is not in there."""
    if stmt is loop:
        return FirstAccess.NONE
    inside = statements_in(stmt)
    found = ((k, _behind(inner, loop, storage)) for k, inner in enumerate(inside))
    at, how = next(((k, way) for k, way in found if way is not None), (0, None))
    if how is FirstAccess.NONE and isinstance(stmt, Seq):
        return first_of(inside[at + 1 :], storage)
    if how is None or not isinstance(stmt, LOOPS):
        return how
    if how is not FirstAccess.NONE:
        # Iterations that are cut short may leave what would overwrite the contents out.
        return FirstAccess.READ if how is FirstAccess.OVERWRITE and jumps(stmt.body) else how
    again = first_access(stmt.body, storage, without=loop)
    asks = isinstance(stmt, While) and _reads((stmt.cond,), storage)
    return FirstAccess.READ if asks or again is FirstAccess.READ else FirstAccess.NONE


def _runs(loop: Loop) -> bool:
    """Whether the first iteration of a loop certainly runs to its end."""
    return not isinstance(loop, While) and bool(static_range(loop)) and not jumps(loop.body)


def _reads(roots: Iterable[Node], storage: Buffer) -> bool:
    return any(
        access.storage is storage and access.mode is not Mode.WRITE
        for root in roots
        for access in memory_accesses(root)
    )


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
