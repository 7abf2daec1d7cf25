"""What decides the machine code of a kernel beside this package: the compiler, the GPU meant."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tile_core.plugins.toolchains import toolchain_of
from tile_core.target import Target
from tile_hip.clang import Clang
from tile_hip.compiler import Compiler
from tile_hip.compilers import wanted_compiler

_COMPILER = "hip.compiler"


def toolchain(target: Target, options: Any) -> Mapping[str, str]:
    """Return names and versions; nothing is compiled, TVM is not imported.

    `tile_core.plugins.toolchains.toolchain_of` says what is told where there is none.
    """
    wish = str(options.config(_COMPILER, "") or "")
    return toolchain_of(target, _arch_here, lambda arch: _told(wanted_compiler(arch, wish)))


def _arch_here() -> str:
    from tile_hip.driver import device_arch

    return device_arch()


def _told(compiler: Compiler) -> str:
    """Return name and version, and of programs which file it is."""
    if not isinstance(compiler, Clang):
        return compiler.name
    facts = Path(compiler.command[0]).resolve().stat()
    return f"{compiler.name} {facts.st_size}"
