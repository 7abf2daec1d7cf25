"""What follows lowering on the CPU: show and compile."""

from __future__ import annotations

from typing import Any

from tile_core.logs import log
from tile_core.records import dataclass
from tile_cpu.csource import SharedLibrary, compile_c
from tile_cpu.lowering.kernel import Lowered
from tile_cpu.openmp_threads import set_num_threads
from tile_cpu.tir.nodes import Unpicklable
from tile_cpu.toolchain import CompiledModule, compile_module


@dataclass(frozen=True, slots=True)
class CpuArtifact(Unpicklable):
    """Machine code of one kernel."""

    lowered: Lowered  # what the host must know to call it
    module: CompiledModule
    library: SharedLibrary | None  # the C functions it calls, if it brought any

    def asm(self) -> str:
        """Return the assembly."""
        return self.module.asm()


def source(lowered: Lowered) -> str:
    """Return the optimised LLVM IR of the kernel."""
    return compile_module(lowered.function, lowered.machine).source()


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
