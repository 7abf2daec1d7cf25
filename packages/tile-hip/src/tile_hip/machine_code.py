"""From the printed text of a kernel to machine code for one architecture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tile_core.codegen import PrintedSource
from tile_core.codegen.complaints import line_of_kernel, with_line_directives
from tile_core.logs import log
from tile_core.pass_manager.instrumentation import timed
from tile_core.remarks import warn
from tile_core.simt.resources import Resources
from tile_core.toolchains.retry import built_despite_crash
from tile_hip.code_object import resources_in
from tile_hip.compile_errors import refusal
from tile_hip.compiler import NAME
from tile_hip.compilers import wanted_compiler
from tile_hip.distances import WIDER, needs_wider
from tile_hip.metadata import warnings_of


@dataclass(frozen=True, slots=True)
class Compiled:
    """Machine code of one translation unit.

    Parameters
    ----------
    arch
        What it runs on.
    code_object
        The code (hsaco), as the driver loads it.
    assembly
        The instructions it was made from.
    resources
        What each kernel needs, by its symbol.
    compiler
        Name and version.
    log
        All that the compiler said.
    """

    arch: str
    code_object: bytes
    assembly: str
    resources: Mapping[str, Resources]
    compiler: str
    log: str


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
        If there is no compiler for `arch`, or it refuses the text: at the user's line that the
        first refused line was printed for, with the compiler's words.
    """
    chosen = wanted_compiler(arch, compiler)
    log("toolchain", lambda: f"{chosen.name} translates a kernel for {arch}")
    text = _on_gpus(source)
    with timed(chosen.name, "tool", arch=arch):
        build = partial(chosen.build, text, arch)
        output = built_despite_crash(build, source, flags, "-O1")
    if not output.is_accepted:
        raise refusal(source, output.log, chosen.name, arch)
    if needs_wider(output.assembly):
        with timed(chosen.name, "tool", arch=arch):
            output = chosen.build(text, arch, (*flags, WIDER))
    resources = resources_in(output.code)
    if warn:
        _warn(source, resources)
    return Compiled(arch, output.code, output.assembly, resources, chosen.name, output.log)


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


def _warn(source: PrintedSource, resources: Mapping[str, Resources]) -> None:
    for name, needs in resources.items():
        for text in warnings_of(needs):
            warn(text, source.span_at(line_of_kernel(source, name)), pass_name="compile_source")
