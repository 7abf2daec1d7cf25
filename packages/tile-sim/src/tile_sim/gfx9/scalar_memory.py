"""Loads of the scalar unit: arguments, constants, and buffers that a wave reads as one."""

from __future__ import annotations

import re
from collections.abc import Callable

from tile_sim.gfx9.assembly_text import Line
from tile_sim.gfx9.instruction import (
    Context,
    Instruction,
    Step,
    Undecodable,
    Unit,
    ids,
    operands_of,
    refuse_modifiers,
)
from tile_sim.gfx9.operands import Bank, Operand
from tile_sim.gfx9.scalar import Get, getter
from tile_sim.gfx9.wave import Flight, Wave

Words = Callable[[Wave], list[int]]
_NAME = re.compile(r"^s_(buffer_)?load_dword(?:x(\d+))?$")
_NOTHING = frozenset({
    "s_dcache_inv", "s_dcache_wb", "s_dcache_inv_vol", "s_icache_inv", "s_dcache_wb_vol",
})  # fmt: skip


def decode(line: Line, context: Context) -> Instruction | None:
    """Return a scalar load; None if the line is none."""
    if line.mnemonic in _NOTHING:
        return Instruction(line, lambda w: None, Unit.SCALAR_MEMORY)
    if line.mnemonic in {"s_memtime", "s_memrealtime"}:
        (target,) = operands_of(line, 1)
        step = _starter(line, target, lambda w: [w.instructions & 0xFFFFFFFF, 0])
        return Instruction(line, step, Unit.SCALAR_MEMORY, writes=ids([target]))
    found = _NAME.match(line.mnemonic)
    if found is None:
        return None
    refuse_modifiers(line, ("offset", "glc"))
    target, base, offset = operands_of(line, 3)
    count = int(found[2] or 1)
    if target.count != count:
        raise Undecodable(f"its target has {target.count} registers")
    get = _offset_of(line, offset)
    read = _from_buffer if found[1] else _from_memory
    step = _starter(line, target, read(line, base, get, count))
    reads = ids([base, offset])
    return Instruction(line, step, Unit.SCALAR_MEMORY, reads, ids([target]), reads)


def _offset_of(line: Line, offset: Operand) -> Get:
    constant = int(line.modifiers.get("offset", "0"), 0)
    if offset.bank is Bank.CONSTANT:
        value = int(offset.text, 0) + constant
        return lambda w: value
    get = getter(offset)
    return lambda w: get(w) + constant


def _from_memory(line: Line, base: Operand, get: Get, count: int) -> Words:
    def read(w: Wave) -> list[int]:
        address = (w.get64(base.first) + get(w)) & ~3
        return w.group.arena.scalar(address, count, line)

    return read


def _from_buffer(line: Line, base: Operand, get: Get, count: int) -> Words:
    def read(w: Wave) -> list[int]:
        low, high, size = (w.scalars[base.first + i] for i in range(3))
        start, offset = low | (high & 0xFFFF) << 32, get(w) & ~3
        inside = max(0, min(count, (size - offset) // 4))
        words = w.group.arena.scalar(start + offset, inside, line) if inside else []
        return words + [0] * (count - inside)

    return read


def _starter(line: Line, target: Operand, read: Words) -> Step:
    """Return a step that starts a load: it arrives only when nothing is in flight any more."""
    first = target.first

    def step(w: Wave) -> None:
        words = read(w)

        def land() -> None:
            for position, word in enumerate(words):
                w.set32(first + position, word)

        flight = Flight(line, target.registers, land)
        w.launch(flight)
        w.scalar.append(flight)

    return step
