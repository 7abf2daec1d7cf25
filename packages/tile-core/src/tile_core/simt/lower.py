"""From a tile kernel to the functions that its launches run on the device."""

from __future__ import annotations

from tile_core.errors import LayoutConflict, OutOfScratch
from tile_core.ir.stmt import Kernel
from tile_core.pass_manager.instrumentation import attempted
from tile_core.pass_manager.manager import PassManager
from tile_core.remarks import warning_once
from tile_core.simt.lower_launches import host_steps, workspaces_of
from tile_core.simt.lowering_attempts import Attempt, Way, attempts
from tile_core.simt.pass_contexts import KernelContext
from tile_core.simt.pipeline import CHECK, GPU_PIPELINE, LAYOUT, PLAN, SPLIT
from tile_core.simt.program import DeviceProgram

BY_ITSELF = PassManager(GPU_PIPELINE)
"""Runs the passes that all GPUs have in common, and tells nobody."""


@warning_once()
def lower_kernel(
    kernel: Kernel, context: KernelContext, passes: PassManager = BY_ITSELF
) -> DeviceProgram:
    """Return `kernel` as functions of single threads, one per launch.

    Before   launch (8, 8) x 128: pipelined k: copy, copy, gemm;  copy
    After    the program of thread `tid` of block (bx, by): flat buffers, device calls, loops

    `context` has the machine, the ways it runs each operator, and what the user may forbid.

    Raises
    ------
    TileError
        Whatever the machine cannot do: layouts in conflict, no rule, more shared memory than a
        block has even where loops overlap nothing.
    """
    kernel = passes.run(CHECK, kernel, context)
    refused: set[Way] = set()
    for attempt in attempts(kernel, context):
        if attempt.way in refused:
            continue
        try:
            with attempted():
                program = _lowered(attempt, passes)
        except OutOfScratch as too_much:
            refusal = too_much  # the last one says what is needed at least
            refused.update(attempt.alike(too_much))
            continue
        attempt.warn_of_depth()
        return program
    raise refusal


def _lowered(attempt: Attempt, passes: PassManager) -> DeviceProgram:
    """Return what passes make of a kernel, if it fits."""
    context = attempt.context
    kernel = passes.run(PLAN, attempt.kernel, context)
    attempt.remark_on_stores()
    kernel = _laid_out(kernel, context, passes)
    layouts = context.results["infer_layouts"]
    steps = host_steps(kernel, layouts, context, passes)
    return DeviceProgram(kernel, context.machine, steps, layouts, workspaces_of(steps))


def _laid_out(kernel: Kernel, context: KernelContext, passes: PassManager) -> Kernel:
    """Find layouts; return the kernel that has them: where loops are in the way, with copies."""
    try:
        return passes.run(LAYOUT, kernel, context)
    except LayoutConflict as refusal:
        kernel = passes.run(SPLIT, kernel, context)
        context.is_split = True
        try:
            return passes.run(LAYOUT, kernel, context)
        except LayoutConflict:  # it may name tiles that the program does not have
            raise refusal from None
