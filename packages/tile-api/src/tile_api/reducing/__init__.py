"""Making failing kernels small, so that what is left of one shows what is wrong.

>>> from tile_api.reducing import reduce_kernel
>>> from tile_core.ir.printer import print_kernel
>>> from tile_core.testing import build_ir as ir
>>> a, b = ir.tensor("A", (64,)), ir.tensor("B", (64,))
>>> big = ir.kernel([a, b], 4, lambda bx: [ir.fill(b, 1), ir.copy(a, b), ir.fill(a, 2)])
>>> small = reduce_kernel(big, lambda kernel: "@copy" in print_kernel(kernel))
>>> "@fill" in print_kernel(small)
False
"""

from __future__ import annotations

from tile_api.reducing.search import ReductionStep, reduce_kernel, reductions

__all__ = ["ReductionStep", "reduce_kernel", "reductions"]
