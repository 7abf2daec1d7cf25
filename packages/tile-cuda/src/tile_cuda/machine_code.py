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
from tile_cuda.compile_errors import NAME, refusal
from tile_cuda.compile_log import parse_resources, warnings_of
from tile_cuda.compilers import wanted_compiler
from tile_cuda.wgmma_shapes import shape_flags


@dataclass(frozen=True, slots=True)
class Compiled:
    """Machine code of one translation unit.

    Parameters
    ----------
    arch
        What it runs on.
    cubin
        The code, as the driver loads it.
    ptx
        The assembly of the virtual machine that it was made from.
    resources
        What each kernel needs, by its symbol.
    compiler
        Name and version.
    log
        All that the compiler said.
    """

    arch: str
    cubin: bytes
    ptx: str
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
        If there is no compiler for `arch`, or it refuses the text: at the user's line that the
        first refused line was printed for, with the compiler's words.
    """
    chosen = wanted_compiler(arch, compiler)
    log("toolchain", lambda: f"{chosen.name} translates a kernel for {arch}")
    options = (*shape_flags(source.text), *flags)
    text = with_line_directives(source, NAME)
    with timed(chosen.name, "tool", arch=arch):
        build = partial(chosen.build, text, arch)
        output = built_despite_crash(build, source, options, "-O0")
    if not output.is_accepted:
        raise refusal(source, output.log, chosen.name, arch)
    resources = parse_resources(output.log)
    if warn:
        _warn(source, resources)
    return Compiled(arch, output.cubin, output.ptx, resources, chosen.name, output.log)


def _warn(source: PrintedSource, resources: Mapping[str, Resources]) -> None:
    for name, needs in resources.items():
        for text in warnings_of(needs):
            warn(text, source.span_at(line_of_kernel(source, name)), pass_name="compile_source")
