"""What the compilers of CUDA C++ have in common: the library NVRTC, and the program nvcc."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

COMMON_OPTIONS = (
    "--std=c++17",
    "-lineinfo",  # profilers show the user's lines; costs nothing
    "--ptxas-options=-v",  # registers and spills, in the log
    "--diag-suppress=177,550",  # variables that a thread does not need
)
"""What every kernel is compiled with, by either compiler."""

_LEVELS = frozenset({"-O0", "-O1", "-O2", "-O3"})


@dataclass(frozen=True, slots=True)
class Output:
    """What one compilation gave.

    Parameters
    ----------
    cubin, ptx
        Empty if the text was refused.
    log
        Errors, warnings, and what the assembler reports.
    """

    cubin: bytes
    ptx: str
    log: str
    is_accepted: bool


class Compiler(Protocol):
    """One installed compiler of CUDA C++."""

    @property
    def name(self) -> str:
        """Name and version, such as ``"NVRTC 13.0"``."""
        ...

    def supports(self, arch: str) -> bool:
        """Tell whether it compiles for `arch`, such as ``"sm_80"``."""
        ...

    def build(self, text: str, arch: str, flags: Sequence[str]) -> Output:
        """Compile the text of kernels with `COMMON_OPTIONS` and the user's flags."""
        ...


def of_assembler(flag: str) -> str:
    """Return a flag such that levels of optimisation are those of the GPU's assembler.

    Examples
    --------
    >>> of_assembler("-O3"), of_assembler("-DX=1")
    ('--ptxas-options=-O3', '-DX=1')
    """
    return f"--ptxas-options={flag}" if flag in _LEVELS else flag
