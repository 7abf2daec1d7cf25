"""Exchanges between lanes that go through the unit of shared memory, but not its bytes."""

from __future__ import annotations

import re

import numpy as np

from tile_sim.gfx9.arrays import LANES, Array
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
from tile_sim.gfx9.operands import Operand
from tile_sim.gfx9.transfers import deliver
from tile_sim.gfx9.wave import Flight, Wave

_LANE = np.arange(LANES)
_SWIZZLE = re.compile(r"swizzle\((\w+),(.*)\)")


def decode(line: Line, context: Context) -> Instruction | None:
    """Return an exchange between lanes; None if the line is none."""
    match line.mnemonic:
        case "ds_bpermute_b32" | "ds_permute_b32":
            return _permute(line, pulls=line.mnemonic == "ds_bpermute_b32")
        case "ds_swizzle_b32":
            return _swizzle(line)
        case "ds_nop":
            return Instruction(line, lambda w: None, Unit.SHARED)
    return None


def _start(w: Wave, line: Line, target: Operand, values: Array) -> None:
    lanes = None if w.is_full else w.lanes
    data = (values if lanes is None else values[lanes])[:, None]

    def land() -> None:
        deliver(w, target.first, data, lanes, None)

    flight = Flight(line, target.registers, land)
    w.launch(flight)
    w.shared.append(flight)


def _permute(line: Line, *, pulls: bool) -> Instruction:
    refuse_modifiers(line, ("offset",))
    target, address, data = operands_of(line, 3)
    offset = int(line.modifiers.get("offset", "0"), 0)

    def step(w: Wave) -> None:
        lane = ((w.rows[address.first].astype(np.int64) + offset) >> 2) & 63
        if pulls:
            source = np.where(w.lanes, w.rows[data.first], np.uint32(0))
            values = source[lane]
        else:
            values = np.zeros(LANES, np.uint32)
            values[lane[w.lanes]] = w.rows[data.first][w.lanes]
        _start(w, line, target, values)

    reads = ids([address, data])
    return Instruction(line, step, Unit.SHARED, reads, ids([target]), reads)


def swizzled(offset: str) -> Array:
    """Return the lane that each lane reads.

    Examples
    --------
    >>> swizzled("swizzle(SWAP,2)")[:4].tolist()
    [2, 3, 0, 1]
    """
    found = _SWIZZLE.match(offset.replace(" ", ""))
    if found is None:
        return _from_bits(int(offset, 0))
    kind, rest = found[1], found[2]
    if kind == "BITMASK_PERM":
        return _from_letters(rest.strip('"'))
    numbers = [int(item, 0) for item in rest.split(",")]
    match kind:
        case "QUAD_PERM":
            return (_LANE & ~3) + np.array(numbers)[_LANE & 3]
        case "SWAP":
            return _LANE ^ numbers[0]
        case "REVERSE":
            return _LANE ^ (numbers[0] - 1)
        case "BROADCAST":
            return (_LANE & -numbers[0]) + numbers[1]
    raise Undecodable(f"the swizzle {kind} is unknown")


def _from_letters(letters: str) -> Array:
    """Return what five letters say of the bits of a lane: 0, 1, kept (p) or flipped (i)."""
    source = _LANE & 32
    for position, letter in enumerate(reversed(letters)):
        bit = _LANE >> position & 1
        source = (
            source | {"0": 0 * bit, "1": 0 * bit + 1, "p": bit, "i": 1 - bit}[letter] << position
        )
    return source


def _from_bits(offset: int) -> Array:
    if offset & 0x8000:
        return (_LANE & ~3) + (offset >> 2 * (_LANE & 3) & 3)
    keep, put, flip = offset & 31, offset >> 5 & 31, offset >> 10 & 31
    return (_LANE & 32) | (((_LANE & 31 & keep) | put) ^ flip)


def _swizzle(line: Line) -> Instruction:
    refuse_modifiers(line, ("offset",))
    target, data = operands_of(line, 2)
    source = swizzled(line.modifiers.get("offset", "0"))

    def step(w: Wave) -> None:
        values = np.where(w.lanes[source], w.rows[data.first][source], np.uint32(0))
        _start(w, line, target, values)

    reads = ids([data])
    return Instruction(line, step, Unit.SHARED, reads, ids([target]), reads)
