"""Products that run beside other work of the threads that start them."""

from __future__ import annotations

from tile_core.ir.node import Node, substitute, walk
from tile_core.ir.stmt import For, Kernel, OnThreads
from tile_core.ops.group_order import GROUP
from tile_core.passes.overlap.body import RunsBeside, take_apart
from tile_core.passes.overlap.in_flight import left_in_flight
from tile_core.passes.overlap.one_round_late import started_late


def overlap_products(kernel: Kernel, runs_beside: RunsBeside) -> Kernel:
    """Return `kernel` with products of consumers under way while these do something else.

    Before   for k:  wait full[slot];  gemm A_s[slot], B_s[slot], C_l;  arrive empty[slot]
    After    for k:  wait full[slot];  gemm (left under way);  wait_products 1
                     if k > 0: arrive empty[freed]
             wait_products 0;  arrive empty[freed]

    In loops around rings of tiles. Where nothing but the products touches their registers they
    go on into the next round (`left_in_flight`). Where a product needs what the threads make
    of an earlier one, it starts one round late, beside that work of the next round
    (`started_late`). All other products are waited for where they stand.

    Parameters
    ----------
    runs_beside
        Whether a product can go on beside the threads that start it.
    """
    done: dict[Node, Node] = {}
    for consumers in (n for n in walk(kernel.body) if isinstance(n, OnThreads)):
        in_turns = consumers.count == 2 * GROUP
        for loop in (n for n in walk(consumers.body) if isinstance(n, For)):
            body = take_apart(loop, runs_beside)
            if body is None:
                continue
            made = left_in_flight(loop, body) or started_late(loop, body, in_turns=in_turns)
            if made is not None:
                done[loop] = made
    return substitute(kernel, done) if done else kernel
