"""What decides the machine code of a kernel beside this package: the compiler, the GPU meant."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tile_core.errors import TileError
from tile_core.target import Target
from tile_cuda.compiler import Compiler
from tile_cuda.compilers import wanted_compiler
from tile_cuda.nvcc import Nvcc
from tile_cuda.nvrtc_library import Nvrtc

_COMPILER = "cuda.compiler"


def toolchain(target: Target, options: Any) -> Mapping[str, str]:
    """Return names and versions; a compiler is found but not run, TVM is not imported.

    Where there is no compiler, or no GPU where the target names none, the text says ``none``:
    to compile is then the error, to ask is not.
    """
    arch = target.arch or _arch_here()
    try:
        compiler = _told(wanted_compiler(arch, str(options.config(_COMPILER, "") or "")))
    except TileError:
        compiler = "none"
    return {"architecture": arch, "compiler": compiler}


def _arch_here() -> str:
    from tile_cuda.driver import device_arch

    try:
        return device_arch()
    except TileError:
        return "none"


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
