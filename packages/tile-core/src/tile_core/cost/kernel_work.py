"""What a kernel computes and moves, counted on its tile IR: operators stay whole.

Counting is linear in the text of the kernel: each statement costs what one run of it does, times
how often it runs. Every machine's model begins here.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from tile_core.arith.evaluate_arrays import Unknown
from tile_core.cost.arithmetic import arithmetic_of
from tile_core.cost.iteration_spaces import Factor, Space
from tile_core.cost.statement_walk import Visitor, visit
from tile_core.ir.buffer import Buffer, Region, static_value
from tile_core.ir.expr import AddressOf, Call, Expr, Extent, Load, Ramp
from tile_core.ir.node import nodes_of, walk
from tile_core.ir.stmt import Evaluate, Launch, Let, Stmt, Store
from tile_core.ops.operator import TileOperator
from tile_core.ops.reducer import ReducerUpdate


@dataclass(frozen=True, slots=True)
class Access:
    """One place in a kernel that reads a tensor or writes one.

    All runs of it together touch `nbytes` of the storage `tensor`, each block and iteration on
    its own, in boxes that begin at `starts`, in elements.
    """

    tensor: Buffer
    nbytes: float
    is_write: bool
    starts: tuple[Extent, ...]
    space: Space


@dataclass(slots=True)
class Work:
    """What one launch computes and moves.

    `products` has operations of matrix products by the element type of the operands;
    `operations` are other ones on floats, `functions` values of transcendental functions.
    `scratch` has bytes that operators and loops read and write in tiles, by the name of the
    scope. `notes` tell what had to be assumed.
    """

    products: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    operations: float = 0.0
    functions: float = 0.0
    scratch: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    accesses: list[Access] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)

    def nbytes(self, *, is_write: bool) -> float:
        """Bytes of tensors that blocks read, or write."""
        return math.fsum(a.nbytes for a in self.accesses if a.is_write is is_write)

    def flops(self) -> dict[str, float]:
        """Operations by kind, as `Estimate.flops` has them."""
        kinds = {f"{dtype} products": n for dtype, n in self.products.items()}
        return {**kinds, "arithmetic": self.operations, "functions": self.functions}


def tensor_bytes(tensor: Buffer, space: Space) -> float:
    """Return the size of a tensor."""
    extents = [space.constant(extent) or 0 for extent in tensor.shape]
    return math.prod(extents) * tensor.dtype.bits / 8


def count_launch(launch: Launch, space: Space) -> Work:
    """Return the work of all blocks of `launch`."""
    counting = _Counting()
    visit(launch, space, counting)
    return counting.work


class _Counting(Visitor):
    def __init__(self) -> None:
        self.work = Work()

    def note(self, text: str) -> None:
        self.work.notes[text] = None

    def leaf(self, stmt: Stmt, space: Space) -> None:
        match stmt:
            case TileOperator():
                self._operator(stmt, space)
            case Store(buffer=buffer, indices=indices, value=value):
                self._value(value, space)
                self._element(buffer, indices, space, is_write=True)
            case ReducerUpdate(value=value):
                self._value(value, space)
                self.work.operations += space.total()
            case Let(value=value) | Evaluate(value=value):
                self._value(value, space)

    def condition(self, cond: Expr, space: Space) -> None:
        self._value(cond, space)

    # Operators -------------------------------------------------------------------------------

    def _operator(self, op: TileOperator, space: Space) -> None:
        work = op.work()
        if work.product:
            self.work.products[work.operands] += 2 * _volume(work.product, space)
        if work.elements:
            elements = _volume(work.elements, space)
            self.work.operations += work.operations * elements
            self.work.functions += work.functions * elements
        reads, writes = work.touched or (op.reads(), op.writes())
        if work.gathered:
            elements = _volume(work.gathered, space)
            for region in reads:
                nbytes = elements * region.buffer.dtype.bits / 8
                self._touch(region.buffer, nbytes, (), space, is_write=False)
        else:
            self._regions(reads, space, is_write=False)
        self._regions(writes, space, is_write=True)

    def _regions(self, regions: Iterable[Region], space: Space, *, is_write: bool) -> None:
        for region in regions:
            nbytes = region_elements(region, space) * region.buffer.dtype.bits / 8
            self._touch(region.buffer, nbytes, region.starts, space, is_write=is_write)

    def _touch(
        self,
        buffer: Buffer,
        nbytes: float,
        starts: tuple[Extent, ...],
        space: Space,
        *,
        is_write: bool,
    ) -> None:
        if buffer.scope.is_global:
            access = Access(buffer.storage, nbytes, is_write, starts, space)
            self.work.accesses.append(access)
        else:
            self.work.scratch[buffer.scope.value] += nbytes

    # Elements --------------------------------------------------------------------------------

    def _value(self, value: Expr, space: Space) -> None:
        times = space.total()
        found = arithmetic_of(value)
        self.work.operations += found.operations * times
        self.work.functions += found.functions * times
        atomics = {a for n in nodes_of(value, Call) for a in n.args}
        for node in walk(value):
            if isinstance(node, Load):
                self._element(node.buffer, node.indices, space, is_write=False)
            elif isinstance(node, AddressOf) and node in atomics:
                for is_write in (False, True):
                    if ("w" if is_write else "r") in node.access:
                        self._element(node.buffer, node.indices, space, is_write=is_write)

    def _element(
        self, buffer: Buffer, indices: tuple[Expr, ...], space: Space, *, is_write: bool
    ) -> None:
        lanes = indices[-1].dtype.lanes if indices else 1
        starts = tuple(i.base if isinstance(i, Ramp) else i for i in indices)
        size = buffer.dtype.bits / 8 * lanes
        if not buffer.scope.is_global:
            self._touch(buffer, space.total() * size, (), space, is_write=is_write)
            return
        inside = tuple(
            Factor((i, n), lambda i, n: (i >= 0) & (i < n))
            for i, n in zip(starts, buffer.shape, strict=True)
        )
        try:
            fewer = space if is_write else _distinct(space, starts)
            times = fewer.total(*inside)
        except Unknown:
            times = space.total()
        self._touch(buffer, times * size, starts, space, is_write=is_write)


def region_elements(region: Region, space: Space) -> float:
    """Return how many elements of tensors and tiles all runs touch; none lie outside tensors."""
    if not region.buffer.scope.is_global:
        return _volume(region.extents, space)
    factors = tuple(
        Factor(
            (start, extent, n),
            lambda s, e, n: np.maximum(np.minimum(s + e, n) - np.maximum(s, 0), 0),
        )
        for start, extent, n in zip(region.starts, region.extents, region.buffer.shape, strict=True)
    )
    try:
        return space.total(*factors)
    except Unknown:
        return _volume(region.extents, space)


def _volume(extents: Iterable[Extent], space: Space) -> float:
    """Return the sum of the volumes of a box over all points of a space."""
    fixed, varying = 1.0, []
    for extent in extents:
        number = static_value(extent)
        if number is None:
            varying.append(Factor((extent,), lambda n: n))
        else:
            fixed *= number
    return fixed * space.total(*varying)


def _distinct(space: Space, indices: Iterable[Extent]) -> Space:
    """Return the space without the elements of a tile that do not choose what is read."""
    reach = space.reach(*indices)
    kept = tuple(a for a in space.axes if not a.is_element or a.var in reach)
    own = {a.var for a in kept}
    conditions = tuple(c for c in space.conditions if space.reach(*c.inputs) <= own)
    return replace(space, axes=kept, conditions=conditions, cache={})


def total_traffic(works: Iterable[Work]) -> Mapping[str, float]:
    """Return the bytes of tensors that launches read and write, as `Estimate.nbytes` has them."""
    found = list(works)
    return {
        "global reads": math.fsum(w.nbytes(is_write=False) for w in found),
        "global writes": math.fsum(w.nbytes(is_write=True) for w in found),
    }
