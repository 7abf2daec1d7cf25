"""From a tile kernel to one function of TVM's IR."""

from __future__ import annotations

from typing import Any

from tile_core.ir.stmt import Kernel
from tile_core.passes.infer_layouts import infer_layouts
from tile_core.target import Target
from tile_cpu.lowering.buffer_addresses import admits_in
from tile_cpu.lowering.kernel import Lowered, lower_kernel
from tile_cpu.lowering.storage import require_scratch
from tile_cpu.machine import machine
from tile_cpu.tir.definitions import verify_definitions

UNGUARDED = "tl.disable_safe_memory_legalize"


def lower(kernel: Kernel, target: Target, options: Any) -> Lowered:
    """Choose rules for operators and layouts for tiles, then emit the kernel as one function."""
    require_scratch(kernel)
    layouts = infer_layouts(kernel, target, options.rules, admits_in(kernel))
    guarded = not options.config(UNGUARDED, False)
    lowered = lower_kernel(kernel, machine(target.arch), target, layouts, guarded=guarded)
    if options.verify_each:
        verify_definitions(lowered.function)
    return lowered
