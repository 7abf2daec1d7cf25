"""What the user is told where the warps of a block cannot share an MMA."""

from __future__ import annotations

import math

from tile_core.errors import WarpPartitionError
from tile_core.ir.buffer import Scope
from tile_core.ops.gemm import Gemm
from tile_core.remarks import warn
from tile_core.simt.atoms import MatrixAtom
from tile_core.simt.context import SimtContext
from tile_core.simt.gemm.matrix_unit import MatrixUnit
from tile_core.simt.gemm.register_blocking import BlockTiling, block_tiling
from tile_core.simt.gemm_warp_partition import partitions


def tell_of_missing_partition(op: Gemm, unit: MatrixUnit, ctx: SimtContext) -> None:
    """Warn, or refuse, where only the number of warps keeps `op` from matrix instructions.

    Nothing is said of tiles that have fewer atoms than the block has warps: there is little
    to gain.

    Raises
    ------
    WarpPartitionError
        If the accumulators of one thread do not fit its registers either.
    """
    warps, rest = divmod(ctx.threads, ctx.machine.warp_size)
    atom = _fitting_atom(op, unit, warps)
    if atom is None or op.c.buffer.scope is not Scope.FRAGMENT:
        return
    m, n, _ = op.mnk
    rows, columns = m // atom.m, n // atom.n
    if not rest and any(partitions(rows, columns, warps)):
        return
    who = f"{warps} warps" if not rest else f"{ctx.threads} threads, which are no whole warps,"
    why = (
        f"{who} cannot partition a matrix product of {m} x {n} with policy {op.policy.name}: it "
        f"has "
        f"{rows} x {columns} pieces of {atom.m} x {atom.n}, and no grid of warps divides them"
    )
    hint = _hint(op, atom, ctx)
    tiling = block_tiling(op, ctx.threads)
    accumulators = _registers(tiling, op)
    if accumulators > ctx.machine.registers:
        raise WarpPartitionError(
            f"{why}; without matrix instructions one thread has {accumulators} "
            f"accumulator registers, and {ctx.machine.registers} at most",
            span=op.span,
            hint=hint,
        )
    if rows * columns >= max(1, warps):
        warn(
            f"{why}; it is computed without matrix instructions ({hint})",
            op.span,
            pass_name="select_rule",
        )


def _fitting_atom(op: Gemm, unit: MatrixUnit, warps: int) -> MatrixAtom | None:
    """Return the instruction that divides the MMA into most pieces."""
    m, n, k = op.mnk
    fitting = [a for a in unit.atoms(op, warps) if not (m % a.m or n % a.n or k % a.k)]
    return min(fitting, key=lambda atom: atom.m * atom.n, default=None)


def _hint(op: Gemm, atom: MatrixAtom, ctx: SimtContext) -> str:
    """Name the numbers of threads nearest to the present one that share the MMA."""
    size = ctx.machine.warp_size
    rows, columns = op.mnk[0] // atom.m, op.mnk[1] // atom.n
    words = atom.c.slots * max(32, atom.c_dtype.bits) // 32
    counts = [
        w
        for w in range(1, ctx.machine.max_threads // size + 1)
        if any(partitions(rows, columns, w))
        and rows * columns // w * words <= ctx.machine.registers
    ]
    near = sorted(sorted(counts, key=lambda w: abs(w * size - ctx.threads))[:3])
    if not near:
        return "use a smaller tile, or one with more divisors"
    threads = " or ".join(str(w * size) for w in near)
    return f"use threads={threads}, or a tile with more divisors"


def _registers(tiling: BlockTiling, op: Gemm) -> int:
    return math.prod(tiling.share) * max(32, op.c.buffer.dtype.bits) // 32
