"""Loads from global into shared memory, past the registers."""

from __future__ import annotations

import re

import numpy as np

from tile_core.errors import OutOfBounds
from tile_sim.gfx9.arrays import Array, mask_of
from tile_sim.gfx9.assembly_text import Line
from tile_sim.gfx9.global_memory import MODIFIERS, AddressOperands, active, addresses_of
from tile_sim.gfx9.instruction import (
    M0_IDS,
    Context,
    Instruction,
    Undecodable,
    Unit,
    operands_of,
    refuse_modifiers,
)
from tile_sim.gfx9.operands import M0, Bank
from tile_sim.gfx9.transfers import Transfer, transfer_of, widened
from tile_sim.gfx9.wave import Flight, Wave

_NAME = re.compile(r"^global_load_lds_(\w+)$")


def issue_dma(w: Wave, line: Line, start: int, data: Array, transfer: Transfer) -> None:
    """Start a load into shared memory: lane l's words go to ``start`` + l times their size.

    The bytes are poisoned at once, and hold the data when a wait covers the load. The byte `start`
    is the same in all lanes; `data` is what the lanes that are on have read.
    """
    shared = w.group.shared
    words = widened(data, transfer)
    step = 4 * words.shape[1]
    if start % 4 or start + 64 * step > shared.size:
        raise OutOfBounds(
            f"{line}: 64 lanes from byte {start} on leave the {shared.size} bytes of shared memory"
        )
    lanes = np.flatnonzero(mask_of(w.exec_bits)) * step
    places = (start + lanes)[:, None] + np.arange(0, step, 4)
    shared.arrive_later(w.index, places, line)

    def land() -> None:
        shared.arrived(w.index, places, words, line)

    w.memory.append(Flight(line, (), land, is_memory=True))


def decode(line: Line, context: Context) -> Instruction | None:
    """Return a load into shared memory without a descriptor; None if the line is none."""
    found = _NAME.match(line.mnemonic)
    if found is None:
        return None
    refuse_modifiers(line, MODIFIERS)
    transfer = transfer_of(found[1], is_load=True)
    operands = operands_of(line, 2)
    if operands[0].bank is not Bank.VECTOR:
        raise Undecodable("its address is not in vector registers")
    place = AddressOperands(operands[0], operands[1])
    addresses = addresses_of(line, place)
    constant = int(line.modifiers.get("offset", "0"), 0)

    def step(w: Wave) -> None:
        w.flush_stores()
        data = w.group.arena.read(active(w, addresses(w)), transfer.size, line)
        start = (w.scalars[M0] & w.group.shared.reach) + constant
        issue_dma(w, line, start, data, transfer)

    reads = place.reads | M0_IDS
    return Instruction(line, step, Unit.MEMORY, reads, frozenset(), reads)
