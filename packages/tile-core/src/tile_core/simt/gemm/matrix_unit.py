"""The operands of an MMA as warps see them, and what machines say of their matrix instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from tile_core.dtypes import DType
from tile_core.ir.buffer import Buffer, Region, Scope
from tile_core.ir.expr import Expr
from tile_core.ir.stmt import Stmt
from tile_core.layout import Fragment, Layout, shared_operand
from tile_core.machine import SimtMachine
from tile_core.ops.gemm import Gemm
from tile_core.records import dataclass
from tile_core.simt.atoms import MatrixAtom
from tile_core.simt.context import SimtContext
from tile_core.simt.gemm_warp_partition import WarpTiling, permuted


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of an MMA, seen as a matrix of `x` (rows of A, columns of B) and `k`.

    Parameters
    ----------
    letter
        ``"a"`` or ``"b"``.
    region
        Where it is.
    is_k_last
        Whether neighbours along `k` are neighbours in the buffer's last dimension.
    atom : Fragment of shape (x, k)
        What the instruction wants in registers.
    dtype
        Element type in registers.
    tiles, steps
        Atoms of one warp along `x` and along `k`.
    warps
        Warps along `x`.
    m_warps
        Warps along M: tells a warp's place in the grid.
    lanes
        Threads of a warp.
    """

    letter: str
    region: Region
    is_k_last: bool
    atom: Fragment
    dtype: DType
    tiles: int
    steps: int
    warps: int
    m_warps: int
    lanes: int

    @property
    def buffer(self) -> Buffer:
        """The buffer it is in."""
        return self.region.buffer

    @property
    def slots(self) -> int:
        """Register slots of one atom."""
        return self.atom.slots

    @property
    def is_fragment(self) -> bool:
        """Whether it is in registers already."""
        return self.buffer.scope is Scope.FRAGMENT

    def first_x(self, thread: Any) -> Any:
        """Return the first `x` of the warp of `thread`, an expression or an array."""
        warp = thread // self.lanes
        stripe = warp % self.m_warps if self.letter == "a" else warp // self.m_warps
        if self.warps == 1:
            return thread // self.lanes * 0 if isinstance(thread, np.ndarray) else 0
        return stripe * (self.tiles * self.atom.shape[0])

    def place(self, x: Any, k: Any) -> tuple[Any, Any]:
        """Return row and column in the buffer of an element of the matrix."""
        return (x, k) if self.is_k_last else (k, x)


def operands(op: Gemm, tiling: WarpTiling) -> tuple[Operand, Operand]:
    """Return both operands of `op` as warps of `tiling` see them."""
    atom = tiling.atom
    a = Operand(
        "a", op.a, not op.transpose_a, atom.a, atom.a_dtype,
        tiling.rows, tiling.steps, tiling.m_warps, tiling.m_warps, atom.threads,
    )  # fmt: skip
    b = Operand(
        "b", op.b, op.transpose_b, _columns_first(atom.b), atom.b_dtype,
        tiling.columns, tiling.steps, tiling.n_warps, tiling.m_warps, atom.threads,
    )  # fmt: skip
    return a, b


@lru_cache(maxsize=64)
def _columns_first(fragment: Fragment) -> Fragment:
    return permuted(fragment, (1, 0))


Loads: TypeAlias = tuple[Stmt, Callable[[Expr], Stmt]]
"""What runs once, and the loads of one k-step given its number."""


@dataclass(frozen=True, slots=True)
class Scales:
    """Scales of both operands in registers.

    `setup` brings them there, and `arguments` are what an instruction is told of them, given the
    numbers of its rows, its columns and its k-step.
    """

    setup: Stmt
    arguments: Callable[[Expr, Expr, Expr], tuple[Expr, ...]]


def without_scales(op: Gemm, tiling: WarpTiling, ctx: SimtContext) -> Scales | None:
    """Return None: the machine has no instructions with scales."""
    return None


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
    scales
        Given an MMA and how warps share it: its scales in registers, None if it has none.
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
    scales: Callable[[Gemm, WarpTiling, SimtContext], Scales | None] = without_scales
    operand_layout: Callable[[tuple[int, ...], int, bool], Layout] = rows_of_chunks
