"""What the compilers of CUDA C++, NVRTC and nvcc, have in common: options, and headers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tile_core.codegen.source import all_headers

COMMON_OPTIONS = (
    "--std=c++17",
    "-lineinfo",  # profilers show the user's lines; costs nothing
    "--ptxas-options=-v",  # registers and spills, in the log
    "--diag-suppress=177,550",  # variables that a thread does not need
)
"""What every kernel is compiled with, by either compiler."""

_FAMILIES = (12, 9)
"""The version of CUDA from which on its compilers know families, such as ``sm_120f``."""


def compiles(arch: str, architectures: frozenset[str], version: tuple[int, int]) -> bool:
    """Tell whether a compiler that lists `architectures` compiles for `arch`.

    Examples
    --------
    >>> compiles("sm_90a", frozenset({"sm_90"}), (12, 0))
    True
    >>> compiles("sm_120f", frozenset({"sm_120"}), (12, 8))
    False
    """
    is_listed = arch.rstrip("af") in architectures
    return is_listed and (version >= _FAMILIES or not arch.endswith("f"))


_LEVELS = frozenset({"-O0", "-O1", "-O2", "-O3"})


def of_assembler(flag: str) -> str:
    """Return a flag such that levels of optimisation are those of the GPU's assembler.

    Examples
    --------
    >>> of_assembler("-O3"), of_assembler("-DX=1")
    ('--ptxas-options=-O3', '-DX=1')
    """
    return f"--ptxas-options={flag}" if flag in _LEVELS else flag


HEADERS = Path(__file__).parent / "include"
"""Where ``tile_cuda.h`` lies; ``tile.h``, which includes it, is the printer's."""


@cache
def header_texts() -> Mapping[str, str]:
    """Return the device header and those of C, by the names under which they are included."""
    return all_headers(HEADERS)
