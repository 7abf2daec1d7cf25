"""The matrix instructions of Hopper's warpgroups, as data. PTX ISA, "wgmma.mma_async".

Four warps multiply 64 rows of A by up to 256 columns of B. B is read from shared memory by the
instruction itself, A from there or from registers; all of K that one takes is 32 bytes wide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tile_core.dtypes import dtype_of
from tile_core.layout import fully_replicated
from tile_core.machine import SimtMachine
from tile_core.simt.atoms import MatrixAtom, row_pattern
from tile_cuda.atoms import ROUNDS_FLOAT32

FEATURE = "async_mma"

THREADS = 128
"""Threads of a warpgroup."""

ROWS = 64
"""Rows of every MMA."""

_WARPS = 4
_K_BITS = 256

_OTHER_REGISTERS = 40
"""What an instruction needs beside accumulators: 26 by the assembler's word, and some to move."""

_EVERY_8 = tuple(range(8, 257, 8))
_OF_BYTES = (8, 16, 24, *range(32, 257, 16))
"""Columns of products of 8-bit integers."""


@dataclass(frozen=True, slots=True)
class WgmmaInstructions:
    """The instructions that multiply elements of two types.

    One instruction can have any of `sizes` columns, ascending. If it `transposes`, operands in
    shared memory may have rows of K (MN-major); else only columns.
    """

    a: str
    b: str
    c: str
    sizes: tuple[int, ...] = _EVERY_8
    transposes: bool = False

    @property
    def k(self) -> int:
        """MMAs that are summed for each element by one instruction."""
        return _K_BITS // dtype_of(self.a).bits

    def atom(self, n: int) -> MatrixAtom:
        """Return the instruction with `n` columns.

        Its fragments are over the threads of a warpgroup. That of B says that each of them
        sees all of it: it is in shared memory.
        """
        return _atom(self, n)

    def columns(self, extent: int, multiple: int = 1, registers: int = 255) -> int | None:
        """Return the widest instruction that divides `extent` columns, None if none does.

        More than one instruction must each be a `multiple` wide. A thread has `registers`
        of 32 bits: the assembler refuses instructions whose accumulators, and what else
        they need, do not fit.
        """
        return _columns(self, extent, multiple, registers)


@cache
def _columns(product: WgmmaInstructions, extent: int, multiple: int, registers: int) -> int | None:
    most = (registers - _OTHER_REGISTERS) * 2 * 32 // dtype_of(product.c).bits
    for n in reversed(product.sizes):
        if n <= most and extent % n == 0 and (n == extent or n % multiple == 0):
            return n
    return None


@cache
def _atom(product: WgmmaInstructions, n: int) -> MatrixAtom:
    a, b, c = (dtype_of(t) for t in (product.a, product.b, product.c))
    rows, accumulator = row_pattern(a.bits), row_pattern(16)
    of_warp = rows.repeat((2, product.k // rows.shape[1]), lower_dim_first=False)
    accumulator_of_warp = accumulator.repeat((2, n // 8), lower_dim_first=False)
    return MatrixAtom(
        function="wgmma",
        feature=FEATURE,
        a_dtype=a,
        b_dtype=b,
        c_dtype=c,
        a=of_warp.repeat((_WARPS, 1), True),
        b=fully_replicated((product.k, n), THREADS),
        c=accumulator_of_warp.repeat((_WARPS, 1), True),
        parts=(tuple(range(THREADS)),),
    )


def all_wgmma() -> Iterator[WgmmaInstructions]:
    """Yield the instructions of all element types."""
    for total in ("float32", "float16"):
        yield WgmmaInstructions("float16", "float16", total, transposes=True)
    yield WgmmaInstructions("bfloat16", "bfloat16", "float32", transposes=True)
    for kind in ("tfloat32", "float32"):
        yield WgmmaInstructions(kind, kind, "float32")
    for a in ("float8_e4m3fn", "float8_e5m2"):
        for b in ("float8_e4m3fn", "float8_e5m2"):
            yield WgmmaInstructions(a, b, "float32")
    for a in ("int8", "uint8"):
        for b in ("int8", "uint8"):
            yield WgmmaInstructions(a, b, "int32", sizes=_OF_BYTES)


def wgmma_for(machine: SimtMachine, a: str, b: str, c: str) -> WgmmaInstructions | None:
    """Return the instructions of `machine` that multiply `a` by `b` exactly into `c`, if any.

    Operands of float32 would be rounded to tf32: only machines that are said to do so take them.
    """
    if not machine.has(FEATURE) or ("float32" in (a, b) and not machine.has(ROUNDS_FLOAT32)):
        return None
    return next((p for p in all_wgmma() if (p.a, p.b, p.c) == (a, b, c)), None)
