"""Second factors that are packed once per column of blocks, before the blocks that read them."""

from __future__ import annotations

import math
from typing import Any

from tile_core.ir.buffer import static_value
from tile_core.ir.build_expr import as_expr
from tile_core.ir.free_variables import free_variables
from tile_core.ir.stmt import Launch
from tile_core.records import dataclass
from tile_cpu.gemm.macrokernel import KSteps, plan_gemm, plan_steps
from tile_cpu.gemm.operands import GemmSpec, PackedB, packed_b, round_up
from tile_cpu.gemm.packing import emit_pack_b
from tile_cpu.gemm.register_tile_shape import GemmForm
from tile_cpu.lowering.context import Context
from tile_cpu.lowering.matrices import element_name, exists, matrix_of, valid_extent
from tile_cpu.ops import BlockedGemm
from tile_cpu.passes.merge_gemm_blocks import column_axis, named_in, only_product
from tile_cpu.tir.build import i32
from tile_cpu.tir.nodes import PrimExpr, Stmt
from tile_cpu.vectors import ceil_div, floor_div, minimum, opaque

SHARE = 2
"""Panels take one part in so many of the last-level cache; the rest is for A and C."""

FEWEST_ROWS = 4
"""Of blocks, that share: all threads wait for panels, which fewer rows do not pack often enough."""


@dataclass(frozen=True, slots=True)
class SharedPanels:
    """The second factor of a launch in panels, of so many columns of blocks at a time."""

    product: BlockedGemm
    axis: int  # of the grid, which moves columns
    columns: int  # of blocks, packed together
    depth: int  # along k
    spec: GemmSpec
    steps: KSteps
    packed: PackedB
    allocation: list[Stmt]

    @property
    def parts(self) -> int:
        """Into how many parts a column of blocks is packed: its steps along k."""
        return int(self.steps.count)

    def column(self, index: Any) -> PackedB:
        """Return the panels of one column of blocks out of those that are packed together."""
        return self.packed.moved(index * ceil_div(self.product.mn[1], self.spec.panel_width), 0)

    def pack(self, ctx: Context, index: PrimExpr, part: PrimExpr) -> Stmt:
        """Return what packs a part of the column that the grid's variable stands for."""
        op, steps, group = self.product, self.steps, self.spec.kernel.group
        k0, before = opaque("k0", part * i32(steps.step))
        for statement in before:
            ctx.run(statement)
        b = matrix_of(ctx, op.b, op.b_rows)
        is_even = self.depth == self.parts * steps.step
        return emit_pack_b(
            self.spec,
            b.moved(0, k0) if op.transpose_b else b.moved(k0, 0),
            self.column(index).moved(0, floor_div(k0, group)),
            steps.capacity,
            op.mn[1],
            transposed=op.transpose_b,
            k_valid=None if is_even else minimum(i32(self.depth) - k0, steps.step),
            n_valid=valid_extent(ctx, op.b, op.b_rows if op.transpose_b else op.b.buffer.rank - 1),
        )


def shared_panels(ctx: Context, launch: Launch) -> SharedPanels | None:
    """Return the panels that the blocks of `launch` share, None if each packs its own.

    They share them if all they do is one product of known extents, there are enough rows of
    blocks, nothing but the columns of the grid moves the second factor, and the machine does not
    rather pack it while it multiplies.
    """
    op = only_product(launch)
    counts = [static_value(extent) or 0 for extent in launch.grid]
    axis = None if op is None else column_axis(launch, op)
    if op is None or axis is None or not all(counts):
        return None
    rows, depth = math.prod(counts) // counts[axis], static_value(op.k) or 0
    moves = {var for start in op.b.starts for var in free_variables(as_expr(start))}
    if rows < FEWEST_ROWS or not depth or len(moves.intersection(launch.block_vars)) > 1:
        return None
    if moves.intersection(named_in(launch)):  # panels are packed before the blocks name anything
        return None
    (m, n), types = op.mn, (element_name(op.a), element_name(op.b), str(op.accumulator))
    spec = plan_gemm(ctx.machine, *types, m, n, transposed_b=op.transpose_b)
    if spec.form is not GemmForm.PANELS or n % spec.kernel.chunk:
        return None
    if ctx.machine.packs_in_kernel and spec.kernel.group == 1 and not op.transpose_b:
        return None
    width = round_up(n, spec.panel_width)
    room = ctx.machine.l3_bytes // SHARE
    size = width * ceil_div(depth, spec.kernel.group) * spec.kernel.group_bytes
    if size > room or exists(ctx, op.b, op.b_rows) is not None:
        return None
    groups = math.ceil(counts[axis] / (room // size))
    columns = math.ceil(counts[axis] / groups)
    steps = plan_steps(spec, depth, m)
    packed, allocation = packed_b(spec, steps.capacity * int(steps.count), width * columns)
    return SharedPanels(op, axis, columns, depth, spec, steps, packed, allocation)
