"""What follows lowering on the CPU: show and compile."""

from __future__ import annotations

from typing import Any

from tile_core.logs import log
from tile_core.records import dataclass
from tile_cpu.csource import SharedLibrary, compile_c
from tile_cpu.lowering.kernel import Lowered
from tile_cpu.openmp_threads import set_num_threads
from tile_cpu.toolchain import CompiledModule, compile_module
from tile_cpu.unpicklable import Unpicklable


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
