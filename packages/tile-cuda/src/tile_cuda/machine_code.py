"""From the printed text of a kernel to machine code for one architecture."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.codegen import PrintedSource
from tile_core.codegen.compiler_diagnostics import with_line_directives
from tile_core.toolchains.machine_code import Compiled, MachineCode
from tile_cuda.compile_errors import NAME, parse_resources, refusal, warnings_of
from tile_cuda.compilers import wanted_compiler
from tile_cuda.wgmma_shapes import shape_flags

CUBINS = MachineCode(
    slower="-O0",  # of the assembler
    refusal=refusal,
    resources=lambda output: parse_resources(output.log),
    warnings_of=warnings_of,
)


def compile_source(
    source: PrintedSource,
    arch: str,
    flags: Sequence[str] = (),
    *,
    warn: bool = True,
    compiler: str = "",
) -> Compiled:
    """Compile printed kernels for `arch`, such as ``"sm_80"``.

    Parameters
    ----------
    flags
        What the user adds: options of NVRTC, or of nvcc where NVRTC has the same.
    warn
        Tell of spilled registers and of what the assembler gave up, as a `TileWarning` at the
        line of the kernel.
    compiler
        ``"nvrtc"``, ``"nvcc"`` or the path of an nvcc; by default what ``TILE_CUDA_COMPILER``
        says, else the first that knows `arch`: see `tile_cuda.compilers`.

    Raises
    ------
    ToolchainError
        If there is no compiler for `arch`; and as `MachineCode.compile`.
    """
    chosen, text = wanted_compiler(arch, compiler), with_line_directives(source, NAME)
    options = (*shape_flags(source.text), *flags)
    return CUBINS.compile(chosen, source, text, arch, options, warn=warn)
