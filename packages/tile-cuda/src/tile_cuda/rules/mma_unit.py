"""The matrix instructions of NVIDIA's warps (``mma.sync``), as the shared lowering wants them."""

from __future__ import annotations

from tile_core.ir.buffer import Buffer
from tile_core.machine import SimtMachine
from tile_core.ops.gemm import Gemm
from tile_core.simt.atoms import MatrixAtom
from tile_core.simt.context import SimtContext
from tile_core.simt.gemm.matrix_unit import Loads, MatrixUnit
from tile_core.simt.gemm.operands import Operand
from tile_cuda.atoms import atoms_for_nibbles, atoms_for_tiles
from tile_cuda.rules.matrix_loads import matrix_loads, reads_matrices
from tile_cuda.rules.shared_layouts import operand_layout


def mma_unit(machine: SimtMachine) -> MatrixUnit:
    """Return what `machine` multiplies with, and how its warps read operands."""

    def atoms(op: Gemm, warps: int) -> tuple[MatrixAtom, ...]:
        a, b, c = (str(r.buffer.dtype) for r in (op.a, op.b, op.c))
        table = atoms_for_nibbles if op.nibbles else atoms_for_tiles
        return table(machine, a, b, c)

    return MatrixUnit(
        machine=machine, atoms=atoms, whole_loads=_matrices, operand_layout=operand_layout
    )


def _matrices(operand: Operand, registers: Buffer, ctx: SimtContext) -> Loads | None:
    return matrix_loads(operand, registers, ctx) if reads_matrices(operand, ctx) else None
