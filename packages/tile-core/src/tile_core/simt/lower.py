"""From a tile kernel to the functions that its launches run on the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tile_core.errors import LayoutConflict, OutOfScratch
from tile_core.ir.stmt import Kernel
from tile_core.machine import SimtMachine
from tile_core.ops.rule import Rule
from tile_core.pass_manager.instrumentation import attempted
from tile_core.pass_manager.manager import PassManager
from tile_core.passes.cooperative_grids import is_cooperative
from tile_core.passes.infer_layouts import Layouts
from tile_core.records import replace
from tile_core.remarks import remark, warning_once
from tile_core.simt.lower_launches import host_steps, workspaces_of
from tile_core.simt.lowering_options import BY_DEFAULT, Choices
from tile_core.simt.pass_contexts import KernelContext
from tile_core.simt.pipeline import CHECK, GPU_PIPELINE, LAYOUT, PLAN, SPLIT
from tile_core.simt.pipeline_depth import attempts, warn_of_reduced_depth
from tile_core.simt.program import DeviceProgram
from tile_core.target import Target

NO_ROOM = (
    "results are stored from registers: what threads exchange does not fit into shared memory "
    "beside the rows"
)

BY_ITSELF = PassManager(GPU_PIPELINE)
"""Runs the passes that all GPUs have in common, and tells nobody."""


@warning_once()
def lower_kernel(
    kernel: Kernel,
    target: Target,
    machine: SimtMachine,
    rules: Sequence[Rule[Any]],
    choices: Choices = BY_DEFAULT,
    *,
    compile_flags: tuple[str, ...] = (),
    passes: PassManager = BY_ITSELF,
) -> DeviceProgram:
    """Return `kernel` as functions of single threads, one per launch.

    Before   launch (8, 8) x 128: pipelined k: copy, copy, gemm;  copy
    After    the program of thread `tid` of block (bx, by): flat buffers, device calls, loops

    Parameters
    ----------
    rules
        The ways the target runs each operator.
    choices
        What the user may forbid.
    passes
        Runs the pipeline: see `tile_core.simt.pipeline`.

    Raises
    ------
    TileError
        Whatever the machine cannot do: layouts in conflict, no rule, more shared memory than a
        block has even where loops overlap nothing.
    """

    def context(kernel: Kernel, choices: Choices) -> KernelContext:
        return KernelContext(
            target=target, machine=machine, rules=rules, choices=choices,
            has_engines=not is_cooperative(kernel),
        )  # fmt: skip

    def fitted(kernel: Kernel, choices: Choices) -> DeviceProgram:
        try:
            with attempted():
                return _lowered(kernel, context(kernel, choices), passes)
        except OutOfScratch:
            if not choices.stages_stores:
                raise
        others = context(kernel, replace(choices, stages_stores=False))
        with attempted():
            return _lowered(kernel, others, passes, has_room=False)

    kernel = passes.run(CHECK, kernel, context(kernel, choices))
    ways = (choices, replace(choices, batches_exchanges=True))
    for allowed, stages, attempt in ((way, *a) for way in ways for a in attempts(kernel, machine)):
        try:
            program = replace(fitted(attempt, allowed), compile_flags=compile_flags)
        except OutOfScratch as too_much:
            refusal = too_much  # the last one says what is needed at least
            continue
        if stages is not None:
            warn_of_reduced_depth(kernel, stages, machine)
        return program
    raise refusal


def _lowered(
    kernel: Kernel, context: KernelContext, passes: PassManager, *, has_room: bool = True
) -> DeviceProgram:
    """Return what passes make of `kernel`, if it fits."""
    kernel = passes.run(PLAN, kernel, context)
    if not has_room:
        remark("missed", "stage_epilogues", NO_ROOM)
    kernel, layouts = _laid_out(kernel, context, passes)
    steps = host_steps(kernel, layouts, context, passes)
    return DeviceProgram(kernel, context.machine, steps, layouts, workspaces_of(steps))


def _laid_out(
    kernel: Kernel, context: KernelContext, passes: PassManager
) -> tuple[Kernel, Layouts]:
    """Return layouts, and the kernel that has them: where loops are in the way, with copies."""
    try:
        kernel = passes.run(LAYOUT, kernel, context)
    except LayoutConflict as refusal:
        kernel = passes.run(SPLIT, kernel, context)
        context.is_split = True
        try:
            kernel = passes.run(LAYOUT, kernel, context)
        except LayoutConflict:  # it may name tiles that the program does not have
            raise refusal from None
    return kernel, context.results["infer_layouts"]
