"""MMAs that run beside other work of the threads that start them."""

from __future__ import annotations

import math

from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.effects import accesses, storages_written
from tile_core.ir.expr import BinaryOp, Const
from tile_core.ir.node import Node, nodes_of, substitute, walk
from tile_core.ir.stmt import Alloc, For, If, Kernel, Launch, OnThreads, Seq, Stmt
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.ops.control import GROUP
from tile_core.ops.copy import Fill
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.ops.mbarrier import BarrierArrive, SetRegisters
from tile_core.passes.overlap.accumulator_double_buffering import FreeMemory, alternating
from tile_core.passes.overlap.gemm_dependence_slices import Fills
from tile_core.passes.overlap.gemm_loop_body import (
    GemmLoopBody,
    IsAsynchronous,
    Late,
    delayed_release,
    if_any_iteration,
    is_release,
    opened,
    registers_of,
    take_apart,
    touched,
    written,
)
from tile_core.passes.overlap.skewed_pipelining import skew_iterations
from tile_core.passes.overlap.wait_sinking import sink_waits
from tile_core.passes.register_estimate import registers_held
from tile_core.records import replace
from tile_core.remarks import remark

MOST_REGISTERS = 255
"""Registers that an instruction can name."""

SPARE = 32
"""Registers of a thread that hold no tiles, where engines read operands from shared memory."""

SPARE_BYTES = 1024
"""Bytes of shared memory for barriers, and between tiles."""


GOES_ON = "MMAs of this loop stay in flight into its next iteration, which releases their tiles"
STARTS_LATE = (
    "the last MMA of an iteration of this loop is issued in the next one (skewed software "
    "pipelining): it runs with the first MMA there, and the threads' own work beside both"
)
PING_PONG = (
    STARTS_LATE + ", and two groups of warps issue their MMAs alternately (ping-pong schedule)"
)
ALTERNATES = (
    "MMAs of two iterations of this loop are in flight at a time: what an iteration makes for "
    "itself is double-buffered"
)
ENDS = (
    "MMAs of this loop complete within their iteration; they are waited for where results are "
    "needed"
)


def overlap_gemms(
    kernel: Kernel,
    is_asynchronous: IsAsynchronous,
    registers: int | None = None,
    shared_bytes: int | None = None,
) -> Kernel:
    """Return `kernel` with products of consumers in flight while these do something else.

    Before   for k:  wait full[slot];  gemm A_s[slot], B_s[slot], C_l;  arrive empty[slot]
    After    for k:  wait full[slot];  gemm (left in flight);  wait_products 1
                     if k > 0: arrive empty[freed]
             wait_products 0;  arrive empty[freed]

    In loops around circular buffers. Where nothing but the MMAs touches their registers they
    go on into the next iteration (`left_in_flight`). Where an MMA needs what the threads make
    of an earlier one, it starts one iteration late, beside that work of the next iteration
    (`skew_iterations`). Where each iteration has operands or sums of its own in registers, these
    get two versions (`alternating`). All other MMAs end with their iteration: they are waited for
    where somebody needs them (`sink_waits`). `registers` are those that the blocks running at once
    share, `shared_bytes` is the shared memory of a block; None where that is not known.
    """
    kernel = zero_init_accumulators(kernel, is_asynchronous)
    done: dict[Node, Node] = {}
    for launch in nodes_of(kernel.body, Launch):
        fills = _fills(launch)
        for consumers in nodes_of(launch.body, OnThreads):
            room = _room(consumers, launch, registers, shared_bytes)
            for loop in nodes_of(consumers.body, For):
                body = take_apart(loop, is_asynchronous)
                if body is None:
                    continue
                made, what = _scheduled(loop, body, fills, consumers, room)
                remark("analysis", "overlap_gemms", what, loop.span)
                if made is not None:
                    done[loop] = made
    return substitute(kernel, done) if done else kernel


def _scheduled(
    loop: For, body: GemmLoopBody, fills: Fills, consumers: OnThreads, room: FreeMemory
) -> tuple[Stmt | None, str]:
    """Return a loop with its MMAs beside other work, None for it as it is; and how so."""
    made = left_in_flight(loop, body)
    if made is not None:
        return made, GOES_ON
    ping_pong = consumers.count == 2 * GROUP
    made = skew_iterations(loop, body, tuple(fills), ping_pong=ping_pong)
    if made is not None:
        return made, PING_PONG if ping_pong else STARTS_LATE
    made = alternating(loop, body, fills, consumers, room)
    if made is not None:
        return made, ALTERNATES
    return sink_waits(loop, body, fills), ENDS


def _fills(launch: Launch) -> Fills:
    """Return for each buffer of barriers the tiles that are filled when one completes.

    Barriers count the bytes of copies, or threads arrive at them behind what they have written.
    """
    found: dict[Buffer, set[Buffer]] = {}
    for copy in nodes_of(launch.body, BulkCopy):
        if copy.barrier is not None:
            found.setdefault(copy.barrier.buffer, set()).add(copy.dst.buffer.storage)
    for block in nodes_of(launch.body, Seq):
        for arrive in (s for s in block.body if isinstance(s, BarrierArrive) and not s.nbytes):
            own = (s for s in block.body if not isinstance(s, BulkCopy))
            tiles = (b for s in own for b in storages_written(s))
            found.setdefault(arrive.barrier.buffer, set()).update(
                b for b in tiles if b.scope is Scope.SHARED
            )
    return {barriers: frozenset(tiles) for barriers, tiles in found.items()}


def _room(
    consumers: OnThreads, launch: Launch, registers: int | None, shared_bytes: int | None
) -> FreeMemory:
    """Return what the tiles of the consumers leave of a thread's and a block's memory."""
    tiles = [n.buffer for n in nodes_of(launch.body, Alloc)]
    if shared_bytes is not None:
        shared_bytes -= SPARE_BYTES + sum(b.nbytes or 0 for b in tiles if b.scope is Scope.SHARED)
    if registers is not None:
        own = [n.count for n in nodes_of(consumers.body, SetRegisters)]
        share = registers // (math.prod(launch.threads) * 8) * 8
        most = min([*(own or [share]), MOST_REGISTERS])
        registers = most - SPARE - registers_held(consumers.body, consumers.count)
    return FreeMemory(registers, shared_bytes)


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
    again = Seq(tuple(s for release in late for s in release.statements()))
    later = binary(BinaryOp.GT, loop.var, as_expr(loop.start))
    made += [WaitProducts(len(products)), If(later, again)]
    begin = [s for release in late for s in release.begin()]
    return Seq(
        (
            *body.outside,
            *begin,
            replace(loop, body=Seq(tuple(made))),
            WaitProducts(0),
            if_any_iteration(loop, Seq(tuple(s for r in late for s in r.statements()))),
        )
    )


def zero_init_accumulators(kernel: Kernel, is_asynchronous: IsAsynchronous) -> Kernel:
    """Return `kernel` with MMAs that set accumulators which are zero before each iteration.

    Before   fill part, 0
             for k:  gemm A_s, B_s -> part;  total += part * S;  fill part, 0
    After    for k:  gemm A_s, B_s -> part (set);  total += part * S

    No iteration then knows of another one's accumulators, so that two can be in flight. Nothing
    else in the round may write them, and nothing but one fill before the loop touches them outside
    of it.
    """
    done: dict[Node, Node] = {}
    for around in nodes_of(kernel.body, OnThreads):
        for loop in nodes_of(around.body, For):
            for product in (s for s in opened(loop.body) if isinstance(s, Gemm)):
                fills = _fills_around(product, loop, around) if is_asynchronous(product) else None
                if fills is not None:
                    done[product] = replace(product, clear=as_expr(True))
                    done.update({fill: Seq(()) for fill in fills})
    return substitute(kernel, done) if done else kernel


def _fills_around(product: Gemm, loop: For, around: OnThreads) -> tuple[Stmt, Stmt] | None:
    """Return what zeroes an MMA's accumulators, before a loop and at the end of each iteration."""
    sums = product.c.buffer
    if static_value(product.clear) != 0 or not _is_whole(product.c):
        return None
    users = [s for s in opened(loop.body) if sums in touched(s)]
    if users[0] is not product or len(users) < 2 or not _zeroes(users[-1], sums):
        return None
    if any(sums in written(s) for s in users[1:-1]):
        return None
    elsewhere = substitute(around.body, {loop: Seq(())})
    outside = [a.node for a in accesses(elsewhere) if a.buffer.storage is sums]
    if len(outside) != 1 or not _zeroes(outside[0], sums):
        return None
    fill = outside[0]
    assert isinstance(fill, Fill)
    return (fill, users[-1]) if _stands_before(around.body, fill, loop) else None


def _is_whole(region: Region) -> bool:
    """Whether a region is all of a fragment that has no other name."""
    tile = region.buffer
    return (
        tile.scope is Scope.FRAGMENT
        and tile.origin is None
        and all(static_value(s) == 0 for s in region.starts)
        and region.static_extents == tile.static_shape
    )


def _zeroes(node: Node, sums: Buffer) -> bool:
    return (
        isinstance(node, Fill)
        and node.dst.buffer is sums
        and _is_whole(node.dst)
        and isinstance(node.value, Const)
        and node.value.value == 0
    )


def _stands_before(stmt: Stmt, fill: Stmt, loop: Stmt) -> bool:
    """Whether `fill` is a statement of a sequence of which a later one holds `loop`."""
    for sequence in nodes_of(stmt, Seq):
        if any(item is fill for item in sequence.body):
            (position,) = (k for k, s in enumerate(sequence.body) if s is fill)
            return any(n is loop for item in sequence.body[position + 1 :] for n in walk(item))
    return False
