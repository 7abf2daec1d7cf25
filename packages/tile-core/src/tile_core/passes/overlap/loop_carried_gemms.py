"""MMAs that go on into the next iteration, where nothing else needs their registers."""

from __future__ import annotations

from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.expr import BinaryOp
from tile_core.ir.stmt import For, If, Seq, Stmt
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.passes.overlap.consumer_release import Late, delayed_release
from tile_core.passes.overlap.gemm_loop_body import (
    GemmLoopBody,
    if_any_round,
    is_release,
    registers_of,
    touched,
    written,
)
from tile_core.records import replace


def left_in_flight(loop: For, body: GemmLoopBody) -> Stmt | None:
    """Return the loop with its MMAs in flight across rounds; None if that cannot be.

    Before   for k:  wait full[slot];  gemm A_s[slot], …;  arrive empty[slot];  next slot
    After    for k:  wait full[slot];  gemm A_s[slot], … (left in flight);  next slot
                     wait_products 1;  if k > 0: arrive empty[freed];  next freed
             wait_products 0;  arrive empty[freed]

    Tiles are released one iteration late, once the MMAs that read them are over: meanwhile
    the products of this iteration are on their way. The threads themselves must write nothing that
    MMAs read, in registers or in shared memory.
    """
    products = [body.items[k] for k in body.products]
    registers: set[Buffer] = set().union(*map(registers_of, products))
    tiles = {b for p in products for b in touched(p) if b.scope is Scope.SHARED}
    others = [s for k, s in enumerate(body.items) if k not in body.products]
    if any(touched(s) & registers or written(s) & tiles for s in others):
        return None
    late: list[Late] = []
    made: list[Stmt] = []
    for k, item in enumerate(body.items):
        if isinstance(item, Gemm) and k in body.products:
            made.append(replace(item, wg_wait=-1))
        elif is_release(item) and k > body.products[0]:
            late.append(delayed_release(item))
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
