"""What tests of machine code need: a compiler and a disassembler, and nothing else, or they skip.

Only looking for a tool is guarded: a kernel that a tool does not take is a failure.
"""

from __future__ import annotations

import pytest

from tile_core.errors import ToolchainError
from tile_cuda import disassembly
from tile_cuda.nvrtc_library import Nvrtc, compiler_for


def nvrtc_for(arch: str) -> Nvrtc:
    """Return the NVRTC that compiles for `arch`; skip where none is installed."""
    try:
        return compiler_for(arch)
    except ToolchainError as missing:
        pytest.skip(missing.message)


def need_disassembler() -> None:
    """Skip where nothing is installed that reads machine code."""
    if not disassembly.is_installed():
        pytest.skip("needs cuobjdump or nvdisasm")
