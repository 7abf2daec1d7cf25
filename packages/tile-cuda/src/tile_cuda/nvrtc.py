"""From the printed text of a kernel to machine code for one architecture."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tile_core.codegen import PrintedSource
from tile_core.codegen.source import INCLUDE_DIRECTORY
from tile_core.errors import TileWarning
from tile_cuda.compile_errors import NAME, refusal, with_line_directives
from tile_cuda.compile_log import Resources, cautions, parse_resources
from tile_cuda.nvrtc_library import compiler_for

HEADERS = Path(__file__).parent / "include"
"""Where ``tile_cuda.h`` lies; ``tile.h``, which includes it, is the printer's."""

C_HEADERS = Path(__file__).parent / "c_headers"
"""Headers of C that the user's functions may include; NVRTC brings none of its own."""

_OPTIONS = (
    "--std=c++17",
    "-lineinfo",  # profilers show the user's lines; costs nothing
    "--ptxas-options=-v",  # registers and spills, in the log
    "--diag-suppress=177,550",  # variables that a thread does not need
    "-default-device",  # the user's functions in plain C run on the GPU
)


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
    source: PrintedSource, arch: str, flags: Sequence[str] = (), *, warn: bool = True
) -> Compiled:
    """Compile printed kernels for `arch`, such as ``"sm_80"``.

    Parameters
    ----------
    flags
        What the user adds: options of NVRTC, or of nvcc where NVRTC has the same.
    warn
        Tell of spilled registers and of what the assembler gave up, as a `TileWarning` at the
        line of the kernel.

    Raises
    ------
    ToolchainError
        If there is no compiler for `arch`, or it refuses the text: at the user's line that the
        first refused line was printed for, with the compiler's words.
    """
    compiler = compiler_for(arch)
    options = (
        f"--gpu-architecture={arch}",
        *_OPTIONS,
        f"-I{compiler.toolkit.include}",
        *nvrtc_flags(flags),
    )
    output = compiler.compile(with_line_directives(source), NAME, options, header_texts())
    if not output.is_accepted:
        raise refusal(source, output.log, compiler.name, arch)
    resources = parse_resources(output.log)
    if warn:
        _warn(source, resources)
    return Compiled(arch, output.cubin, output.ptx, resources, compiler.name, output.log)


@cache
def header_texts() -> Mapping[str, str]:
    """Return the device header and those of C, by the names under which they are included."""
    own = {p.relative_to(HEADERS).as_posix(): p for p in sorted(HEADERS.rglob("*.h"))}
    shared = {p.name: p for p in sorted(INCLUDE_DIRECTORY.glob("*.h"))}
    standard = {p.name: p for p in sorted(C_HEADERS.glob("*.h"))}
    return {name: path.read_text() for name, path in (own | shared | standard).items()}


_NVCC_ONLY = frozenset({"--expt-relaxed-constexpr", "--expt-extended-lambda", "-lineinfo"})
_LEVELS = frozenset({"-O0", "-O1", "-O2", "-O3"})


def nvrtc_flags(flags: Sequence[str]) -> list[str]:
    """Return flags as NVRTC spells them; those it has no need of are dropped.

    Examples
    --------
    >>> nvrtc_flags(["-O3", "--use_fast_math", "--expt-relaxed-constexpr"])
    ['--ptxas-options=-O3', '--use_fast_math']
    """
    result = []
    for flag in flags:
        if flag in _LEVELS:
            result.append(f"--ptxas-options={flag}")
        elif flag not in _NVCC_ONLY:
            result.append(flag)
    return result


def _warn(source: PrintedSource, resources: Mapping[str, Resources]) -> None:
    for name, needs in resources.items():
        for text in cautions(needs):
            span = source.span_at(_line_of(source, name))
            if span is None:
                warnings.warn(text, TileWarning, stacklevel=3)
            else:
                warnings.warn_explicit(text, TileWarning, span.file, span.line)


def _line_of(source: PrintedSource, symbol: str) -> int:
    """Return the line of the text that defines the kernel `symbol`."""
    for number, line in enumerate(source.text.splitlines(), 1):
        if line.startswith("TILE_KERNEL(") and f" {symbol}(" in line:
            return number
    return 1
