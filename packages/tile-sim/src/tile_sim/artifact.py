"""Kernels as printed, and compiled for the machine at hand."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tile_core.codegen import PrintedSource, print_program
from tile_core.errors import ToolchainError
from tile_core.simt.program import DeviceProgram
from tile_sim.build import kernel_library
from tile_sim.library import KernelLibrary

_OUR_FLAGS = ("-D", "-U", "-I")
"""Flags that mean the same to every C++ compiler; others are for the GPU's own."""


@dataclass(frozen=True, slots=True)
class EmulatorArtifact:
    """A kernel as it was printed; its compiled form lies in the cache."""

    program: DeviceProgram
    printed: PrintedSource

    @property
    def flags(self) -> tuple[str, ...]:
        """The user's flags that mean something to the host's compiler."""
        return tuple(f for f in self.program.compile_flags if f.startswith(_OUR_FLAGS))

    def library(self) -> KernelLibrary:
        """Return the kernel, loaded; it is compiled if the cache has lost it."""
        return KernelLibrary.load(self.compiled())

    def compiled(self) -> Path:
        """Return the path of the kernel, compiled for the machine at hand."""
        name = next(iter(self.printed.entry_points), "nothing")
        try:
            return kernel_library(
                self.printed.text, name, self.flags, warp_size=self.program.machine.warp_size
            )
        except ToolchainError as error:
            raise self._in_users_lines(error, name) from None

    def _in_users_lines(self, error: ToolchainError, name: str) -> ToolchainError:
        """Return what the compiler says, with the places that the user wrote."""
        place = re.compile(rf"\b{re.escape(name)}\.cpp:(\d+)")
        found = place.search(error.message)
        if found is None:
            return error

        def told(match: re.Match[str]) -> str:
            span = self.printed.lines.get(int(match[1]))
            return match[0] if span is None else f"{span.file}:{span.line}"

        span = self.printed.span_at(int(found[1]))
        is_python = span is not None and not span.file.startswith("<source")
        return ToolchainError(
            place.sub(told, error.message), span=span if is_python else None, hint=error.hint
        )


def compile_program(program: DeviceProgram) -> EmulatorArtifact:
    """Print `program` and compile it for the machine at hand."""
    artifact = EmulatorArtifact(program, print_program(program))
    artifact.compiled()
    return artifact
