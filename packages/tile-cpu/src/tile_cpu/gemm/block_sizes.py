"""How much of a product is taken at a time: what the caches of a machine hold of its operands.

The model is that of Low, Igual, Smith, Quintana-Ortí, "Analytical Modeling Is Enough for
High-Performance BLIS" (2016). A panel of B stays in the first-level cache while rows of A pass, and
a block of A in the second-level cache while panels of B pass. Caches keep what was used last, so
that in each of them some ways hold what stays, and the others what passes and is used once.
"""

from __future__ import annotations

from tile_core.dtypes import dtype_of
from tile_core.records import dataclass
from tile_cpu.gemm.operands import GemmSpec


@dataclass(frozen=True, slots=True)
class BlockSizes:
    """Elements along k of one step, and the rows of a block that suit it best."""

    depth: int
    rows: int


def block_sizes(spec: GemmSpec) -> BlockSizes:
    """Return the sizes for products of `spec`.

    In the first level the ways are shared out as the widths of the panels of B and of A are, less
    one way for C. In the second, one way is for C and as many as two panels of B fill are theirs.

    Examples
    --------
    A panel of 16 columns takes 5 of the 8 ways of 4 KiB: 320 rows of it fill them.

    >>> from tile_cpu.gemm.macrokernel import plan_gemm
    >>> from tile_cpu.machine import machine
    >>> block_sizes(plan_gemm(machine("znver3"), "float32", "float32", "float32", 256, 256))
    BlockSizes(depth=320, rows=306)
    """
    machine, kernel, mr = spec.machine, spec.kernel, spec.tile.mr
    element = dtype_of(kernel.accumulator).bits // 8 if kernel.group == 1 else 4
    row = spec.panel_width * element  # of a panel of B
    way = machine.l1_bytes // machine.l1_ways
    ways = max(1, int((machine.l1_ways - 1) / (1 + mr / spec.panel_width)))
    groups = max(kernel.lanes, ways * way // row // kernel.lanes * kernel.lanes)
    way = machine.l2_bytes // machine.l2_ways
    ways = max(1, machine.l2_ways - 1 + -2 * groups * row // way)
    rows = ways * way // (groups * element) // mr * mr
    return BlockSizes(groups * kernel.group, max(mr, rows))
