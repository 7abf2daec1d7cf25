"""NVRTC, NVIDIA's run-time compiler: CUDA C++ text in, machine code out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tile_core.toolchains.compiler import Output, identity_of
from tile_core.toolchains.runtime_compiler import RuntimeCompiler
from tile_cuda.compile_errors import NAME
from tile_cuda.compiler import COMMON_OPTIONS, compiles, header_texts, of_assembler
from tile_cuda.toolkit import Toolkit, first_for, toolkits

_NVCC_ONLY = frozenset({"--expt-relaxed-constexpr", "--expt-extended-lambda", "-lineinfo"})

PRECOMPILES = (12, 8)
"""The version from which on NVRTC keeps headers in compiled form."""


def nvrtc_options(arch: str, include: Path, flags: Sequence[str]) -> tuple[str, ...]:
    """Return all options of one compilation for `arch`.

    `include` is the folder of CUDA's own headers.
    """
    return (
        f"--gpu-architecture={arch}",
        *COMMON_OPTIONS,
        "-default-device",  # the user's functions in plain C run on the GPU
        f"-I{include}",
        *nvrtc_flags(flags),
    )


def nvrtc_flags(flags: Sequence[str]) -> list[str]:
    """Return flags as NVRTC spells them; those it has no need of are dropped.

    Examples
    --------
    >>> nvrtc_flags(["-O3", "--use_fast_math", "--expt-relaxed-constexpr"])
    ['--ptxas-options=-O3', '--use_fast_math']
    """
    return [of_assembler(flag) for flag in flags if flag not in _NVCC_ONLY]


def precompiled_headers(folder: str) -> tuple[str, ...]:
    """Return options that keep headers in compiled form in `folder`: half of what a text takes."""
    return ("--pch", f"--pch-dir={folder}", "--pch-messages=false")


@dataclass(frozen=True, slots=True)
class Nvrtc:
    """One NVRTC, in processes of its own."""

    library: RuntimeCompiler
    toolkit: Toolkit
    version: tuple[int, int]
    architectures: frozenset[str]

    @property
    def name(self) -> str:
        """Name and version."""
        return f"NVRTC {self.version[0]}.{self.version[1]}"

    @property
    def identity(self) -> str:
        """Name and version, and which file it is."""
        return identity_of(self.name, self.toolkit.library)

    def supports(self, arch: str) -> bool:
        """Tell whether it compiles for `arch`; ``sm_90a`` goes with ``sm_90``."""
        return compiles(arch, self.architectures, self.version)

    def build(self, text: str, arch: str, flags: Sequence[str]) -> Output:
        """Compile kernels for `arch` against the device header."""
        options = nvrtc_options(arch, self.toolkit.include, flags)
        return self.compile(text, NAME, options, header_texts())

    def compile(
        self, text: str, name: str, options: Sequence[str], headers: Mapping[str, str]
    ) -> Output:
        """Compile one translation unit."""
        reuse = precompiled_headers if self.version >= PRECOMPILES else None
        log, parts = self.library.compile(
            text, name, options, headers, ("CUBIN", "PTX"), name=self.name, reuse=reuse
        )
        if parts is None:
            return Output(b"", "", log, False)
        ptx = parts["PTX"].rstrip(b"\0").decode(errors="replace")
        return Output(parts["CUBIN"], ptx, log, True)


@cache
def load(toolkit: Toolkit) -> Nvrtc:
    """Ask a library what it is; a process asks each of them once.

    The built-in functions are opened first, by their path: NVRTC asks for them by name only, and
    another version's search path would not find them.
    """
    library = RuntimeCompiler("nvrtc", (*toolkit.builtins, toolkit.library))
    (major, minor), numbers = library.facts()
    return Nvrtc(library, toolkit, (major, minor), frozenset(f"sm_{number}" for number in numbers))


def installed() -> Iterator[Nvrtc]:
    """Yield every NVRTC there is, loaded, in the order in which they are tried."""
    for toolkit in toolkits():
        yield load(toolkit)


def compiler_for(arch: str) -> Nvrtc:
    """Return the first NVRTC found that compiles for `arch`."""
    return first_for(arch, installed())
