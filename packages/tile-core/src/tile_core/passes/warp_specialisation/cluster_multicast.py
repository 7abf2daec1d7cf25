"""Tiles that several blocks of a cluster need alike: each block copies a part for all of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from tile_core.ir.buffer import Region, Scope
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.expr import BinaryOp, Expr, Extent, Load, Var
from tile_core.ir.node import Node, nodes_of, walk
from tile_core.ir.stmt import For, If, Launch, Let, Pipelined, Stmt, While
from tile_core.ir.structural_equality import same_value
from tile_core.ir.visitor import expressions_in
from tile_core.ops.copy import Copy
from tile_core.ops.region_pairing import pair
from tile_core.passes.warp_specialisation.circular_buffers import CircularBuffer
from tile_core.records import dataclass, replace

ROWS = 8
"""Rows after which the pattern of a tile in shared memory repeats."""

SPAN_BITS = 1024
"""The widest pattern: parts of rows begin at multiples of it."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """How the blocks along one axis of a cluster share a copy.

    They divide the `dimension` of the tile, counted from the last: the first one of several, whose
    parts are boxes of their own, else rows (-2) or columns (-1). Each block copies `part` elements
    along it; this block's are at `place` among these parts. The `ranks` are the blocks, by their
    number in the cluster; the `mask` has a bit for each.
    """

    dimension: int
    part: int
    place: Expr
    ranks: tuple[Expr, ...]
    mask: Expr

    def own(self, copy: Copy) -> tuple[Region, Region]:
        """Return the parts of source and destination that this block copies."""
        pairing = pair(copy.src, copy.dst)
        axis = pairing.dst_axes[self.dimension]
        there = pairing.src_axes.index(axis)
        here = copy.dst.buffer.rank + self.dimension
        return self._cut(copy.src, there, pairing.extents), self._cut(copy.dst, here, None)

    def _cut(self, region: Region, dim: int, extents: Sequence[Extent] | None) -> Region:
        starts, sizes = list(region.starts), list(region.extents)
        if region.is_element and extents is not None:
            sizes[-len(extents) :] = list(extents)
        starts[dim] = as_expr(starts[dim]) + self.place * self.part
        sizes[dim] = self.part
        return replace(region, starts=tuple(starts), extents=tuple(sizes), is_element=False)


def shared_copies(
    launch: Launch, circular_buffers: Sequence[CircularBuffer]
) -> Mapping[Copy, Sharing]:
    """Return how blocks of a cluster share the copies of `circular_buffers`.

    A copy is shared along an axis of the cluster if its place in the tensor does not depend on
    the block's index along that axis, all these blocks run the same iterations, and its tile can
    be divided among them.
    """
    cluster = (*launch.cluster, 1, 1, 1)[:3]
    if math.prod(cluster) == 1:
        return {}
    copies = [
        c
        for circular in circular_buffers
        if circular.in_bulk
        for c in circular.copies
        if isinstance(c, Copy) and c not in circular.contiguous
    ]
    depends = Dependence(launch)
    governing = depends.of(*control(launch.body, set(copies)))
    found: dict[Copy, Sharing] = {}
    for copy in copies:
        place = depends.of(*(as_expr(s) for s in copy.src.starts))
        for axis, (var, count) in enumerate(zip(launch.block_vars, cluster, strict=False)):
            if count > 1 and var not in place and var not in governing and copy not in found:
                sharing = _sharing(copy, axis, cluster, launch.block_vars)
                if sharing is not None:
                    found[copy] = sharing
    return found


def _sharing(
    copy: Copy, axis: int, cluster: tuple[int, ...], blocks: tuple[Var, ...]
) -> Sharing | None:
    count = cluster[axis]
    extents = copy.dst.buffer.static_shape or ()
    bits = copy.dst.buffer.dtype.bits
    if len(extents) > 2 and _are_several(extents, count):
        dimension = -len(extents)
    elif len(extents) >= 2 and extents[-2] % (count * ROWS) == 0:
        dimension = -2
    elif extents and extents[-1] * bits % (count * SPAN_BITS) == 0:
        dimension = -1
    else:
        return None
    inside = [b % n if n > 1 else as_expr(0) for b, n in zip(blocks, cluster, strict=False)]
    steps = (1, cluster[0], cluster[0] * cluster[1])
    first = as_expr(0)
    for other, (index, step) in enumerate(zip(inside, steps, strict=False)):
        if other != axis:
            first = first + index * step
    ranks = tuple(first + k * steps[axis] for k in range(count))
    bits_set = sum(1 << (k * steps[axis]) for k in range(count))
    mask = binary(BinaryOp.SHL, as_expr(bits_set), first)
    return Sharing(dimension, extents[dimension] // count, inside[axis], ranks, mask)


def _are_several(extents: Sequence[int], count: int) -> bool:
    """Whether the first dimension has several for each block, each of which begins a pattern.

    A single one would be matched with no dimension of the tensor.
    """
    return extents[0] > count and extents[0] % count == extents[-2] % ROWS == 0


def ranks_of(circular: CircularBuffer, shared: Mapping[Copy, Sharing]) -> tuple[Expr, ...]:
    """Return the blocks that fill, and are filled by, a buffer's tiles; none if only one does.

    Whoever reads a version tells all of these that it is free.
    """
    sharing = (shared[c] for c in circular.copies if isinstance(c, Copy) and c in shared)
    found = [rank for one in sharing for rank in one.ranks]
    distinct: list[Expr] = []
    for rank in found:
        if not any(same_value(rank, other) for other in distinct):
            distinct.append(rank)
    return tuple(distinct)


class Dependence:
    """Which indices of the block an expression in `launch` depends on."""

    def __init__(self, launch: Launch) -> None:
        self.blocks = set(launch.block_vars)
        self.lets = {n.var: n.value for n in nodes_of(launch.body, Let)}
        self.loops = {n.var: n for n in nodes_of(launch.body, For, Pipelined)}

    def of(self, *values: Expr) -> set[Var]:
        """Return the indices of the block that may change any of `values`."""
        found: set[Var] = set()
        seen: set[Node] = set()
        stack: list[Node] = list(values)
        while stack:
            value = stack.pop()
            for node in walk(value):
                if node in seen:
                    continue
                seen.add(node)
                if isinstance(node, Load) and node.buffer.scope is not Scope.GLOBAL:
                    return set(self.blocks)
                if not isinstance(node, Var):
                    continue
                if node in self.blocks:
                    found.add(node)
                elif node in self.lets:
                    stack.append(self.lets[node])
                elif node in self.loops:
                    loop = self.loops[node]
                    stack += [as_expr(loop.start), as_expr(loop.stop)]
        return found


def control(stmt: Stmt, inside: Collection[Node]) -> Iterator[Expr]:
    """Yield what decides how often the statements `inside` run."""
    for node in nodes_of(stmt, For, Pipelined, If, While):
        if any(n in inside for n in walk(node)):
            yield from expressions_in(node)
