"""How much of a product is taken at a time: what the caches of a machine hold of its operands.

The model is that of Low, Igual, Smith, Quintana-Ortí, "Analytical Modeling Is Enough for
High-Performance BLIS" (2016). A panel of B stays in the first-level cache while rows of A pass, and
a block of A in the second-level cache while panels of B pass. Caches keep what was used last, so
that in each of them some ways hold what stays, and the others what passes and is used once.
"""

from __future__ import annotations

from tile_cpu.gemm.operands import GemmSpec


def step_depth(spec: GemmSpec, rows: int) -> int:
    """Return how many elements along k a step of a block of `rows` takes.

    In the first level the ways are shared out as the widths of the panels of B and of A are, less
    one way for C. In the second, one way is for C, and the block of A has two panels of B beside
    it: the one in use and the next.

    Examples
    --------
    A panel of 16 columns takes 5 of the 8 ways of 4 KiB: 320 rows of it fill them. Of 256 KiB in
    8 ways, 256 rows of A and two panels fill 7 in steps of 192.

    >>> from tile_cpu.gemm.macrokernel import plan_gemm
    >>> from tile_cpu.machine import machine
    >>> types = ("float32",) * 3
    >>> [step_depth(plan_gemm(machine(m), *types, 256, 256), 256) for m in ("znver3", "haswell")]
    [320, 192]
    """
    machine, kernel = spec.machine, spec.kernel
    row = spec.panel_width * kernel.group_bytes  # of a panel of B
    ways = max(1, int((machine.l1_ways - 1) / (1 + spec.tile.mr / spec.panel_width)))
    near = ways * (machine.l1_bytes // machine.l1_ways) // row
    room = machine.l2_bytes // machine.l2_ways * max(1, machine.l2_ways - 1)
    groups = min(near, room // (rows * kernel.group_bytes + 2 * row))
    return max(1, groups // kernel.lanes) * kernel.chunk
