"""Which compiler translates a kernel: NVRTC, nvcc where there is no NVRTC, or whom the user names.

`COMPILER_VARIABLE` is read whenever a kernel is compiled, and the pass configuration
``cuda.compiler`` says the same for one kernel:

=================  ============================================================================
``nvrtc``          NVRTC only
``nvcc``           the nvcc of ``CUDA_HOME``, of ``CUDA_PATH``, or in ``PATH``
``/path/to/nvcc``  that one
empty              the first NVRTC that knows the architecture, else the first such nvcc
=================  ============================================================================
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from tile_core.environment import environment
from tile_core.errors import ToolchainError
from tile_core.toolchains.compiler import Compiler
from tile_cuda.nvcc import Nvcc, nvcc_at, nvccs
from tile_cuda.nvrtc_library import compiler_for, installed
from tile_cuda.toolkit import first_for

COMPILER_VARIABLE = "TILE_CUDA_COMPILER"
"""The environment variable with which a user requests a compiler."""


def wanted_compiler(arch: str, requested: str = "") -> Compiler:
    """Return the compiler that translates kernels for `arch`.

    Raises
    ------
    ToolchainError
        If there is none, or the one requested does not know `arch`.
    """
    requested = requested or environment().get(COMPILER_VARIABLE, "")
    if requested == "nvrtc":
        return compiler_for(arch)
    if requested:
        return _wanted_nvcc(arch, requested)
    every: Iterator[Compiler] = chain(installed(), nvccs())
    return first_for(arch, every)


def _wanted_nvcc(arch: str, requested: str) -> Nvcc:
    """Return the nvcc that the user requests."""
    if requested == "nvcc":
        found = list(nvccs())
    elif os.sep in requested:
        found = [nvcc_at(Path(requested))]
    else:
        raise ToolchainError(
            f"the compiler of CUDA is to be {requested!r}, which is none",
            hint=f"set {COMPILER_VARIABLE} to nvrtc, to nvcc, or to the path of an nvcc",
        )
    if not found:
        raise ToolchainError(
            f"nvcc is requested, and there is none in CUDA_HOME, CUDA_PATH or PATH ({arch})",
            hint=f"install a CUDA toolkit, or unset {COMPILER_VARIABLE}: NVRTC needs none",
        )
    return first_for(arch, found)
