"""Products that name an instruction the machine lacks are left to its own choice."""

from __future__ import annotations

from tile_core.ir.stmt import Kernel, Seq
from tile_core.ir.visitor import map_nodes
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.records import replace


def legalise_gemms(kernel: Kernel, features: frozenset[str]) -> Kernel:
    """Return `kernel` with the target's own choice where a product names what it lacks.

    Before   gemm A, B, C, instruction="async_mma";  wait_products 0
    After    gemm A, B, C

    The name says how, and that the MMA is asynchronous; what is computed stays.
    """

    def legal(product: Gemm) -> Gemm:
        if product.instruction is None or product.instruction in features:
            return product
        return replace(product, instruction=None)

    if "async_mma" not in features:
        kernel = map_nodes(kernel, WaitProducts, lambda wait: Seq(()))
    return map_nodes(kernel, Gemm, legal)
