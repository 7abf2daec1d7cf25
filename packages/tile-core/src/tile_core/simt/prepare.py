"""The passes on tile IR that machines of many threads need, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tile_core.errors import Note
from tile_core.ir.stmt import Kernel
from tile_core.machine import SimtMachine
from tile_core.ops.gemm import Gemm
from tile_core.ops.rule import Rule, select
from tile_core.passes.convert_operand_layouts import convert_operand_layouts
from tile_core.passes.cooperative_grids import is_cooperative
from tile_core.passes.eliminate_dead_code import eliminate_dead_code
from tile_core.passes.fence_async_reads import fence_async_reads
from tile_core.passes.fence_async_writes import fence_async_writes
from tile_core.passes.flatten_sequences import flatten_sequences
from tile_core.passes.legalise_gemms import legalise_gemms
from tile_core.passes.lower_bulk_loads import lower_bulk_loads
from tile_core.passes.lower_bulk_reductions import lower_bulk_reductions, notes_on_updates
from tile_core.passes.lower_bulk_stores import lower_bulk_stores, notes_on_stores
from tile_core.passes.mask_products import mask_products
from tile_core.passes.materialise_partial_results import materialise_partial_results
from tile_core.passes.overlap_products import overlap_products
from tile_core.passes.plan_pipelines import notes_on_copies, plan_pipelines
from tile_core.passes.specialise_warps import specialise_warps
from tile_core.passes.stage_epilogues import stage_epilogues
from tile_core.passes.swizzle_threadblocks import swizzle_threadblocks
from tile_core.recording import ran
from tile_core.simt.buffer_addresses import check_views
from tile_core.simt.choices import Choices
from tile_core.target import Target


@dataclass(frozen=True, slots=True)
class Prepared:
    """A kernel whose copies, products and stores are planned; layouts are not known yet.

    Parameters
    ----------
    notes
        What could not be done, and why; and how products overlap.
    """

    kernel: Kernel
    notes: tuple[Note, ...] = ()


def prepare(
    kernel: Kernel,
    target: Target,
    machine: SimtMachine,
    rules: Sequence[Rule[Any]],
    choices: Choices,
) -> Prepared:
    """Return `kernel` after all passes that come before layouts.

    What has no elements is left out. Blocks are given their order, copies their threads or
    their place in a pipeline, products their company, results their way to tensors. What engines
    read, and fill again, is fenced last: all that writes and reads is there by then.
    """

    def runs_beside(op: Gemm) -> bool:
        return select(op, target, rules).runs_beside

    check_views(kernel)
    notes: list[Note] = []
    # What threads have written before a barrier of the grid, engines would not see behind it.
    has_engines = not is_cooperative(kernel)
    specialises = choices.specialises and has_engines
    kernel = ran(materialise_partial_results, ran(legalise_gemms, kernel, machine.features))
    kernel = ran(swizzle_threadblocks, ran(eliminate_dead_code, kernel))
    kernel = ran(mask_products, kernel, runs_beside)
    if specialises:
        special = ran(specialise_warps, kernel, machine, runs_beside)
        notes += special.notes
        if special.kernel is not kernel:
            limits = machine.multiprocessor
            registers = None if limits is None else limits.registers
            beside = ran(
                overlap_products, special.kernel, runs_beside, registers, machine.shared_bytes
            )
            notes += beside.notes
            kernel = beside.kernel
    notes += notes_on_copies(kernel, machine)
    kernel = ran(plan_pipelines, kernel, machine, folded=choices.folds_pipelines)
    kernel = ran(convert_operand_layouts, kernel, target, rules, machine)
    if choices.stages_stores:
        stores = ran(stage_epilogues, kernel, machine)
        notes += stores.notes
        kernel = stores.kernel
    if has_engines:
        kernel = ran(lower_bulk_loads, kernel, machine)
    if specialises:
        notes += (*notes_on_stores(kernel, machine), *notes_on_updates(kernel, machine))
        kernel = ran(lower_bulk_reductions, ran(lower_bulk_stores, kernel, machine), machine)
    kernel = ran(fence_async_writes, ran(fence_async_reads, kernel, runs_beside), runs_beside)
    kernel = ran(flatten_sequences, kernel)
    return Prepared(kernel, tuple(notes))
