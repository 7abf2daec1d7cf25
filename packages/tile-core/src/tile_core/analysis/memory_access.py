"""What a statement touches, as boxes of elements: the common ground of hazards and pipelines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import TypeAlias

from tile_core.arith.affine import linear_in, same_extent
from tile_core.arith.interval import Interval
from tile_core.arith.interval_analysis import interval
from tile_core.ir.buffer import Buffer, Region, static_value
from tile_core.ir.effects import Access, Mode, accesses
from tile_core.ir.expr import AddressOf, Call, Expr, Extent, Load, Ramp, Var
from tile_core.ir.free_variables import free_variables
from tile_core.ir.node import Node, analysis, nodes_of, substitute, walk, walk_once
from tile_core.ir.stmt import For, Leaf, Let, Parallel, Pipelined, Store
from tile_core.ir.visitor import static_range
from tile_core.ops.atomic import AtomicTile
from tile_core.ops.copy import Copy
from tile_core.ops.region_pairing import pair
from tile_core.records import dataclass

Side: TypeAlias = "tuple[Extent, Extent] | None"
"""Start and extent of a box along one dimension; None: anywhere."""


class ExecutingThreads(Enum):
    """Which threads perform an access."""

    TILE = "tile"  # the threads of the block share the work
    ALL = "all"  # every thread does the same
    FIRST = "first"  # the first thread alone
    THREAD = "thread"  # each thread what its own program says


@dataclass(frozen=True, slots=True, eq=False)
class MemoryAccess:
    """One access of a box of elements.

    The `box` has an entry per dimension, in terms of variables bound outside the statement; the
    `node` is the load, store, address or operator. What `is_async` goes on until the program waits
    for it. `threads` are first and count of those that the access is left to, None for those of the
    block; `when` are conditions under which a thread of an explicit program gets to it.
    """

    buffer: Buffer
    mode: Mode
    box: tuple[Side, ...]
    node: Node
    executed_by: ExecutingThreads = ExecutingThreads.TILE
    is_async: bool = False
    threads: tuple[int, int] | None = None
    when: tuple[Expr, ...] = ()

    @property
    def storage(self) -> Buffer:
        """The memory accessed."""
        return self.buffer.storage


def is_whole(box: tuple[Side, ...], buffer: Buffer) -> bool:
    """Whether a box is certainly all of a buffer."""
    return all(
        side is not None and static_value(side[0]) == 0 and same_extent(side[1], extent)
        for side, extent in zip(box, buffer.shape, strict=True)
    )


def memory_accesses(
    root: Node,
    executed_by: ExecutingThreads = ExecutingThreads.TILE,
    meaning: Mapping[Var, Expr] | None = None,
) -> tuple[MemoryAccess, ...]:
    """Return what `root`, taken as one statement, reads and writes.

    Boxes cover at least the elements touched: indices that move with a loop inside `root`
    are widened to all of that loop's iterations. Names outside of `root` may stand for an
    expression: that is their `meaning`.
    """
    if not meaning:
        return _context_free(root, executed_by)
    return _memory_accesses(root, executed_by, meaning)


@analysis
def _context_free(root: Node, executed_by: ExecutingThreads) -> tuple[MemoryAccess, ...]:
    return _memory_accesses(root, executed_by, {})


def _memory_accesses(
    root: Node, executed_by: ExecutingThreads, meaning: Mapping[Var, Expr]
) -> tuple[MemoryAccess, ...]:
    inner = _ranges(root)
    names = {**meaning, **_lets(root)}
    found = []
    for access in own_accesses(root):
        is_async = isinstance(access.node, Copy) and access.node.is_async
        for box in _boxes(access):
            widened = tuple(_widened(side, inner, names) for side in box)
            found.append(
                MemoryAccess(
                    access.buffer, access.mode, widened, access.node, executed_by, is_async
                )
            )
    return tuple(found)


def own_accesses(root: Node) -> tuple[Access, ...]:
    """Return the accesses of `root` without what stands in the addresses of tensors."""
    elsewhere = _in_addresses(root)
    found = accesses(root)
    return tuple(a for a in found if a.node not in elsewhere) if elsewhere else found


@analysis
def _in_addresses(root: Node) -> frozenset[Node]:
    """Return what belongs to the addresses of tensors: naming a tensor is no access of another."""
    return frozenset(
        inner
        for node in nodes_of(root, Buffer)
        if isinstance(node.origin, Expr)
        for inner in walk(node.origin)
    )


def tensor_of(storage: Buffer) -> Buffer | None:
    """Return the tensor that `storage` is a part of; None where its address may be any."""
    while isinstance(storage.origin, Expr):
        if not isinstance(storage.origin, AddressOf):
            return None
        storage = storage.origin.buffer.storage
    return storage


@analysis
def _ranges(root: Node) -> Mapping[Var, Interval]:
    """Return the values of the variables bound inside of `root`."""
    known: dict[Var, Interval] = {}
    for node in nodes_of(root, Parallel, For, Pipelined, Let):
        match node:
            case Parallel(vars=variables, extents=extents):
                for var, extent in zip(variables, extents, strict=True):
                    count = static_value(extent)
                    known[var] = Interval(None, None) if count is None else Interval(0, count - 1)
            case For() | Pipelined():
                known[node.var] = _counting(static_range(node))
            case Let(var=var):
                known[var] = Interval(None, None)
    return known


def _counting(values: range | None) -> Interval:
    if values is None:
        return Interval(None, None)
    first, last = values.start, values.stop
    return Interval(first, last - 1) if values.step > 0 else Interval(last + 1, first)


@analysis
def _lets(root: Node) -> Mapping[Var, Expr]:
    return {n.var: n.value for n in nodes_of(root, Let) if is_plain(n.value)}


def is_plain(value: Node) -> bool:
    """Whether an expression is arithmetic on variables alone, the same at every time."""
    return not any(isinstance(n, (Load, Call, AddressOf)) for n in walk_once(value))


def _boxes(access: Access) -> Iterator[tuple[Side, ...]]:
    node = access.node
    match node:
        case Load(indices=indices) | Store(indices=indices):
            yield tuple(_element(i) for i in indices)
        case AddressOf(indices=indices) if access.mode is Mode.ATOMIC:
            yield tuple(_element(i) for i in indices)
        case Leaf() if access.region is not None:
            yield _sides(node, access.region)
        case _:
            yield (None,) * access.buffer.rank


def _element(index: Expr) -> Side:
    if isinstance(index, Ramp):
        stride = static_value(index.stride)
        if stride is None or stride < 1:
            return None
        return index.base, (index.dtype.lanes - 1) * stride + 1
    return (index, 1) if index.dtype.lanes == 1 else None


def _sides(node: Leaf, region: Region) -> tuple[Side, ...]:
    """Return the box of an operand; what a transfer touches follows from both sides."""
    if not isinstance(node, (Copy, AtomicTile)):
        if region.is_element:
            return (None,) * region.buffer.rank
        return tuple(zip(region.starts, region.extents, strict=True))
    pairing = pair(node.src, node.dst)
    axes = pairing.src_axes if region is node.src else pairing.dst_axes
    return tuple(
        (start, 1 if axis is None else pairing.extents[axis])
        for start, axis in zip(region.starts, axes, strict=True)
    )


def _widened(side: Side, inner: Mapping[Var, Interval], names: Mapping[Var, Expr]) -> Side:
    """Return the side over all values of the variables in `inner`."""
    if side is None:
        return None
    start, extent = (inlined(x, names) for x in side)
    if isinstance(extent, Expr) and (
        not is_plain(extent) or free_variables(extent).keys() & inner.keys()
    ):
        return None
    if isinstance(start, int):
        return start, extent
    if not is_plain(start):
        return None
    moving = free_variables(start).keys() & inner.keys()
    if not moving:
        return start, extent
    return _hull(start, extent, sorted(moving, key=lambda v: v.name), inner)


def _hull(
    start: Expr, extent: Extent, moving: Iterable[Var], inner: Mapping[Var, Interval]
) -> Side:
    if free_variables(start).keys() <= inner.keys():
        around = interval(start, inner)
        if around.low is not None and around.high is not None:
            return around.low, _sum(extent, around.high - around.low)
    low, room, rest = 0, 0, _as_extent(start)
    for var in moving:
        parts, values = linear_in(rest, var), inner[var]
        if parts is None or values.low is None or values.high is None:
            return None
        factor, rest = parts
        low += factor * (values.low if factor > 0 else values.high)
        room += abs(factor) * max(values.high - values.low, 0)
    return _sum(rest, low), _sum(extent, room)


def _sum(extent: Extent, number: int) -> Extent:
    return _as_extent(extent + number)


def _as_extent(value: Extent) -> Extent:
    known = static_value(value)
    return value if known is None else known


def inlined(value: Extent, names: Mapping[Var, Expr]) -> Extent:
    """Return `value` with the names in it replaced by what they stand for."""
    for _ in range(len(names) + 1):
        if isinstance(value, int):
            return value
        used: dict[Node, Node] = {v: names[v] for v in free_variables(value) if v in names}
        if not used:
            return _as_extent(value)
        value = substitute(value, used)
    return value
