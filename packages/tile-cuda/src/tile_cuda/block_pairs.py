"""Pairs of blocks whose products one of the two starts: each has half of the second factor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar

from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.effects import accesses
from tile_core.ir.expr import BinaryOp, Expr, Extent
from tile_core.ir.node import Node, nodes_of, rewrite, substitute
from tile_core.ir.stmt import (
    Alloc,
    AnnotateLayout,
    Hint,
    If,
    Kernel,
    Launch,
    OnThreads,
    Pipelined,
    Seq,
    Stmt,
    Store,
)
from tile_core.ir.visitor import map_statements
from tile_core.machine import SimtMachine
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.ops.control import Barrier, ClusterSync
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.ops.mbarrier import BarrierArrive, BarrierInit, BarrierWait
from tile_core.ops.operator import ControlOperator
from tile_core.ops.region_pairing import pair
from tile_core.passes.warp_specialisation.cluster_multicast import Dependence, control
from tile_core.passes.warp_specialisation.cost_heuristic import asks_for_overlap
from tile_core.records import dataclass, replace
from tile_core.remarks import NotApplicable, remark
from tile_cuda.pair_choice import PAIR, axis_that_pays
from tile_cuda.speeds import MULTIPROCESSORS
from tile_cuda.tensor_memory import (
    LANES,
    FreeTensorMemory,
    LoadSums,
    StoreSums,
    TensorMemory,
    refusal,
)

FEATURE = "accumulator_memory_pairs"
"""Of machines on which two blocks of a cluster share products."""


_HINT = "block_pairs"
_STEP = 32  # columns of products of pairs come in multiples of it
_WARP = 32


@dataclass(frozen=True, slots=True, eq=False)
class MeetPair(ControlOperator):
    """Let the first block of a pair wait until warps of the second have come so far.

    Parameters
    ----------
    barrier
        At which warps of the second block arrive, in the memory of the first; the variable `met`
        counts how often.
    is_first
        Whether this block is the first one.
    """

    mnemonic: ClassVar[str] = "meet_pair"
    barrier: Buffer
    met: Buffer
    is_first: Expr


def choose_pairs(kernel: Kernel, machine: SimtMachine) -> Kernel:
    """Return `kernel` with a hint in launches whose blocks shall be pairs.

    Before   launch in clusters of 1 x 2:  … gemm …
    After    launch:  hint block_pairs, 1:  … gemm …

    Blocks of a cluster of two along one axis share nothing but products then: `pair_blocks` brings
    the cluster back. Launches that say nothing of clusters have pairs where these pay: see
    `axis_that_pays`.
    """
    if not machine.has(FEATURE):
        return kernel

    def rule(node: Node) -> Node:
        if not isinstance(node, Launch):
            return node
        axis: int | None = None
        if math.prod(node.cluster) == PAIR:
            axis = node.cluster.index(PAIR)
            axis = axis if _may_be_pairs(node, axis, machine) else None
        elif not node.cluster:
            axis = _axis_that_pays(node, machine)
        if axis is None:
            return node
        body = Seq((Hint(_HINT, (axis, *node.cluster)), node.body))
        return replace(node, cluster=(), body=body)

    return rewrite(kernel, rule, (Launch,))


def _may_be_pairs(launch: Launch, axis: int, machine: SimtMachine) -> bool:
    """Whether neighbours along an axis may have products together: their second factors are one."""
    products = nodes_of(launch.body, Gemm)
    if not products or any(refusal(op, machine) or op.scales for op in products):
        return False
    if nodes_of(launch.body, ClusterSync, BarrierInit):
        return False  # the program says itself what blocks tell each other
    for op in products:
        try:
            _require_shape(op)
        except NotApplicable as why:
            told = f"no pairs of blocks: {why.reason}"
            remark("missed", "choose_pairs", told, launch.span)
            return False
    tiles = {op.b.buffer.storage for op in products}
    copies = [c for c in nodes_of(launch.body, Copy) if c.dst.buffer.storage in tiles]
    depends, block = Dependence(launch), launch.block_vars[axis]
    starts = [as_expr(start) for c in copies for start in c.src.starts]
    return bool(copies) and block not in depends.of(*starts, *control(launch.body, set(products)))


def _axis_that_pays(launch: Launch, machine: SimtMachine) -> int | None:
    """Return along which axis of the grid neighbours shall be pairs, None if they shall not."""
    products = nodes_of(launch.body, Gemm)
    if not products or any(refusal(op, machine) for op in products):
        return None
    if not any(map(asks_for_overlap, nodes_of(launch.body, Pipelined))):
        return None  # nothing runs ahead: there will be no producers
    try:
        for op in products:
            _require_shape(op)
        return axis_that_pays(launch, MULTIPROCESSORS.get(machine.name, 1))
    except NotApplicable as why:
        remark("missed", "choose_pairs", f"no pairs of blocks: {why.reason}", launch.span)
        return None


def pair_blocks(kernel: Kernel) -> Kernel:
    """Return `kernel` with pairs of blocks where a hint asks for them.

    Before   tensor_memory C
             producer:  wait empty;  arrive full, bytes;  bulk_copy A_s, full;  bulk_copy B_s, full
             others:    wait full;  gemm A_s, B_s, C;  arrive empty
    After    cluster_sync;  tensor_memory C of both;  …;  cluster_sync
             producer:  wait empty;  if first: arrive full, bytes of both
                        bulk_copy A_s, full of the first;  bulk_copy half of B_s, full of the first
             others:    if first: wait full;  gemm A_s, half of B_s, C;  arrive empty

    The first block of a pair starts the products of both, and arrivals tell both that these are
    done: tiles are freed in each block by its own threads. Before products that others' loads or
    stores of sums come before, the first block waits for the second.
    """

    def rule(node: Node) -> Node:
        hints = [h for h in nodes_of(node, Hint) if h.name == _HINT]
        if not isinstance(node, Launch) or not hints:
            return node
        (hint,) = hints
        axis, *cluster = map(int, hint.values)
        plain = replace(node, body=substitute(node.body, {hint: Seq(())}), cluster=tuple(cluster))
        try:
            made = _Pairing(plain, axis).paired()
        except NotApplicable as why:
            remark("missed", "pair_blocks", f"no pairs of blocks: {why.reason}", node.span)
            return plain
        told = "pairs of blocks share products: each copies half of the second factor"
        remark("passed", "pair_blocks", told, node.span)
        return made

    return rewrite(kernel, rule, (Launch,))


class _Pairing:
    """Makes pairs of the blocks of one launch that are neighbours along `axis`."""

    def __init__(self, launch: Launch, axis: int) -> None:
        found = nodes_of(launch.body, TensorMemory)
        if not found:
            raise NotApplicable("no sums are in tensor memory")
        self.body, self.launch, (self.memory,) = launch.body, launch, found
        self.axis, self.block = axis, launch.block_vars[axis]
        self.rank = self.block % PAIR
        self.is_first = binary(BinaryOp.EQ, self.rank, 0)
        self.products = nodes_of(launch.body, Gemm)
        self.copies = [c for c in nodes_of(launch.body, BulkCopy) if c.is_load]
        self.firsts = {op.a.buffer.storage for op in self.products}
        self.seconds = {op.b.buffer.storage for op in self.products}
        self.told = {b for b in map(_told_by, self.copies) if b is not None}

    def paired(self) -> Launch:
        """Return the launch in pairs, or raise `NotApplicable` with the reason against them."""
        _multiplying(self.body)
        for op in self.products:
            self._require_product(op)
        self._require_copies()
        self._require_one_program()
        changed: dict[Node, Node] = {}
        for step in (self._halves, self._signals, self._columns):
            changed.update(step())
        body = substitute(self.body, changed)
        return replace(self.launch, body=self._with_meetings(body), cluster=self._cluster())

    def _cluster(self) -> tuple[int, ...]:
        return tuple(PAIR if k == self.axis else 1 for k in range(3))

    def _require_product(self, op: Gemm) -> None:
        if op.c.buffer not in self.memory.held or op.scales:
            raise NotApplicable("a product has scales, or its sums elsewhere than in tensor memory")
        _require_shape(op)

    def _require_copies(self) -> None:
        """Make sure that bulk copies alone fill the tiles of products, which alone read them."""
        tiles = self.firsts | self.seconds
        if self.firsts & self.seconds:
            raise NotApplicable("a tile is a first factor and a second one")
        for access in accesses(self.body):
            if access.buffer.storage in tiles and access.node not in self._users():
                name = access.buffer.storage.name
                raise NotApplicable(
                    f"{name!r} is not only copied in bulk by producers for products"
                )
        if any(hint.buffer.storage in tiles for hint in nodes_of(self.body, AnnotateLayout)):
            raise NotApplicable("the program says how tiles of products are stored")
        for copy in self.copies:
            is_other = copy.dst.buffer.storage not in tiles
            if is_other or copy.is_1d or copy.expects or copy.multicast is not None:
                raise NotApplicable(
                    f"{copy.dst.buffer.name!r} is copied in another way than factors"
                )
        if not self.copies or {c.dst.buffer.storage for c in self.copies} != tiles:
            raise NotApplicable("tiles of products are not copied in bulk by producers")

    def _users(self) -> set[Node]:
        return {*self.products, *self.copies}

    def _require_one_program(self) -> None:
        """Make sure that both blocks run the same iterations on the same second factor."""
        depends = Dependence(self.launch)
        if self.block in depends.of(*control(self.body, self._users())):
            raise NotApplicable("the two blocks of a pair may run different iterations")
        for copy in self._copies_of(self.seconds):
            if self.block in depends.of(*map(as_expr, copy.src.starts)):
                name = copy.src.buffer.name
                raise NotApplicable(f"the two blocks of a pair need different parts of {name!r}")

    def _copies_of(self, tiles: set[Buffer]) -> Iterator[BulkCopy]:
        return (c for c in self.copies if c.dst.buffer.storage in tiles)

    def _halves(self) -> dict[Node, Node]:
        """Return second factors, their copies and products with half of the columns."""
        changed: dict[Node, Node] = {}
        across = {op.b.buffer: -2 if op.transpose_b else -1 for op in self.products}
        halves = {b: replace(b, shape=_halved(b.shape, dim)) for b, dim in across.items()}
        for alloc in nodes_of(self.body, Alloc):
            if alloc.buffer in halves:
                changed[alloc] = replace(alloc, buffer=halves[alloc.buffer])
        if len(halves) != len(self.seconds) or len(changed) != len(halves):
            raise NotApplicable("tiles of second factors are parts of others")
        for op in self.products:
            half = self._half(op.b, halves, across[op.b.buffer])
            changed[op] = replace(op, b=half, is_first=self.is_first)
        for copy in self.copies:
            changed[copy] = replace(copy, tells_first=True)
            tile = copy.dst.buffer
            if tile not in halves:
                continue
            dim, extents = across[tile], copy.dst.static_extents
            if extents is None or extents[-2:] != (tile.static_shape or ())[-2:]:
                raise NotApplicable(f"{tile.name!r} is copied in parts")
            src, dst = self._own(copy, dim), self._half(copy.dst, halves, dim)
            changed[copy] = replace(copy, src=src, dst=dst, tells_first=True)
        return changed

    def _own(self, copy: BulkCopy, dim: int) -> Region:
        """Return the half of the source of a copy that this block needs."""
        pairing = pair(copy.src, copy.dst)
        moving = pairing.dst_axes[dim]
        starts, extents = list(copy.src.starts), list[Extent]()
        for k, axis in enumerate(pairing.src_axes):
            extent = as_expr(1 if axis is None else pairing.extents[axis])
            if axis == moving:
                part = int(static_value(extent) or 0) // PAIR
                starts[k] = as_expr(starts[k]) + self.rank * part
                extent = as_expr(part)
            extents.append(static_value(extent) or extent)
        return replace(copy.src, starts=tuple(starts), extents=tuple(extents), is_element=False)

    def _half(self, region: Region, halves: dict[Buffer, Buffer], dim: int) -> Region:
        extents = _halved(region.extents, dim)
        return replace(region, buffer=halves[region.buffer], extents=extents)

    def _signals(self) -> dict[Node, Node]:
        """Return arrivals and waits at barriers of tiles: the first block's count for both."""
        changed: dict[Node, Node] = {}
        seconds = list(self._copies_of(self.seconds))
        for arrive in nodes_of(self.body, BarrierArrive):
            barriers = arrive.barrier.buffer
            if barriers in self.told and arrive.nbytes:
                once = sum(_nbytes(c.dst) for c in seconds if _told_by(c) is barriers)
                both = replace(arrive, nbytes=PAIR * arrive.nbytes - once)
                changed[arrive] = If(self.is_first, both)
        for wait in nodes_of(self.body, BarrierWait):
            if wait.barrier.buffer in self.told:
                changed[wait] = If(self.is_first, wait)
        return changed

    def _columns(self) -> dict[Node, Node]:
        """Return what takes and frees columns of both blocks, and barriers between them."""
        depth = max((b.static_shape or (1,))[0] for b in self.told)
        count = max(self.memory.in_flight, _barriers_of(depth))
        old, barriers = self.memory.barriers, replace(self.memory.barriers, shape=(count,))
        changed: dict[Node, Node] = {}
        for alloc in nodes_of(self.body, Alloc):
            if alloc.buffer is old:
                changed[alloc] = replace(alloc, buffer=barriers)
        for init in nodes_of(self.body, BarrierInit):
            if init.barriers is old:
                changed[init] = BarrierInit(barriers, (1,) * count)
        taken = replace(self.memory, barriers=barriers, of_pair=True)
        changed[self.memory] = Seq((ClusterSync(), taken))  # the other block has started
        for free in nodes_of(self.body, FreeTensorMemory):
            changed[free] = replace(free, of_pair=True)
        inside = {b for part in nodes_of(self.body, OnThreads) for b in nodes_of(part, Barrier)}
        for barrier in nodes_of(self.body, Barrier):
            if barrier not in inside:
                changed[barrier] = ClusterSync()
        return changed

    def _with_meetings(self, body: Stmt) -> Stmt:
        """Return `body` with meetings in front of products, where others used sums before."""
        part = _multiplying(body)
        int32, uint64 = dtype_of("int32"), dtype_of("uint64")
        ready = Buffer("pair_ready", (1,), uint64, Scope.BARRIER)
        met = Buffer("met", (1,), int32, Scope.VAR)
        placed = _Meetings(MeetPair(ready, met, self.is_first)).visit(part.body)
        begun = Seq((Alloc(met), Store(met, (as_expr(0),), as_expr(0)), placed))
        body = substitute(body, {part: replace(part, body=begun)})
        init = BarrierInit(ready, (part.count // _WARP,))
        return Seq((Alloc(ready), init, *(body.body if isinstance(body, Seq) else (body,))))


def _require_shape(op: Gemm) -> None:
    m, n, _ = op.mnk
    if op.scales:
        raise NotApplicable("products have scales")
    if op.a.buffer.scope is not Scope.SHARED:
        raise NotApplicable(f"the first factor, {op.a.buffer.name!r}, is not in shared memory")
    if m % LANES or n % _STEP:
        raise NotApplicable(f"products are of {m} x {n}, not of multiples of {LANES} x {_STEP}")


def _multiplying(body: Stmt) -> OnThreads:
    """Return what the threads with products run; refuse a launch that has no producers."""
    inside = [p for p in nodes_of(body, OnThreads) if nodes_of(p, Gemm)]
    if len(inside) != 1:
        raise NotApplicable("there are no producers, or several groups of threads multiply")
    return inside[0]


class _Meetings:
    """Puts a meeting in front of products that come behind other uses of sums."""

    def __init__(self, meeting: MeetPair) -> None:
        self.meeting, self.is_touched = meeting, True

    def visit(self, stmt: Stmt) -> Stmt:
        """Return `stmt` with meetings."""
        touches = bool(nodes_of(stmt, LoadSums, StoreSums))
        multiplies = bool(nodes_of(stmt, Gemm))
        if touches and multiplies:
            if isinstance(stmt, Seq):
                return map_statements(stmt, self.visit)
            made = map_statements(stmt, self._part)
            self.is_touched = True
            return made
        if multiplies and self.is_touched:
            self.is_touched = False
            return Seq((self.meeting, stmt))
        self.is_touched = self.is_touched or touches
        return stmt

    def _part(self, stmt: Stmt) -> Stmt:
        """Return a branch, or a round, behind whatever others or the one before have used."""
        self.is_touched = True
        return self.visit(stmt)


def _barriers_of(depth: int) -> int:
    """Return at how many barriers products arrive in turn.

    Those of the first block may be as many ahead of what the second has seen as tiles have
    versions: no barrier may complete two phases meanwhile.
    """
    return 1 << (depth - 1).bit_length()


def _told_by(copy: BulkCopy) -> Buffer | None:
    return None if copy.barrier is None else copy.barrier.buffer


def _halved(extents: Sequence[Extent], dim: int) -> tuple[Extent, ...]:
    made = list(extents)
    made[dim] = (static_value(made[dim]) or 0) // PAIR
    return tuple(made)


def _nbytes(region: Region) -> int:
    return math.prod(region.static_extents or ()) * region.buffer.dtype.bits // 8
