"""The matrix instructions of NVIDIA's warps (``mma.sync``), as the shared lowering wants them."""

from __future__ import annotations

from typing import Any

from tile_core.ir.buffer import Buffer
from tile_core.layout import Layout, shared_operand
from tile_core.machine import SimtMachine
from tile_core.ops.gemm import Gemm
from tile_core.simt.atoms import MatrixAtom
from tile_core.simt.context import SimtContext
from tile_core.simt.gemm.matrix_unit import Loads, MatrixUnit, Operand
from tile_cuda.atoms import atoms_for_nibbles, atoms_for_tiles, atoms_with_scales
from tile_cuda.rules.matrix_loads import matrix_loads, reads_matrices
from tile_cuda.rules.scale_registers import scale_registers


def mma_unit(machine: SimtMachine) -> MatrixUnit:
    """Return what `machine` multiplies with, and how its warps read operands."""

    def atoms(op: Gemm, warps: int) -> tuple[MatrixAtom, ...]:
        a, b, c = (str(r.buffer.dtype) for r in (op.a, op.b, op.c))
        if op.scales:
            return atoms_with_scales(machine, a, b, op.nibbles) if c == "float32" else ()
        table = atoms_for_nibbles if op.nibbles else atoms_for_tiles
        return table(machine, a, b, c)

    return MatrixUnit(
        machine=machine,
        atoms=atoms,
        whole_loads=_matrices,
        scales=scale_registers,
        operand_layout=operand_layout,
    )


def _matrices(operand: Operand, registers: Buffer, ctx: SimtContext) -> Loads | None:
    return matrix_loads(operand, registers, ctx) if reads_matrices(operand, ctx) else None


_LINE_BITS = 1024
"""All banks of shared memory: rows this far apart collide."""


def operand_layout(shape: tuple[int, ...], bits: int, is_k_last: bool) -> Layout:
    """Return where an operand of matrix instructions lies.

    Elements that ``ldmatrix`` cannot turn are read one by one, by four threads along K and
    eight across.

    Raises
    ------
    LayoutError
        If no layout is better than row by row.
    """
    one_by_one = bits == 64 or (bits in (8, 32) and not is_k_last)
    own = read_by_elements(shape, bits) if one_by_one else None
    return own or shared_operand(shape, bits)


def read_by_elements(shape: tuple[int, ...], bits: int) -> Layout | None:
    """Return the layout by rows for operands whose elements are loaded one by one.

    Four threads are neighbours along one dimension, eight along the other. With 32-bit and
    64-bit elements they read 32 bytes of each of four rows that follow each other (half a warp
    at a time if elements are 64 bits wide); with bytes, 8 bytes of every fourth row. Parts of
    a row, of 32 or 16 bytes, change places so that these lie in different banks.

    None if rows are too short, or too few.
    """
    if len(shape) < 2 or bits not in (8, 32, 64) or shape[-2] % 4:
        return None
    part = (128 if bits == 8 else 256) // bits
    count = _LINE_BITS // bits // part
    while count > 1 and shape[-1] % (count * part):
        count //= 2
    if count == 1:
        return None
    every = 4 if bits == 8 else 4 // count

    def place(*coords: Any) -> Any:
        *lead, i, j = coords
        turned = j // part % count ^ i // every % count
        span = count * part
        return (*lead, i, j // span * span + turned * part + j % part)

    return Layout(shape, place, shape)
