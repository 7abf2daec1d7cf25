"""What the compilers for AMD GPUs, any clang and hiprtc, have in common: options, and headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from tile_core.codegen.source import all_headers

NAME = "kernel.hip"
"""What the printed text is called in the compiler's log."""

COMMON_OPTIONS = ("-O3", "-std=c++17", "-fno-strict-aliasing")
"""What every kernel is compiled with, by either compiler; the user's flags come behind.

The same memory is read as several element types: views, vectors, packed numbers.
"""


_OF_NVIDIA = ("--expt-", "-lineinfo", "--ptxas-options", "-Xptxas", "-default-device", "-arch")
_FAST = ("-fapprox-func", "-freciprocal-math")
_FAST_NAMES = frozenset({"--use_fast_math", "-use_fast_math"})


def clang_flags(flags: Sequence[str]) -> tuple[str, ...]:
    """Return the user's flags as clang spells them; those that only NVIDIA has are dropped.

    A kernel can so name flags of nvcc and run on machines of both makers. Fast mathematics keeps
    infinities and NaN, as nvcc's does; clang's ``-ffast-math`` would not.

    Examples
    --------
    >>> clang_flags(["-DX=1", "--use_fast_math", "--expt-relaxed-constexpr"])
    ('-DX=1', '-fapprox-func', '-freciprocal-math')
    """
    found: list[str] = []
    for flag in flags:
        if flag in _FAST_NAMES:
            found += _FAST
        elif not flag.startswith(_OF_NVIDIA):
            found.append(flag)
    return tuple(found)


HEADERS = Path(__file__).parent / "include"
"""Where ``tile_hip.h`` lies; ``tile.h``, which includes it, is the printer's."""


@cache
def header_texts() -> Mapping[str, str]:
    """Return the device header and those of C, by the names under which they are included."""
    return all_headers(HEADERS)
