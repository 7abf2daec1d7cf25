"""What decides the machine code of a kernel beside this package: the compiler, the GPU meant."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tile_core.plugins.toolchains import toolchain_of
from tile_core.target import Target
from tile_cuda.compiler import Compiler
from tile_cuda.compilers import wanted_compiler
from tile_cuda.nvcc import Nvcc
from tile_cuda.nvrtc_library import Nvrtc

_COMPILER = "cuda.compiler"


def toolchain(target: Target, options: Any) -> Mapping[str, str]:
    """Return names and versions; a compiler is found but not run, TVM is not imported.

    `tile_core.plugins.toolchains.toolchain_of` says what is told where there is none.
    """
    wish = str(options.config(_COMPILER, "") or "")
    return toolchain_of(target, _arch_here, lambda arch: _told(wanted_compiler(arch, wish)))


def _arch_here() -> str:
    from tile_cuda.driver import device_arch

    return device_arch()


def _told(compiler: Compiler) -> str:
    """Return which file a compiler is; names of compilers tell no more than two numbers."""
    if isinstance(compiler, Nvrtc):
        path = compiler.toolkit.library
    elif isinstance(compiler, Nvcc):
        path = compiler.path
    else:
        return compiler.name
    facts = Path(path).resolve().stat()
    return f"{compiler.name} {facts.st_size}"
