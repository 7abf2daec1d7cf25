"""Cycles of matrix products: register tiles, panels that are packed, rows that are read."""

from __future__ import annotations

from dataclasses import dataclass

from tile_cpu.gemm.macrokernel import plan_steps
from tile_cpu.gemm.operands import GemmSpec
from tile_cpu.gemm.register_tile_shape import GemmForm, row_segments
from tile_cpu.speeds import CpuSpeeds

LATENCY = 4.0
"""Cycles until the sum of a multiply-add can be added to: an Intel or AMD core of this decade."""

TILE_CYCLES = 12.0
"""Around the inner loop of one register tile: addresses, its branch, sums that are waited for."""

PACK_VECTOR_CYCLES = 3.0
"""To bring one vector of a row of B into a panel, its elements being in the second-level cache."""

TRANSPOSE_VECTOR_CYCLES = 6.0
"""The same where B is transposed on the way: squares of 16 x 16 take 64 shuffles."""


@dataclass(frozen=True, slots=True)
class ProductCycles:
    """What one run of a product takes on one core, in cycles."""

    multiply: float  # multiply-adds, or loads of their operands where these are more
    edges: float  # sums loaded, stored and waited for around the inner loops
    pack: float  # copying operands into the form that is multiplied

    @property
    def total(self) -> float:
        """All of it: one after the other."""
        return self.multiply + self.edges + self.pack


@dataclass(frozen=True, slots=True)
class Block:
    """A product of `m` x `k` and `k` x `n` elements, and how its operands arrive."""

    m: float
    n: float
    k: float
    packs_b: bool  # B is brought into panels by the product itself
    transposed_b: bool = False  # on the way
    copies_a: bool = False


def product_cycles(speeds: CpuSpeeds, spec: GemmSpec, block: Block, steps: float) -> ProductCycles:
    """Return the cycles of one block whose k is cut into `steps`."""
    kernel, lanes = spec.kernel, spec.kernel.lanes
    groups = max(1.0, -(-block.k // kernel.group))
    vectors = max(1.0, -(-block.n // lanes))
    nv = spec.tile.nv
    panels = -(-vectors // nv)
    multiply = tiles = 0.0
    for segment in row_segments(max(1, round(block.m)), spec.tile.mr):
        width = vectors / panels
        sums = segment.size * width
        loads = (segment.size / 2 + width) / speeds.loads  # broadcasts are halves of a load
        once = max(sums / speeds.multiply_adds, loads, LATENCY)
        multiply += segment.count * panels * groups * once
        tiles += segment.count * panels
    sums_moved = block.m * vectors * (1 / speeds.loads + 1 / speeds.stores)
    edges = steps * (tiles * TILE_CYCLES + sums_moved)
    pack = 0.0
    if block.packs_b:
        each = TRANSPOSE_VECTOR_CYCLES if block.transposed_b else PACK_VECTOR_CYCLES
        pack += groups * vectors * each * (1 if kernel.group == 1 else 1.5)
    if block.copies_a:
        pack += block.m * max(1.0, groups / lanes) * PACK_VECTOR_CYCLES
    return ProductCycles(multiply, edges, pack)


def step_count(spec: GemmSpec, k: float, rows: int) -> float:
    """Return into how many steps a blocked product cuts `k`."""
    if spec.form is GemmForm.DOT_ROWS:
        return 1.0
    return float(plan_steps(spec, max(1, round(k)), rows).count)
