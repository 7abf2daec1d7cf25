"""Products that run beside other work of the threads that start them."""

from __future__ import annotations

from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import For, Kernel
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

    def rule(node: Node) -> Node:
        body = take_apart(node, runs_beside) if isinstance(node, For) else None
        if body is None or not isinstance(node, For):
            return node
        return left_in_flight(node, body) or started_late(node, body) or node

    return rewrite(kernel, rule)
