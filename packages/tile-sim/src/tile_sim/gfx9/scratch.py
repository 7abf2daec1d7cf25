"""Scratch memory: bytes that each lane has for itself, for registers that were spilled."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from tile_core.errors import OutOfBounds
from tile_sim.gfx9.arrays import Array
from tile_sim.gfx9.assembly_text import Line
from tile_sim.gfx9.instruction import (
    Context,
    Instruction,
    Undecodable,
    Unit,
    ids,
    operands_of,
    refuse_modifiers,
)
from tile_sim.gfx9.operands import PRIVATE_APERTURE, Bank, Operand
from tile_sim.gfx9.scalar import getter
from tile_sim.gfx9.transfers import Transfer, issue_load, issue_store, transfer_of, values_of
from tile_sim.gfx9.wave import Wave

MODIFIERS = ("offset", "glc", "slc", "sc0", "sc1", "nt")
DESCRIPTOR = PRIVATE_APERTURE >> 16
"""Where a descriptor of scratch memory points to: an address that nothing else has."""

_NAME = re.compile(r"^scratch_(load|store)_(\w+)$")
Offsets = Callable[[Wave], Array]


def decode(line: Line, context: Context) -> Instruction | None:
    """Return an access of scratch memory; None if the line is none."""
    found = _NAME.match(line.mnemonic)
    if found is None:
        return None
    refuse_modifiers(line, MODIFIERS)
    operands = operands_of(line, 3)
    is_load = found[1] == "load"
    transfer = transfer_of(found[2], is_load=is_load)
    data = operands.pop(0 if is_load else 1)
    offsets, reads = _offsets(line, *operands), ids(operands)
    if is_load:

        def load(w: Wave) -> None:
            read(w, line, data, transfer, offsets(w))

        touches = reads | (ids([data]) if transfer.keeps_half else frozenset())
        return Instruction(line, load, Unit.MEMORY, touches, ids([data]), touches)

    def store(w: Wave) -> None:
        write(w, line, data, transfer, offsets(w))

    reads |= ids([data])
    return Instruction(line, store, Unit.MEMORY, reads, frozenset(), reads)


def _offsets(line: Line, vector: Operand, scalar: Operand) -> Offsets:
    """Return the byte of its own that each lane accesses."""
    constant = int(line.modifiers.get("offset", "0"), 0)
    get = (lambda w: 0) if scalar.bank is Bank.OFF else getter(scalar)
    if vector.bank is Bank.OFF:
        return lambda w: np.full(64, get(w) + constant, np.int64)
    if vector.bank is not Bank.VECTOR:
        raise Undecodable("its address is in no vector register")
    number = vector.first
    return lambda w: w.rows[number].astype(np.int64) + (get(w) + constant)


def _bytes(w: Wave, offsets: Array, size: int, line: Line) -> tuple[Array, Array, Array]:
    """Return the scratch memory, and rows and columns of it that the lanes that are on access."""
    if w.scratch is None:
        w.scratch = np.full((64, w.group.private_bytes), 0xFF, np.uint8)
    lanes = np.flatnonzero(w.lanes)
    start = offsets[lanes]
    if len(start) and not 0 <= int(start.min()) <= int(start.max()) <= w.scratch.shape[1] - size:
        raise OutOfBounds(
            f"{line}: {size} bytes at byte {int(start.max())} leave the {w.scratch.shape[1]} bytes "
            "of scratch memory"
        )
    return w.scratch, lanes[:, None], start[:, None] + np.arange(size)


def read(w: Wave, line: Line, target: Operand, transfer: Transfer, offsets: Array) -> None:
    """Start a load of the lanes' own bytes."""
    memory, rows, columns = _bytes(w, offsets, transfer.size, line)
    raw = np.ascontiguousarray(memory[rows, columns])
    data = raw.view({1: np.uint8, 2: np.uint16}.get(transfer.size, np.uint32))
    issue_load(w, line, target, transfer, data)


def write(w: Wave, line: Line, data: Operand, transfer: Transfer, offsets: Array) -> None:
    """Store to the lanes' own bytes: nobody else sees them, so at once."""
    memory, rows, columns = _bytes(w, offsets, transfer.size, line)
    memory[rows, columns] = np.ascontiguousarray(values_of(w, data, transfer)).view(np.uint8)
    issue_store(w, line, None, None)
