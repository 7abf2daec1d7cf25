"""The stages of the CPU backend: lower, show, compile."""

from __future__ import annotations

from typing import Any

from tile_core.ir.stmt import Kernel
from tile_core.logs import log
from tile_core.passes.infer_layouts import infer_layouts
from tile_core.records import dataclass
from tile_core.target import Target
from tile_cpu.csource import SharedLibrary, compile_c
from tile_cpu.lowering.kernel import Lowered, lower_kernel
from tile_cpu.lowering.layouts import admits_in
from tile_cpu.machine import machine
from tile_cpu.openmp_threads import set_num_threads
from tile_cpu.scratch import require_scratch
from tile_cpu.tir.definitions import verify_definitions
from tile_cpu.toolchain import CompiledModule, compile_module
from tile_cpu.unpicklable import Unpicklable

UNGUARDED = "tl.disable_safe_memory_legalize"


@dataclass(frozen=True, slots=True)
class CpuArtifact(Unpicklable):
    """Machine code of one kernel.

    Parameters
    ----------
    lowered
        What the host must know to call it.
    module
        The compiled function.
    library
        The C functions it calls, if it brought any.
    """

    lowered: Lowered
    module: CompiledModule
    library: SharedLibrary | None = None

    def asm(self) -> str:
        """Return the assembly."""
        return self.module.asm()


def lower(kernel: Kernel, target: Target, options: Any) -> Lowered:
    """Choose rules for operators and layouts for tiles, then emit the kernel as one function."""
    require_scratch(kernel)
    layouts = infer_layouts(kernel, target, options.rules, admits_in(kernel))
    guarded = not options.config(UNGUARDED, False)
    lowered = lower_kernel(kernel, machine(target.arch), target, layouts, guarded=guarded)
    if options.verify_each:
        verify_definitions(lowered.function)
    return lowered


def source(lowered: Lowered) -> str:
    """Return the optimised LLVM IR of the kernel."""
    return compile_module(lowered.function, lowered.machine).source("ll")


def compile_kernel(lowered: Lowered, options: Any) -> CpuArtifact:
    """Compile the kernel, and first the C text it brings along.

    A thread count in `options` becomes that of the whole process: loops of all kernels
    share one set of threads.
    """
    if options.threads:
        set_num_threads(options.threads)
    library = None
    if lowered.kernel.sources:
        flags = tuple(options.compile_flags)
        library = compile_c(lowered.kernel.sources, lowered.extern_names, flags)
    name, arch = lowered.kernel.name, lowered.machine.name
    log("toolchain", lambda: f"LLVM in TVM translates {name} for {arch}")
    return CpuArtifact(lowered, compile_module(lowered.function, lowered.machine), library)
