"""What one family of machines says of its matrix instructions; all else is shared."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Expr
from tile_core.ir.stmt import Stmt
from tile_core.layout import Layout, shared_operand
from tile_core.machine import SimtMachine
from tile_core.ops.gemm import Gemm
from tile_core.records import dataclass
from tile_core.simt.atoms import MatrixAtom
from tile_core.simt.context import SimtContext
from tile_core.simt.gemm.operands import Operand

Loads: TypeAlias = tuple[Stmt, Callable[[Expr], Stmt]]
"""What runs once, and the loads of one k-step given its number."""


def element_by_element(operand: Operand, registers: Buffer, ctx: SimtContext) -> Loads | None:
    """Return None: the machine reads operands by ordinary loads only."""
    return None


def rows_of_chunks(shape: tuple[int, ...], bits: int, is_k_last: bool) -> Layout:
    """Return the layout in which 8 threads read 16 bytes of 8 rows without conflicts."""
    return shared_operand(shape, bits)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixUnit:
    """The matrix instructions of a machine, and how warps read their operands.

    Parameters
    ----------
    machine
        What multiplies.
    atoms
        The instructions for an MMA that so many warps share, in order of preference; none
        if its element types cannot be multiplied exactly.
    others
        Further instructions for an MMA, for accumulators that another one has spread already.
    whole_loads
        Given an operand in shared memory and registers for its atoms of one k-step: loads of
        whole matrices, None where its elements must be loaded.
    fence
        The function of the device header across which no instruction moves, where reads of the
        next k-step must be kept in front of the products of this one; None where compilers put
        reads early by themselves.
    operand_layout
        Given the shape of a tile, the width of its elements in bits, and whether K is its last
        dimension: where an operand lies in shared memory. Raises `LayoutError` if nowhere better
        than row by row.
    """

    machine: SimtMachine
    atoms: Callable[[Gemm, int], tuple[MatrixAtom, ...]]
    others: Callable[[Gemm], Iterable[MatrixAtom]] = lambda op: ()
    whole_loads: Callable[[Operand, Buffer, SimtContext], Loads | None] = element_by_element
    fence: str | None = None
    operand_layout: Callable[[tuple[int, ...], int, bool], Layout] = rows_of_chunks
