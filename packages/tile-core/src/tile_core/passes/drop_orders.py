"""Orders and hints to engines that a machine lacks, left out of the program."""

from __future__ import annotations

from dataclasses import replace

from tile_core.ir.expr import Call
from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import Evaluate, Kernel, Seq
from tile_core.ops.bulk_copy import FenceAsync
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.ops.mbarrier import SetRegisters

ORDERS = frozenset(
    [
        "fence_proxy_async",
        "pdl_sync",
        "pdl_trigger",
        "tma_store_arrive",
        "tma_store_wait",
        "warpgroup_arrive",
        "warpgroup_commit_batch",
    ]
)
"""Intrinsics that put the work of engines, or launches, in an order that others have anyway."""

_BESIDE = "wgmma"
"""The instruction whose products run beside their threads."""


def drop_orders(kernel: Kernel) -> Kernel:
    """Return `kernel` without what only hints, or orders what one thread does in order.

    Before   eval pdl_sync();  copy A, s;  fence_async
    After    copy A, s

    Returns the same object when there is nothing of the kind.
    """

    def rule(node: Node) -> Node:
        return Seq(()) if is_order(node) else node

    return free_products(rewrite(kernel, rule), frozenset())


def free_products(kernel: Kernel, features: frozenset[str]) -> Kernel:
    """Return `kernel` with the target's own choice where a product names what it lacks.

    Before   gemm A, B, C, instruction="wgmma";  wait_products 0
    After    gemm A, B, C

    The name says how, and that the product runs beside its threads; what is computed stays.

    Parameters
    ----------
    features
        The instructions that the machine has, by name.
    """

    def rule(node: Node) -> Node:
        if isinstance(node, WaitProducts) and _BESIDE not in features:
            return Seq(())
        if not isinstance(node, Gemm) or node.instruction is None or node.instruction in features:
            return node
        return replace(node, instruction=None)

    return rewrite(kernel, rule)


def is_order(node: Node) -> bool:
    """Whether a statement is such an order or hint."""
    if isinstance(node, (FenceAsync, SetRegisters)):
        return True
    if not isinstance(node, Evaluate):
        return False
    return isinstance(node.value, Call) and node.value.function in ORDERS
