"""How NVRTC is asked: its options, and what becomes of the user's flags."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tile_cuda.compiler import COMMON_OPTIONS, of_assembler

_NVCC_ONLY = frozenset({"--expt-relaxed-constexpr", "--expt-extended-lambda", "-lineinfo"})

PRECOMPILES = (12, 8)
"""The version from which on NVRTC keeps headers in compiled form."""


def nvrtc_options(arch: str, include: Path, flags: Sequence[str]) -> tuple[str, ...]:
    """Return all options of one compilation for `arch`.

    Parameters
    ----------
    include
        The folder of CUDA's own headers.
    flags
        What the user adds, as nvcc or NVRTC spells it.
    """
    return (
        f"--gpu-architecture={arch}",
        *COMMON_OPTIONS,
        "-default-device",  # the user's functions in plain C run on the GPU
        f"-I{include}",
        *nvrtc_flags(flags),
    )


def nvrtc_flags(flags: Sequence[str]) -> list[str]:
    """Return flags as NVRTC spells them; those it has no need of are dropped.

    Examples
    --------
    >>> nvrtc_flags(["-O3", "--use_fast_math", "--expt-relaxed-constexpr"])
    ['--ptxas-options=-O3', '--use_fast_math']
    """
    return [of_assembler(flag) for flag in flags if flag not in _NVCC_ONLY]


def precompiled_headers(folder: str) -> tuple[str, ...]:
    """Return options that keep headers in compiled form in `folder`: half of what a text takes."""
    return ("--pch", f"--pch-dir={folder}", "--pch-messages=false")
