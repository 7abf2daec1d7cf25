"""Where the operands of a matrix multiplication are in registers, and how they get there."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.build_expr import as_expr, cast
from tile_core.ir.expr import AddressOf, Expr, Load
from tile_core.ir.stmt import Alloc, Seq, Stmt, Store
from tile_core.layout import Fragment, Layout
from tile_core.layout.mixed_radix import row_major_position
from tile_core.records import dataclass
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import at, do, seq, unrolled
from tile_core.simt.gemm.matrix_unit import MatrixUnit, Operand
from tile_core.simt.lower_accesses import lower_expr
from tile_core.simt.subbyte_access import is_packed, storage_dtype, unpacked

NOTHING = Seq(())


@dataclass(frozen=True, slots=True)
class Registers:
    """An operand in registers.

    `offset` gives where the registers of atom `x` in k-step `kk` start, given both, and `load`
    what brings the atoms of a k-step there; `setup` runs once before all k-steps.
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


def element_loads(
    operand: Operand, registers: Buffer, ctx: SimtContext, turns: int = 1
) -> Callable[[Expr], Stmt]:
    """Return the loads of one k-step given its number, for any layout and element type.

    Before   frag <- shared
    After    for x, s: load<4>(frag + x * 4 + s, shared + address of the element)

    Elements that are neighbours in registers and in memory are read together. Narrower types
    are converted on the way, behind registers of their own.

    So many k-steps as `turns` have registers of their own.
    """
    inverse = _inverse(operand.atom)
    x_extent, k_extent = operand.atom.shape
    width = _vector(operand, ctx)
    stored = storage_dtype(operand.buffer.dtype, Scope.SHARED)

    def address(thread: Any, x_tile: Any, kk: Any, slot: Any) -> tuple[Any, ...]:
        x, k, _ = inverse(thread % operand.lanes, slot)
        row, column = operand.place(
            operand.first_x(thread) + x_tile * x_extent + x, kk * k_extent + k
        )
        *lead, first, second = operand.region.starts
        return (*lead, first + row, second + column)

    def load(kk: Expr) -> Stmt:
        def one(x_tile: Expr, number: Expr) -> Stmt:
            slot = number * width
            target = x_tile * operand.slots + slot
            if turns > 1:
                target = kk % turns * (operand.tiles * operand.slots) + target
            where = address(ctx.thread, x_tile, kk, slot)
            if width > 1:
                source = ctx.address(operand.buffer, *where, access="r")
                if stored != operand.dtype:
                    return _converted(operand, at(registers, target, "w"), source, width, ctx)
                return do("load", width, at(registers, target, "w"), source)
            element = Load(operand.buffer, tuple(map(as_expr, where)))
            value = lower_expr(cast(element, operand.dtype), ctx)
            return Store(registers, (as_expr(target),), value)

        return unrolled(
            ctx, "x", operand.tiles,
            lambda x: unrolled(ctx, "s", operand.slots // width, lambda s: one(x, s)),
        )  # fmt: skip

    return load


def _converted(
    operand: Operand, target: AddressOf, source: AddressOf, width: int, ctx: SimtContext
) -> Stmt:
    """Return the load of `width` elements, and their conversion into registers from `target` on.

    Before   b_frag + 8 <- shared + address, 8 elements
    After    load<8>(b_narrow, shared + address);  for v: b_frag[8 + v] = half(b_narrow[v])
    """
    stored = storage_dtype(operand.buffer.dtype, Scope.SHARED)
    narrow = ctx.registers(f"{operand.letter}_narrow", width, str(stored))

    def one(v: Expr) -> Stmt:
        value = unpacked(Load(narrow, (v,)), operand.buffer.dtype)
        return Store(target.buffer, (target.indices[0] + v,), cast(value, operand.dtype))

    load = do("load", width, at(narrow, 0, "w"), source)
    return seq(Alloc(narrow), load, unrolled(ctx, "v", width, one))


@lru_cache(maxsize=64)
def _inverse(atom: Fragment) -> Layout:
    """Return the map from thread and register slot to the coordinates, and the replica."""
    return atom.as_layout().inverse()


def _vector(operand: Operand, ctx: SimtContext) -> int:
    """Return how many neighbouring registers are neighbours in memory too, and aligned."""
    if is_packed(operand.buffer):
        return 1
    stored = storage_dtype(operand.buffer.dtype, Scope.SHARED)
    limit = min(operand.slots, ctx.machine.vector_bytes * 8 // stored.bits)
    limit = min(limit, ctx.layout_of(operand.buffer).vector_width(-1, limit))
    start = ctx.env.multiple_of(operand.region.starts[-1])
    run = _run(operand.atom, axis=1 if operand.is_k_last else 0)
    width = 1
    while (
        width * 2 <= limit
        and run % (width * 2) == 0
        and start % (width * 2) == 0
        and operand.slots % (width * 2) == 0
    ):
        width *= 2
    return width


@lru_cache(maxsize=64)
def _run(atom: Fragment, axis: int) -> int:
    """Return the longest aligned run along `axis` that is a run of registers of one thread."""
    threads = np.moveaxis(atom.thread_table()[..., 0], axis, -1)
    slots = np.moveaxis(atom.slot_table(), axis, -1)
    run = 1
    while run * 2 <= slots.shape[-1]:
        wide = run * 2
        if slots.shape[-1] % wide:
            break
        ours = slots.reshape(*slots.shape[:-1], -1, wide)
        held = threads.reshape(*threads.shape[:-1], -1, wide)
        together = (held == held[..., :1]).all() and (ours == ours[..., :1] + np.arange(wide)).all()
        if not together or (ours[..., 0] % wide).any():
            break
        run = wide
    return run
