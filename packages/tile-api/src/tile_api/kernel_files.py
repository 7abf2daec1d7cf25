"""Texts and machine code of a kernel, shown and written to files under TileLang's names."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tile_api.disk_cache.kept import RevivedBuild
    from tile_core.driver import Built


class KernelFiles:
    """What compiled kernels show and write; see `tile_api.kernel.CompiledKernel`."""

    __slots__ = ()

    if TYPE_CHECKING:
        _built: Built | RevivedBuild
        ptx: Any
        sass: Any

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

    def export_library(self, path: str | os.PathLike[str]) -> None:
        """Write the machine code alone: a shared library, a cubin or a code object.

        What a launch of it takes is not in the file; `CompiledKernel.save` writes that, too.

        Raises
        ------
        UnsupportedOnTarget
            If the kernel is no machine code: on emulators and in the interpreter.
        ToolchainError
            If there is no C compiler to link with.
        """
        from tile_api.saving import own_variant

        Path(path).write_bytes(own_variant(self._built).code)

    @property
    def adapter(self) -> Any:
        """The kernel itself: there is one runtime, and nothing between it and a kernel."""
        return self
