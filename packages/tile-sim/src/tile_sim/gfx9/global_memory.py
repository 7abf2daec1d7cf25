"""Loads, stores and atomics of lanes in global memory: GLOBAL, FLAT and SCRATCH instructions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile_sim.gfx9.arena import atomic
from tile_sim.gfx9.arrays import Array
from tile_sim.gfx9.assembly_text import Line
from tile_sim.gfx9.atomics import Atomic, memory_atomic
from tile_sim.gfx9.instruction import (
    Context,
    Instruction,
    Undecodable,
    Unit,
    ids,
    operands_of,
    refuse_modifiers,
)
from tile_sim.gfx9.operands import Bank, Operand
from tile_sim.gfx9.transfers import Transfer, issue_load, issue_store, transfer_of, values_of
from tile_sim.gfx9.wave import Wave

MODIFIERS = ("offset", "glc", "slc", "dlc", "sc0", "sc1", "nt", "lds")
_NAME = re.compile(r"^(global|flat|scratch)_(load|store|atomic|load_lds)_(\w+)$")
Addresses = Callable[[Wave], Array]
_U64 = np.uint64


def decode(line: Line, context: Context) -> Instruction | None:
    """Return an access of global memory; None if the line is none."""
    found = _NAME.match(line.mnemonic)
    if found is None or found[1] == "scratch" or found[3].startswith("lds_"):
        return None
    refuse_modifiers(line, MODIFIERS)
    is_flat = found[1] == "flat"
    if found[2] == "atomic":
        told = memory_atomic(found[3])
        if told is None:
            raise Undecodable(f"the atomic operation {found[3]} is unknown")
        return _atomic(line, told, is_flat=is_flat)
    transfer = transfer_of(found[3], is_load=found[2] == "load")
    if found[2] == "load":
        return _load(line, transfer, is_flat=is_flat)
    return _store(line, transfer, is_flat=is_flat)


@dataclass(frozen=True, slots=True)
class AddressOperands:
    """The operands that make an address."""

    address: Operand
    base: Operand

    @property
    def reads(self) -> frozenset[int]:
        """Return the registers that the address comes from."""
        return ids([self.address, self.base])


def addresses_of(line: Line, place: AddressOperands) -> Addresses:
    """Return a function that gives the address of each lane.

    The address is a pair of vector registers, or a pair of scalar registers plus an unsigned
    32-bit offset of each lane; a constant is added to either.
    """
    offset = _U64(int(line.modifiers.get("offset", "0"), 0) % (1 << 64))
    vector, scalar = place.address.first, place.base.first
    if place.base.bank is Bank.SCALAR:
        if place.address.count != 1:
            raise Undecodable("an offset of one register is expected")
        return lambda w: w.rows[vector].astype(_U64) + (_U64(w.get64(scalar)) + offset)

    def pair(w: Wave) -> Array:
        high = w.rows[vector + 1].astype(_U64) << _U64(32)
        return (high | w.rows[vector]) + offset

    if place.address.count != 2:
        raise Undecodable("an address of two registers is expected")
    return pair


def active(w: Wave, values: Array) -> Array:
    """Return what belongs to lanes that are on."""
    return values if w.is_full else values[w.lanes]


def _parts(line: Line, operands: list[Operand], *, is_flat: bool) -> AddressOperands:
    """Return the place; flat instructions have no base."""
    if is_flat:
        return AddressOperands(operands[0], Operand(Bank.OFF))
    return AddressOperands(operands[0], operands[1])


def _load(line: Line, transfer: Transfer, *, is_flat: bool) -> Instruction:
    target, *rest = operands_of(line, 2 if is_flat else 3)
    place = _parts(line, rest, is_flat=is_flat)
    addresses, size = addresses_of(line, place), transfer.size

    def step(w: Wave) -> None:
        w.flush_stores()
        data = w.group.arena.read(active(w, addresses(w)), size, line)
        issue_load(w, line, target, transfer, data, is_flat=is_flat)

    return memory_instruction(line, step, place.reads, ids([target]), transfer)


def memory_instruction(
    line: Line, step: Any, reads: frozenset[int], writes: frozenset[int], transfer: Transfer
) -> Instruction:
    """Return a load; its result may overtake nothing, so its target is checked when it runs."""
    touches = reads | writes if transfer.keeps_half else reads
    return Instruction(line, step, Unit.MEMORY, touches, writes, touches)


def _store(line: Line, transfer: Transfer, *, is_flat: bool) -> Instruction:
    operands = operands_of(line, 2 if is_flat else 3)
    data = operands.pop(1)
    place = _parts(line, operands, is_flat=is_flat)
    addresses = addresses_of(line, place)

    def step(w: Wave) -> None:
        where = active(w, addresses(w))
        issue_store(w, line, where, values_of(w, data, transfer), is_flat=is_flat)

    reads = place.reads | ids([data])
    return Instruction(line, step, Unit.MEMORY, reads, frozenset(), reads)


def _atomic(line: Line, told: Atomic, *, is_flat: bool) -> Instruction:
    """Change memory at once; the number before comes later, if it is asked for."""
    returns = "glc" in line.modifiers or "sc0" in line.modifiers
    operands = operands_of(line, (2 if is_flat else 3) + returns)
    target = operands.pop(0) if returns else None
    data = operands.pop(1)
    place = _parts(line, operands, is_flat=is_flat)
    addresses = addresses_of(line, place)

    def step(w: Wave) -> None:
        run_atomic(w, line, told, active(w, addresses(w)), data, target, is_flat=is_flat)

    reads = place.reads | ids([data])
    writes = ids([target]) if target else frozenset()
    return Instruction(line, step, Unit.MEMORY, reads, writes, reads)


def run_atomic(
    w: Wave,
    line: Line,
    told: Atomic,
    addresses: Array,
    data: Operand,
    target: Operand | None,
    *,
    is_flat: bool = False,
) -> None:
    """Run an atomic operation for the lanes that are on."""
    w.flush_stores()
    size = 4 * told.words
    places = w.group.arena.places(addresses, size, line)
    operands = active_numbers(w, data.first, told)
    compared = active_numbers(w, data.first + told.words, told) if told.compares else None
    view = w.group.arena.bytes.view(told.dtype)
    before = atomic(view, places // size, operands, told.combine, compared)
    if target is None:
        issue_store(w, line, None, None, is_flat=is_flat)
        return
    words = before.view(np.uint32).reshape(-1, told.words)
    issue_load(w, line, target, Transfer(size), words, is_flat=is_flat)


def active_numbers(w: Wave, first: int, told: Atomic) -> Array:
    """Return operands of the lanes that are on, as numbers."""
    words = np.ascontiguousarray(w.vectors[first : first + told.words].T)
    numbers = words.view(told.dtype)[:, 0]
    return numbers if w.is_full else numbers[w.lanes]
