"""Texts and machine code of a kernel, shown and written to files under TileLang's names."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tile_api.callable_kernel import CallableKernel
from tile_core.errors import UnsupportedOnTarget

_INSTEAD = {
    "libpath": "kernel.export_library(path) writes the machine code",
    "lib_path": "kernel.export_library(path) writes the machine code",
    "resource_usage": "kernel.resources tells registers, spills, memory and occupancy by launch",
    "n_max_threads": "a kernel runs with the threads of T.Kernel(..., threads=)",
    "execution_backend": "there is one runtime; kernel.target tells the machine",
    "compile_flags": "kernel.compile_key() tells what the kernel was made of",
    "pass_configs": "kernel.compile_key() tells what the kernel was made of",
    "verbose": "kernel.phases tells what making the kernel took",
    "rt_mod": "kernel.save(path) writes what tile_launch.load runs",
}
"""What to use in place of attributes of TileLang's kernels that have no counterpart."""


class KernelFiles(CallableKernel):
    """What compiled kernels show and write; see `tile_api.kernel.CompiledKernel`."""

    @property
    def ptx(self) -> str:
        """The assembly of NVIDIA's virtual machine.

        Targets of kind ``cuda`` have it, without a GPU too; the emulator has not.

        Raises
        ------
        UnsupportedOnTarget
            If this target has none.
        """
        return str(self._of_artifact("ptx"))

    @property
    def sass(self) -> str:
        """The instructions of the NVIDIA GPU itself.

        Raises
        ------
        UnsupportedOnTarget
            If this target has none.
        ToolchainError
            If no disassembler is installed.
        """
        return str(self._of_artifact("sass"))

    @property
    def resources(self) -> Mapping[str, Any]:
        """Registers, spills, memory and occupancy of each launch, by the name of its function.

        The values are `tile_core.simt.resources.Resources`: ``registers``, ``spill_stores``,
        ``stack_bytes``, and ``resident.blocks`` of ``resident.fraction`` of a multiprocessor. Of
        AMD GPUs there are ``matrix_registers`` and ``scalar_registers``, too.

        Raises
        ------
        UnsupportedOnTarget
            If this target has none.
        """
        found: Mapping[str, Any] = self._of_artifact("resources")
        return found

    def _of_artifact(self, name: str) -> Any:
        """Return what the backend's toolchain tells of the machine code, or raise."""
        artifact = self._built.artifact
        if not hasattr(type(artifact), name):
            raise UnsupportedOnTarget(
                f"kernels for {self._built.target} have no {name}",
                hint="compile for an NVIDIA GPU, which need not be here: target='cuda:sm_80'",
            )
        return getattr(artifact, name)

    def show_ptx(self) -> None:
        """Print `ptx`."""
        sys.stdout.write(self.ptx)

    def export_ptx(self, path: str | os.PathLike[str]) -> None:
        """Write `ptx` to a file."""
        Path(path).write_text(self.ptx)

    def show_sass(self) -> None:
        """Print `sass`."""
        sys.stdout.write(self.sass)

    def export_sass(self, path: str | os.PathLike[str]) -> None:
        """Write `sass` to a file."""
        Path(path).write_text(self.sass)

    def export_library(self, kernel_file: str | os.PathLike[str]) -> None:
        """Write the machine code alone: a shared library, a cubin or a code object.

        What a launch of it takes is not in the file; `CompiledKernel.save` writes that, too.

        Raises
        ------
        UnsupportedOnTarget
            If the kernel is no machine code: on emulators and in the interpreter.
        ToolchainError
            If there is no C compiler to link with.
        """
        from tile_api.save_bundle import own_variant

        Path(kernel_file).write_bytes(own_variant(self._built).code)

    @property
    def adapter(self) -> Any:
        """The kernel itself: there is one runtime, and nothing between it and a kernel."""
        return self

    @property
    def torch_function(self) -> Any:
        """The kernel itself."""
        return self

    @property
    def n_regs(self) -> int:
        """Registers of 32 bits of one thread: the most of any launch.

        Raises
        ------
        UnsupportedOnTarget
            If this target tells no `resources`.
        """
        return max((needs.registers for needs in self.resources.values()), default=0)

    @property
    def n_spills(self) -> int:
        """Words of 32 bits that a thread writes to memory as registers do not suffice: the most.

        Raises
        ------
        UnsupportedOnTarget
            If this target tells no `resources`.
        """
        return max((needs.spill_stores // 4 for needs in self.resources.values()), default=0)

    def __getattr__(self, name: str) -> Any:
        """Say which names there are, and what to write for some that TileLang's kernels have.

        Raises
        ------
        UnknownName
            Always.
        """
        if name.startswith("_") or hasattr(type(self), name):  # a protocol, or what failed itself
            return object.__getattribute__(self, name)
        from tile_api.frontend.python_errors import unknown_name

        raise unknown_name("a kernel", name, dir(type(self)), instead=_INSTEAD.get(name))
