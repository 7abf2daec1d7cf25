"""What follows lowering on the CPU: show and compile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tile_core.logs import log
from tile_core.records import dataclass
from tile_cpu.csource import SharedLibrary, compile_c
from tile_cpu.lowering.kernel import Lowered
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

    Its loops run on the number of threads in `options`, out of those that all kernels share.
    """
    library = None
    if lowered.kernel.sources:
        flags = tuple(options.compile_flags)
        library = compile_c(lowered.kernel.sources, lowered.extern_names, flags)
    name, arch = lowered.kernel.name, lowered.machine.name
    log("toolchain", lambda: f"LLVM in TVM translates {name} for {arch}")
    module = replace(compile_module(lowered.function, lowered.machine), threads=options.threads)
    return CpuArtifact(lowered, module, library)
