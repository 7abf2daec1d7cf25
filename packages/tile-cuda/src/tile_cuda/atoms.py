"""The matrix instructions of NVIDIA's warps, as data. PTX ISA, "Warp-level matrix instructions".

An instruction is offered where the machine has its feature; `matching` picks by element types
and divisibility. Instructions that multiply narrower types come with more products per step.
"""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.dtypes import DType, dtype_of
from tile_core.layout import Fragment
from tile_core.simt.atoms import MatrixAtom, atom_of_words
from tile_core.simt.machine import SimtMachine

_QUADS = tuple(tuple(lane for lane in range(32) if lane // 4 % 4 == quad) for quad in range(4))
"""Volta computes in four groups of eight threads: 0-3 with 16-19, 4-7 with 20-23, ..."""


def _volta(c_dtype: str) -> MatrixAtom:
    """Return ``m8n8k4``: each of four groups of threads multiplies 8×4 by 4×8.

    The groups form a square of 16×16: group `g` has rows from ``8 * (g % 2)`` and columns from
    ``8 * (g // 2)``, so each element of a factor is held by two groups.
    """
    half = dtype_of("float16")
    return MatrixAtom(
        function="mma_m8n8k4",
        feature="mma_m8n8k4",
        a_dtype=half,
        b_dtype=half,
        c_dtype=dtype_of(c_dtype),
        a=Fragment(
            (16, 4),
            lambda i, k, r: (i % 4 + i // 4 % 2 * 16 + (i // 8 + 2 * r) * 4, k),
            replicate=2,
        ),
        b=Fragment(
            (4, 16),
            lambda k, j, r: (j % 4 + j // 4 % 2 * 16 + (r + j // 8 * 2) * 4, k),
            replicate=2,
        ),
        c=Fragment((16, 16), _volta_sum if c_dtype == "float32" else _volta_half_sum),
        parts=_QUADS,
    )


def _volta_sum(i: object, j: object) -> tuple[object, object]:
    """Return thread and slot of a float32 sum: 2×2 elements in each of two column halves."""
    from typing import Any

    row: Any = i
    column: Any = j
    quad = row // 8 + column // 8 * 2
    thread = row % 2 + column // 2 % 2 * 2 + quad * 4 + row // 4 % 2 * 16
    return thread, column % 2 + row // 2 % 2 * 2 + column // 4 % 2 * 4
