"""What the compilers of CUDA C++ have in common: the library NVRTC, and the program nvcc."""

from __future__ import annotations

COMMON_OPTIONS = (
    "--std=c++17",
    "-lineinfo",  # profilers show the user's lines; costs nothing
    "--ptxas-options=-v",  # registers and spills, in the log
    "--diag-suppress=177,550",  # variables that a thread does not need
)
"""What every kernel is compiled with, by either compiler."""

_LEVELS = frozenset({"-O0", "-O1", "-O2", "-O3"})


def of_assembler(flag: str) -> str:
    """Return a flag such that levels of optimisation are those of the GPU's assembler.

    Examples
    --------
    >>> of_assembler("-O3"), of_assembler("-DX=1")
    ('--ptxas-options=-O3', '-DX=1')
    """
    return f"--ptxas-options={flag}" if flag in _LEVELS else flag
