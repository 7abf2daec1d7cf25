"""Products that go on into the next round, where nothing else needs their registers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tile_core.dtypes import dtype_of
from tile_core.ir.arith import as_expr, binary
from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.expr import BinaryOp, Expr, Extent, Load
from tile_core.ir.stmt import Alloc, For, If, Seq, Stmt, Store
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.ops.mbarrier import BarrierArrive
from tile_core.passes.overlap.body import Body, if_any_round, is_release, registers_of, touched


def left_in_flight(loop: For, body: Body) -> Stmt | None:
    """Return the loop with its products under way across rounds; None if that cannot be.

    Before   for k:  wait full[slot];  gemm A_s[slot], …;  arrive empty[slot];  next slot
    After    for k:  wait full[slot];  gemm A_s[slot], … (left under way);  next slot
                     wait_products 1;  if k > 0: arrive empty[freed];  next freed
             wait_products 0;  arrive empty[freed]

    Tiles are given back one round late, once the products that read them are over: meanwhile
    the products of this round are on their way.
    """
    products = [body.items[k] for k in body.products]
    registers: set[Buffer] = set().union(*map(registers_of, products))
    others = [s for k, s in enumerate(body.items) if k not in body.products]
    if any(touched(s) & registers for s in others):
        return None
    late: list[_Late] = []
    made: list[Stmt] = []
    for k, item in enumerate(body.items):
        if isinstance(item, Gemm) and k in body.products:
            made.append(replace(item, wg_wait=-1))
        elif is_release(item) and k > body.products[0]:
            late.append(_late(item))
            made += item.body[1:]
        else:
            made.append(item)
    again = Seq(tuple(s for release in late for s in release.give_back()))
    later = binary(BinaryOp.GT, loop.var, as_expr(loop.start))
    made += [WaitProducts(len(products)), If(later, again)]
    begin = [s for release in late for s in release.begin()]
    return Seq(
        (
            *body.outside,
            *begin,
            replace(loop, body=Seq(tuple(made))),
            WaitProducts(0),
            if_any_round(loop, Seq(tuple(s for r in late for s in r.give_back()))),
        )
    )


@dataclass(frozen=True, slots=True)
class _Late:
    """A release that lags behind the turn of its ring.

    Parameters
    ----------
    barriers
        One for each version.
    slot
        The version to give back next; None if there is only one.
    first
        The version of the ring's turn, which the loop begins with.
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


def _late(release: Seq) -> _Late:
    arrive = release.body[0]
    assert isinstance(arrive, BarrierArrive)
    barriers = arrive.barrier.buffer
    if barriers.static_shape == (1,):
        return _Late(arrive, barriers, None)
    name = f"{barriers.name.removesuffix('_empty')}_freed"
    slot = Buffer(name, (1,), dtype_of("int32"), Scope.VAR)
    return _Late(arrive, barriers, slot, arrive.barrier.starts[0])
