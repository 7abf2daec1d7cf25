"""Products that name an instruction the machine lacks are left to its own choice."""

from __future__ import annotations

from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import Kernel, Seq
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.records import replace

_ASYNC_MMA = "async_mma"
"""The instruction for asynchronous MMAs."""


def legalise_gemms(kernel: Kernel, features: frozenset[str]) -> Kernel:
    """Return `kernel` with the target's own choice where a product names what it lacks.

    Before   gemm A, B, C, instruction="async_mma";  wait_products 0
    After    gemm A, B, C

    The name says how, and that the MMA is asynchronous; what is computed stays.

    Parameters
    ----------
    features
        The instructions that the machine has, by name.
    """

    def rule(node: Node) -> Node:
        if isinstance(node, WaitProducts) and _ASYNC_MMA not in features:
            return Seq(())
        if not isinstance(node, Gemm) or node.instruction is None or node.instruction in features:
            return node
        return replace(node, instruction=None)

    return rewrite(kernel, rule, (WaitProducts, Gemm))
