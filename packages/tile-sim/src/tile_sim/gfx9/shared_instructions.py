"""Instructions on shared memory: loads and stores of all widths, and atomics."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from tile_sim.gfx9.arena import atomic
from tile_sim.gfx9.arrays import Array
from tile_sim.gfx9.assembly_text import Line
from tile_sim.gfx9.atomics import Atomic, shared_atomic
from tile_sim.gfx9.global_memory import active, active_numbers
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
from tile_sim.gfx9.transfers import (
    ALL,
    ALL_OR_HIGH,
    HALVES,
    Transfer,
    deliver,
    narrow_transfers,
    values_of,
    whole_words,
    widened,
)
from tile_sim.gfx9.wave import Flight, Wave

MODIFIERS = ("offset", "offset0", "offset1")
_TWICE = re.compile(r"^ds_(read|write)2(st64)?_b(32|64)$")
_WORDS = whole_words("b32", "b64", "b96", "b128")
_LOADS: Mapping[str, Transfer] = {
    **narrow_transfers({"u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16}, ALL),
    **narrow_transfers({"u8": np.uint8, "i8": np.int8, "u16": np.uint16}, HALVES),
    **_WORDS,
}
_STORES: Mapping[str, Transfer] = {
    **narrow_transfers({"b8": np.uint8, "b16": np.uint16}, ALL_OR_HIGH),
    **_WORDS,
}


def grain_of(lines: tuple[Line, ...]) -> int:
    """Return the narrowest access to shared memory in a program, in bytes."""
    grain = 4
    for line in lines:
        kind, _, rest = line.mnemonic.partition("_")[2].partition("_")
        if line.mnemonic.startswith("ds_") and kind in {"read", "write"}:
            told = (_LOADS if kind == "read" else _STORES).get(rest)
            grain = min(grain, told.size if told else 4)
    return grain


def decode(line: Line, context: Context) -> Instruction | None:
    """Return an instruction on shared memory; None if the line is none."""
    name = line.mnemonic
    if not name.startswith("ds_"):
        return None
    twice = _TWICE.match(name)
    if twice:
        refuse_modifiers(line, MODIFIERS)
        scale = int(twice[3]) // 8 * (64 if twice[2] else 1)
        offsets = [int(line.modifiers.get(f"offset{i}", "0"), 0) * scale for i in (0, 1)]
        return (_load if twice[1] == "read" else _store)(
            line, Transfer(int(twice[3]) // 8), offsets
        )
    kind, _, rest = name[3:].partition("_")
    if kind == "read" and rest in _LOADS:
        return _load(line, _LOADS[rest], [_offset(line)])
    if kind == "write" and rest in _STORES:
        return _store(line, _STORES[rest], [_offset(line)])
    returns = "_rtn_" in name
    told = shared_atomic(name[3:].replace("_rtn_", "_"))
    return None if told is None else _atomic(line, told, returns=returns)


def _offset(line: Line) -> int:
    refuse_modifiers(line, MODIFIERS)
    return int(line.modifiers.get("offset", "0"), 0)


def _places(w: Wave, address: Operand, offset: int) -> Array:
    """Return the byte that each lane that is on addresses."""
    return (active(w, w.rows[address.first]) + np.uint32(offset)).astype(np.int64)


def _fetch(w: Wave, places: Array, size: int, line: Line) -> tuple[Array, Array]:
    """Return what lies at some places, and the grains that it takes."""
    shared = w.group.shared
    shared.check(places, size, line)
    grains = shared.read(w.index, places, size, line)
    if size == 4 and not (places & 3).any():
        return shared.words[places >> 2][:, None], grains
    if size % 4 == 0 and not (places & 3).any():
        return shared.words[(places >> 2)[:, None] + np.arange(size // 4)], grains
    raw = shared.bytes[places[:, None] + np.arange(size)]
    return raw.view({1: np.uint8, 2: np.uint16}.get(size, np.uint32)), grains


def _start(
    w: Wave, line: Line, target: Operand | None, data: Array, grains: Array, half: int | None
) -> None:
    """Start a load whose data is known: it arrives with a wait, and reads until then."""
    shared, lanes = w.group.shared, None if w.is_full else w.lanes
    epoch = shared.epoch

    def land() -> None:
        if target is not None:
            deliver(w, target.first, data, lanes, half)
        if shared.epoch != epoch:
            shared.note_read(w.index, grains, line)

    flight = Flight(line, target.registers if target else (), land)
    w.launch(flight)
    w.shared.append(flight)


def _load(line: Line, transfer: Transfer, offsets: list[int]) -> Instruction:
    target, address = operands_of(line, 2)
    if target.count != transfer.registers * len(offsets):
        raise Undecodable(f"its target has {target.count} registers")
    size = transfer.size

    def step(w: Wave) -> None:
        parts, grains = [], []
        for offset in offsets:
            data, touched = _fetch(w, _places(w, address, offset), size, line)
            parts.append(widened(data, transfer))
            grains.append(touched.reshape(-1))
        together = parts[0] if len(parts) == 1 else np.concatenate(parts, 1)
        _start(w, line, target, together, np.concatenate(grains), transfer.half)

    writes = ids([target])
    touches = ids([address]) | (writes if transfer.keeps_half else frozenset())
    return Instruction(line, step, Unit.SHARED, touches, writes, touches)


def _store(line: Line, transfer: Transfer, offsets: list[int]) -> Instruction:
    address, *data = operands_of(line, 1 + len(offsets))

    def step(w: Wave) -> None:
        shared = w.group.shared
        grains = []
        for offset, source in zip(offsets, data, strict=True):
            places = _places(w, address, offset)
            shared.check(places, transfer.size, line)
            grains.append(shared.write(w.index, places, transfer.size, line).reshape(-1))
            _put(w, places, values_of(w, source, transfer))
        _finish(w, line, np.concatenate(grains))

    reads = ids([address, *data])
    return Instruction(line, step, Unit.SHARED, reads, frozenset(), reads)


def _put(w: Wave, places: Array, values: Array) -> None:
    shared, count = w.group.shared, values.shape[1]
    if values.itemsize == 4 and not (places & 3).any():
        shared.words[(places >> 2)[:, None] + np.arange(count)] = values
    else:
        raw = np.ascontiguousarray(values).view(np.uint8)
        shared.bytes[places[:, None] + np.arange(raw.shape[1])] = raw


def _finish(w: Wave, line: Line, grains: Array) -> None:
    """Count a store: it may still be in flight behind a barrier."""
    shared = w.group.shared
    epoch = shared.epoch

    def land() -> None:
        if shared.epoch != epoch:
            shared.note_write(w.index, grains, line)

    w.shared.append(Flight(line, (), land))


def _atomic(line: Line, told: Atomic, *, returns: bool) -> Instruction:
    operands = operands_of(line, 2 + returns + told.compares)
    target = operands.pop(0) if returns else None
    address, *data = operands
    offset, size = _offset(line), 4 * told.words
    # The operand to compare with comes first here, the new number second.
    newest = data[-1]

    def step(w: Wave) -> None:
        shared, places = w.group.shared, _places(w, address, offset)
        shared.check(places, size, line)
        grains = shared.grains(places, size)
        w.flush_stores()  # others may hear by it: memory serves a workgroup in order
        shared.note_write(w.index, grains, line, is_atomic=True)
        values = active_numbers(w, newest.first, told)
        compared = active_numbers(w, data[0].first, told) if told.compares else None
        view = shared.bytes.view(told.dtype)
        before = atomic(view, places // size, values, told.combine, compared)
        if target is None:
            w.shared.append(Flight(line, (), None))
        else:
            words = before.view(np.uint32).reshape(-1, told.words)
            _start(w, line, target, words, grains[:0], None)

    reads = ids([address, *data])
    writes = ids([target]) if target else frozenset()
    return Instruction(line, step, Unit.SHARED, reads, writes, reads)
