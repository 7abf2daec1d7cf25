"""What tests of machine code need: a compiler and a disassembler, and nothing else, or they skip.

Only looking for a tool is guarded: a kernel that a tool does not take is a failure.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from tile_core.errors import ToolchainError
from tile_core.toolchains.compiler import Compiler
from tile_cuda import disassembly
from tile_cuda.nvrtc_library import Nvrtc, compiler_for
from tile_hip.clang import Clang
from tile_hip.compilers import clangs, hipccs, wanted_compiler, zigs


def nvrtc_for(arch: str) -> Nvrtc:
    """Return the NVRTC that compiles for `arch`; skip where none is installed."""
    try:
        return compiler_for(arch)
    except ToolchainError as missing:
        pytest.skip(missing.message)


def need_disassembler() -> None:
    """Skip where nothing is installed that reads machine code."""
    if not any(True for tool in ("cuobjdump", "nvdisasm") for _ in disassembly._tools(tool)):
        pytest.skip("needs cuobjdump or nvdisasm")


def amd_compiler_for(arch: str) -> Compiler:
    """Return what compiles for the AMD architecture `arch`; skip where nothing does."""
    try:
        return wanted_compiler(arch)
    except ToolchainError as missing:
        pytest.skip(missing.message)


def installed_clangs() -> list[Clang]:
    """Return every clang that compiles for AMD GPUs, under whichever name, each once."""
    found: dict[str, Clang] = {}
    for candidate in (*hipccs(), *clangs(), *zigs()):
        with suppress(ToolchainError):  # what is no clang
            clang = candidate()
            assert isinstance(clang, Clang)
            found.setdefault(clang.name, clang)
    return [clang for clang in found.values() if clang.supports("gfx942")]


def clang_for(arch: str) -> Clang:
    """Return a clang that compiles for the AMD architecture `arch`; skip where there is none."""
    for clang in installed_clangs():
        if clang.supports(arch):
            return clang
    pytest.skip(f"no clang compiles for {arch}")
