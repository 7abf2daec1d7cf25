"""Reading whole 8x8 matrices from shared memory: ``ldmatrix``. PTX ISA, "ldmatrix"."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tile_core.dtypes import DType, dtype_of
from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.build_expr import const
from tile_core.ir.expr import Expr, Load
from tile_core.ir.stmt import Stmt, Store
from tile_core.layout import Fragment
from tile_core.records import dataclass, replace
from tile_core.simt.atoms import row_pattern
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import at, do, seq, unrolled
from tile_core.simt.gemm.matrix_unit import Operand
from tile_core.simt.induction_strength_reduction import Step, induction_address
from tile_core.simt.subbyte_access import storage_dtype

ROW_BITS = 128
"""A row of a matrix: what one thread addresses."""


def reads_matrices(operand: Operand, ctx: SimtContext) -> bool:
    """Whether ``ldmatrix`` can read the operand from where it is."""
    dtype = operand.dtype
    return (
        ctx.machine.has("load_matrix")
        and (storage_dtype(operand.buffer.dtype, Scope.SHARED) == dtype or _needs_signs(operand))
        and is_matrix_shaped(operand.atom, dtype)
        and (operand.is_k_last or dtype.bits == 16)
        and keeps_rows(operand.region, ctx, ROW_BITS // dtype.bits)
    )


def _needs_signs(operand: Operand) -> bool:
    """Whether the operand's bytes hold 4-bit integers without the bits above their sign."""
    return operand.buffer.dtype == "int4" and operand.dtype == "int8"


@lru_cache(maxsize=64)
def is_matrix_shaped(atom: Fragment, dtype: DType) -> bool:
    """Whether the fragment (x, k) consists of 8 rows of 16 bytes, four threads for each row."""
    if dtype.bits not in (8, 16, 32):
        return False
    pattern = row_pattern(dtype.bits)
    x, k = atom.shape
    if x % 8 or k % pattern.shape[1]:
        return False
    return pattern.repeat((x // 8, k // pattern.shape[1]), lower_dim_first=False) == atom


def keeps_rows(region: Region, ctx: SimtContext, vector: int) -> bool:
    """Whether aligned groups of `vector` elements along the last dimension stay together.

    They do if the layout keeps each group consecutive and aligned and the region starts at
    the start of one.
    """
    layout = ctx.layout_of(region.buffer)
    if layout.shape[-1] % vector or layout.vector_width(-1, vector) < vector:
        return False
    return ctx.env.multiple_of(region.starts[-1]) % vector == 0


@dataclass(frozen=True, slots=True)
class MatrixOrder:
    """The matrices of an operand in the order of its registers.

    Within an atom they run along `x` first; atoms follow each other along `x`.

    An atom has `x_blocks` and `k_blocks` matrices along `x` and `k`; 16 bytes are `row`
    elements.
    """

    x_blocks: int
    k_blocks: int
    row: int

    @property
    def per_atom(self) -> int:
        """Matrices of one atom."""
        return self.x_blocks * self.k_blocks

    def corner(self, number: Any, limit: int) -> tuple[Any, Any]:
        """Return `x` and `k` of the first element of matrix `number`, which is below `limit`."""
        x_blocks, per_atom = self.x_blocks, self.per_atom
        atom, inside = (0, number) if limit <= per_atom else (number // per_atom, number % per_atom)
        x = atom * (x_blocks * 8) + inside % x_blocks * 8
        return x, inside // x_blocks * self.row


def matrix_loads(
    operand: Operand, registers: Buffer, ctx: SimtContext
) -> tuple[Stmt, Callable[[Expr], Stmt]]:
    """Return what runs once, and the loads of one k-step given its number.

    Before   frag <- shared
    After    for g: ldmatrix_x4(frag + g * 8, shared + ((base ^ kk * 16) + g * 1024))
    """
    x, k = operand.atom.shape
    row = ROW_BITS // operand.dtype.bits
    order = MatrixOrder(x // 8, k // row, row)
    setups: list[Stmt] = []
    parts: list[Callable[[Expr], Stmt]] = []
    total, done = operand.tiles * order.per_atom, 0
    for width in (4, 2, 1):
        groups = (total - done) // width
        if groups:
            setup, load = _groups(operand, registers, ctx, order, (done, groups, width))
            setups.append(setup)
            parts.append(load)
            done += groups * width
    if _needs_signs(operand):
        parts.append(lambda kk: _with_signs(registers, ctx))
    return seq(setups), lambda kk: seq([part(kk) for part in parts])


def _with_signs(registers: Buffer, ctx: SimtContext) -> Stmt:
    """Return what extends the signs of 4-bit integers in bytes, four of them at a time.

    With the sign bit flipped each is 8 too large; the subtraction borrows from no neighbour
    because bit 7 of every byte is set during it.
    """
    word = dtype_of("uint32")
    count = (static_value(registers.shape[0]) or 0) // 4
    words = replace(
        registers, name=ctx.names.fresh(f"{registers.name}_words"), shape=(count,), dtype=word,
        origin=registers,
    )  # fmt: skip
    flipped, eight, top = (const(x, word) for x in (0x88888888, 0x08080808, 0x80808080))

    def one(w: Expr) -> Stmt:
        return Store(words, (w,), ((Load(words, (w,)) ^ flipped) - eight) ^ top)

    return unrolled(ctx, "w", count, one)


def _groups(
    operand: Operand,
    registers: Buffer,
    ctx: SimtContext,
    order: MatrixOrder,
    span: tuple[int, int, int],
) -> tuple[Stmt, Callable[[Expr], Stmt]]:
    """Return setup and loads of `groups` groups of `width` matrices, from matrix `first` on."""
    first, groups, width = span

    def place(thread: Any) -> tuple[Any, Any]:
        lane = thread % 32
        x, k = order.corner(first + (lane // 8 if width == 4 else lane // 8 % width), first + width)
        line = lane % 8
        x, k = (x + line, k) if operand.is_k_last else (x, k + line)
        return operand.place(operand.first_x(thread) + x, k)

    x_step = width // order.per_atom * operand.atom.shape[0]
    steps = (
        Step(groups, *operand.place(x_step, 0)),
        Step(operand.steps, *operand.place(0, operand.atom.shape[1])),
    )
    where = induction_address(ctx, operand.letter, operand.region, place, steps)
    word = 32 // operand.dtype.bits
    name = f"load_matrix_x{width}" + ("" if operand.is_k_last else "_trans")

    def load(kk: Expr) -> Stmt:
        def one(group: Expr) -> Stmt:
            target = at(registers, group * (width * word) + first * word, "w")
            return do(name, target, where.of(group, kk))

        return unrolled(ctx, "x", groups, one)

    return where.setup, load
