"""Orders and hints to units that a machine lacks, left out of the program."""

from __future__ import annotations

from tile_core.ir.expr import Call
from tile_core.ir.gpu_intrinsics import PRODUCT_FENCES, STORE_COMMIT, STORE_WAIT
from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import Evaluate, Kernel, Seq
from tile_core.ops.bulk_copy import FenceAsync
from tile_core.ops.mbarrier import SetRegisters
from tile_core.passes.legalise_gemms import legalise_gemms

ORDERS = frozenset(
    ["fence_proxy_async", "pdl_sync", "pdl_trigger", STORE_COMMIT, STORE_WAIT, *PRODUCT_FENCES]
)
"""Intrinsics that order asynchronous work, or launches, in a way that others have anyway."""


def drop_gpu_hints(kernel: Kernel) -> Kernel:
    """Return `kernel` without what only hints, or orders what one thread does in order.

    Before   eval pdl_sync();  copy A, s;  fence_async
    After    copy A, s

    Returns the same object when there is nothing of the kind.
    """

    def rule(node: Node) -> Node:
        return Seq(()) if is_gpu_hint(node) else node

    return legalise_gemms(rewrite(kernel, rule), frozenset())


def is_gpu_hint(node: Node) -> bool:
    """Whether a statement is such an order or hint."""
    if isinstance(node, (FenceAsync, SetRegisters)):
        return True
    if not isinstance(node, Evaluate):
        return False
    return isinstance(node.value, Call) and node.value.function in ORDERS
