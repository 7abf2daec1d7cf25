"""Tiles that are released an iteration after they were read."""

from __future__ import annotations

from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.expr import BinaryOp, Expr, Extent, Load
from tile_core.ir.stmt import Alloc, If, Seq, Stmt, Store
from tile_core.ops.mbarrier import BarrierArrive
from tile_core.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Late:
    """A release that lags behind the turn of its circular buffer.

    Parameters
    ----------
    barriers
        One for each version.
    slot
        The version to give back next; None if there is only one.
    first
        The version of the circular buffer's turn, which the loop begins with.
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

    def give_back(self) -> tuple[Stmt, ...]:
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
    """Return the release that `release` (see `body.is_release`) makes, an iteration late."""
    arrive = release.body[0]
    assert isinstance(arrive, BarrierArrive)
    barriers = arrive.barrier.buffer
    if barriers.static_shape == (1,):
        return Late(arrive, barriers, None)
    name = f"{barriers.name.removesuffix('_empty')}_freed"
    slot = Buffer(name, (1,), dtype_of("int32"), Scope.VAR)
    return Late(arrive, barriers, slot, arrive.barrier.starts[0])
