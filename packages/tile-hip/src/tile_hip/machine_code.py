"""From the printed text of a kernel to machine code for one architecture."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.codegen import PrintedSource
from tile_core.codegen.compiler_diagnostics import with_line_directives
from tile_core.toolchains.machine_code import Compiled, MachineCode
from tile_hip.code_object import resources_in, warnings_of
from tile_hip.compile_errors import refusal
from tile_hip.compiler import NAME
from tile_hip.compilers import wanted_compiler
from tile_hip.wait_state_distances import WIDER, needs_wider

CODE_OBJECTS = MachineCode(
    slower="-O1",
    refusal=refusal,
    resources=lambda output: resources_in(output.code),
    warnings_of=warnings_of,
    again=lambda output: (WIDER,) if needs_wider(output.assembly) else (),
)


def compile_source(
    source: PrintedSource,
    arch: str,
    flags: Sequence[str] = (),
    *,
    warn: bool = True,
    compiler: str = "",
) -> Compiled:
    """Compile printed kernels for `arch`, such as ``"gfx942"``.

    Parameters
    ----------
    flags
        What the user adds: options of clang.
    warn
        Tell of spilled registers and of arrays in scratch memory, as a `TileWarning` at the line
        of the kernel.
    compiler
        Which one is requested; by default what ``TILE_HIP_COMPILER`` says, else the first that
        knows `arch`: see `tile_hip.compilers`.

    Raises
    ------
    ToolchainError
        If there is no compiler for `arch`; and as `MachineCode.compile`.
    """
    chosen = wanted_compiler(arch, compiler)
    return CODE_OBJECTS.compile(chosen, source, _on_gpus(source), arch, flags, warn=warn)


def _on_gpus(source: PrintedSource) -> str:
    """Return the text for the compiler; the user's functions in plain C are for the GPU, too.

    HIP takes functions and variables that do not say where they run for the host's.
    """
    text = with_line_directives(source, NAME)
    if not any(span.file.startswith("<source ") for span in source.lines.values()):
        return text
    return "\n".join((*_C_ON_GPUS, f'#line 1 "{NAME}"', text, "#pragma clang attribute pop"))


_C_ON_GPUS = (
    '#include "tile.h"',
    "#pragma clang force_cuda_host_device begin",
    '#pragma clang diagnostic ignored "-Wpragma-clang-attribute"',  # there need be no variables
    "#pragma clang attribute push(__attribute__((device)), apply_to = variable(is_global))",
)
