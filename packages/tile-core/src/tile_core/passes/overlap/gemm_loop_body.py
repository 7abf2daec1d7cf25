"""A loop around MMAs as a list of statements, and releases of tiles an iteration late."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, TypeGuard

from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.effects import Mode, accesses
from tile_core.ir.expr import BinaryOp, Expr, Extent, Load
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Alloc, For, If, Seq, Stmt, Store
from tile_core.ops.gemm import Gemm
from tile_core.ops.mbarrier import BarrierArrive
from tile_core.records import dataclass, replace

IsAsynchronous: TypeAlias = Callable[[Gemm], bool]
"""Whether an MMA can go on beside the threads that start it."""


@dataclass(frozen=True, slots=True)
class GemmLoopBody:
    """The statements of a loop's body, sequences in it opened.

    Those `outside` are allocations, which need not be repeated. The `products` are positions in
    `items` of MMAs that can run beside the threads.
    """

    outside: tuple[Stmt, ...]
    items: tuple[Stmt, ...]
    products: tuple[int, ...]


def take_apart(loop: For, is_asynchronous: IsAsynchronous) -> GemmLoopBody | None:
    """Return the body of a loop that goes round circular buffers; None if it is not one.

    MMAs must stand in the body itself, not in branches or loops inside of it. And all tiles
    that go round have at least two versions: while an MMA goes on, the next one is filled.
    """
    flat = list(opened(loop.body))
    items = [s for s in flat if not isinstance(s, Alloc)]
    products = [k for k, s in enumerate(items) if isinstance(s, Gemm) and is_asynchronous(s)]
    inside = [*nodes_of(loop.body, Gemm)]
    if not products or len(inside) != len(products):
        return None
    releases = [s for s in items if is_release(s)]
    if not releases or any(_versions(s) < 2 for s in releases):
        return None
    outside = tuple(s for s in flat if isinstance(s, Alloc))
    return GemmLoopBody(outside, tuple(items), tuple(products))


def opened(stmt: Stmt) -> Iterator[Stmt]:
    """Yield the statements of a sequence, sequences in it opened; releases stay together."""
    if not isinstance(stmt, Seq) or is_release(stmt):
        yield stmt
        return
    for item in stmt.body:
        yield from opened(item)


def is_release(stmt: Stmt) -> TypeGuard[Seq]:
    """Whether a statement gives tiles of a circular buffer back, and goes on to its next turn."""
    return isinstance(stmt, Seq) and bool(stmt.body) and isinstance(stmt.body[0], BarrierArrive)


def _versions(release: Seq) -> int:
    """Return how many versions the tiles have that a release gives back."""
    arrive = release.body[0]
    assert isinstance(arrive, BarrierArrive)
    return (arrive.barrier.buffer.static_shape or (0,))[0]


def registers_of(product: Stmt) -> set[Buffer]:
    """Return the fragments that an MMA reads and writes while it runs."""
    return {a.buffer.storage for a in accesses(product) if a.buffer.storage.scope is Scope.FRAGMENT}


def touched(stmt: Stmt) -> set[Buffer]:
    """Return the storages that a statement reads or writes."""
    return {a.buffer.storage for a in accesses(stmt)}


def written(stmt: Stmt) -> set[Buffer]:
    """Return the storages that a statement writes."""
    return {a.buffer.storage for a in accesses(stmt) if a.mode is not Mode.READ}


def conflict(a: Stmt, b: Stmt) -> bool:
    """Whether two statements cannot change places."""
    return bool(written(a) & touched(b)) or bool(touched(a) & written(b))


def turns_of(stmt: Stmt) -> set[Buffer]:
    """Return the scalars that say at which turn of a circular buffer a signal is."""
    return {n.storage for n in nodes_of(stmt, Buffer) if n.scope is Scope.VAR}


def if_any_iteration(loop: For, stmt: Stmt) -> Stmt:
    """Return `stmt`, where the loop had an iteration at all."""
    start, stop = static_value(loop.start), static_value(loop.stop)
    if start is not None and stop is not None and start < stop:
        return stmt
    return If(binary(BinaryOp.LT, as_expr(loop.start), as_expr(loop.stop)), stmt)


@dataclass(frozen=True, slots=True)
class Late:
    """A release that lags behind the turn of its circular buffer.

    There is one of `barriers` for each version. The `slot` holds the version to give back next,
    None if there is only one; the loop begins with the `first`, the version of the circular
    buffer's turn.
    """

    release: BarrierArrive
    barriers: Buffer
    slot: Buffer | None
    first: Extent = 0

    def begin(self) -> tuple[Stmt, ...]:
        """Return the statements before the loop."""
        if self.slot is None:
            return ()
        return (Alloc(self.slot), Store(self.slot, (as_expr(0),), as_expr(self.first)))

    def statements(self) -> tuple[Stmt, ...]:
        """Return the release, and what goes on to the next version."""
        if self.slot is None:
            return (replace(self.release),)
        here: Expr = Load(self.slot, (as_expr(0),))
        barrier = Region(self.barriers, (here,), (1,), is_element=True)
        count = static_value(self.barriers.shape[0]) or 1
        first = (as_expr(0),)
        is_last = binary(BinaryOp.EQ, here, count - 1)
        return (
            replace(self.release, barrier=barrier),
            If(is_last, Store(self.slot, first, as_expr(0)), Store(self.slot, first, here + 1)),
        )


def delayed_release(release: Seq) -> Late:
    """Return the release that `release` (see `is_release`) makes, an iteration late."""
    arrive = release.body[0]
    assert isinstance(arrive, BarrierArrive)
    barriers = arrive.barrier.buffer
    if barriers.static_shape == (1,):
        return Late(arrive, barriers, None)
    name = f"{barriers.name.removesuffix('_empty')}_freed"
    slot = Buffer(name, (1,), dtype_of("int32"), Scope.VAR)
    return Late(arrive, barriers, slot, arrive.barrier.starts[0])
