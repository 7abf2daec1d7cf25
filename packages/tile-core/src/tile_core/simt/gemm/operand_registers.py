"""Where the operands of a matrix multiplication are in registers, and how they get there."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.build_expr import as_expr, cast
from tile_core.ir.expr import Expr, Load
from tile_core.ir.stmt import Alloc, Seq, Stmt, Store
from tile_core.layout.mixed_radix import row_major_position
from tile_core.records import dataclass
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import seq, unrolled
from tile_core.simt.gemm.matrix_unit import MatrixUnit
from tile_core.simt.gemm.operand_loads import element_loads
from tile_core.simt.gemm.operands import Operand
from tile_core.simt.subbyte_access import unpacked

NOTHING = Seq(())


@dataclass(frozen=True, slots=True)
class Registers:
    """An operand in registers.

    Parameters
    ----------
    buffer
        The registers, flat.
    offset
        Where those of atom `x` in k-step `kk` start, given both.
    load
        What brings the atoms of k-step `kk` there, given it.
    setup
        What runs once before all k-steps.
    """

    buffer: Buffer
    offset: Callable[[Expr, Expr], Expr]
    load: Callable[[Expr], Stmt] = lambda kk: NOTHING
    setup: Stmt = NOTHING


def operand_registers(operand: Operand, unit: MatrixUnit, ctx: SimtContext) -> Registers:
    """Return the registers of an operand: its own if it is a fragment, else loaded ones."""
    return _held(operand, ctx) if operand.is_fragment else _loaded(operand, unit, ctx)


def _held(operand: Operand, ctx: SimtContext) -> Registers:
    """Return the registers of a fragment; nothing is moved, but narrower elements are converted.

    The region may be a part of the fragment along `k`, and one of several along leading
    dimensions; the registers of an atom follow those of the one before it along `k`.
    """
    buffer, region = operand.buffer, operand.region
    shape = buffer.static_shape or ()
    k_axis = -1 if operand.is_k_last else -2
    all_steps = shape[k_axis] // operand.atom.shape[1]
    lead = row_major_position(region.starts[:-2], shape[:-2])
    first = as_expr(region.starts[k_axis]) // operand.atom.shape[1]

    def offset(x: Expr, kk: Expr) -> Expr:
        atom = (as_expr(lead) * operand.tiles + x) * all_steps + (first + kk)
        return atom * operand.slots

    held = ctx.places.flat(buffer)
    if held.dtype == operand.dtype:
        return Registers(held, offset)
    count = static_value(held.shape[0]) or 0
    wide = ctx.registers(f"{operand.letter}_wide", count, str(operand.dtype))

    def one(slot: Expr) -> Stmt:
        value = unpacked(Load(held, (slot,)), buffer.dtype)
        return Store(wide, (slot,), cast(value, operand.dtype))

    return Registers(wide, offset, setup=seq(Alloc(wide), unrolled(ctx, "s", count, one)))


def _loaded(operand: Operand, unit: MatrixUnit, ctx: SimtContext) -> Registers:
    """Return new registers that each k-step loads from shared memory.

    Whole matrices are read where the machine can; else elements, as many at a time as are
    neighbours.
    """
    count = operand.tiles * operand.slots
    turns = 2 if reads_ahead(operand.steps, unit) else 1
    registers = ctx.registers(f"{operand.letter}_frag", count * turns, str(operand.dtype))
    whole = unit.whole_loads(operand, registers, ctx)
    setup, load = whole or (NOTHING, element_loads(operand, registers, ctx, turns))

    def offset(x: Expr, kk: Expr) -> Expr:
        return x * operand.slots if turns == 1 else kk % turns * count + x * operand.slots

    return Registers(registers, offset, load, seq(setup, Alloc(registers)))


def reads_ahead(steps: int, unit: MatrixUnit) -> bool:
    """Whether operands of one k-step are read while those of the one before are multiplied."""
    return steps > 1 and unit.fence is not None
