"""How data moves between registers and memory: widths, halves, and the time it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile_sim.gfx9.arrays import Array
from tile_sim.gfx9.assembly_text import Line
from tile_sim.gfx9.instruction import Undecodable
from tile_sim.gfx9.operands import Operand
from tile_sim.gfx9.wave import Flight, Wave


@dataclass(frozen=True, slots=True)
class Transfer:
    """What one lane moves: bytes, as a type if that is narrower than a word.

    It takes one half of a register, or all of it.
    """

    size: int
    dtype: Any = None
    half: int | None = None

    @property
    def keeps_half(self) -> bool:
        """Say whether a load leaves the other half of the register alone."""
        return self.half is not None

    @property
    def registers(self) -> int:
        """Return how many registers it takes."""
        return max(1, self.size // 4)


ALL: Mapping[str, int | None] = {"": None}
HALVES: Mapping[str, int | None] = {"_d16": 0, "_d16_hi": 1}
ALL_OR_HIGH: Mapping[str, int | None] = {"": None, "_d16_hi": 1}


def narrow_transfers(
    types: Mapping[str, Any], halves: Mapping[str, int | None]
) -> dict[str, Transfer]:
    """Return transfers of less than a word, by a name of the type and one of the half."""
    return {
        name + end: Transfer(np.dtype(dtype).itemsize, dtype, half)
        for name, dtype in types.items()
        for end, half in halves.items()
    }


def whole_words(*names: str) -> dict[str, Transfer]:
    """Return transfers of 1, 2, 3 and so on words, by their names."""
    return {name: Transfer(4 * count) for count, name in enumerate(names, 1)}


_WORDS = whole_words("dword", "dwordx2", "dwordx3", "dwordx4")
_LOADS: Mapping[str, Transfer] = {
    **narrow_transfers(
        {"ubyte": np.uint8, "sbyte": np.int8, "ushort": np.uint16, "sshort": np.int16}, ALL
    ),
    **narrow_transfers({"ubyte": np.uint8, "sbyte": np.int8, "short": np.uint16}, HALVES),
    **_WORDS,
}
_STORES: Mapping[str, Transfer] = {
    **narrow_transfers({"byte": np.uint8, "short": np.uint16}, ALL_OR_HIGH),
    **_WORDS,
}


def transfer_of(name: str, *, is_load: bool) -> Transfer:
    """Return what the end of a mnemonic says, such as ``dwordx4``."""
    table = _LOADS if is_load else _STORES
    if name not in table:
        raise Undecodable(f"{name} is unknown")
    return table[name]


def narrowed(words: Array, transfer: Transfer) -> Array:
    """Return what a store of less than a word writes: ``(lanes, 1)`` of its type."""
    shifted = words >> np.uint32(16) if transfer.half else words
    return shifted.astype(transfer.dtype)


def values_of(w: Wave, data: Operand, transfer: Transfer) -> Array:
    """Return what the lanes that are on will store, as rows."""
    rows = w.vectors[data.first : data.first + transfer.registers].T
    words = rows if w.is_full else rows[w.lanes]
    return narrowed(words, transfer) if transfer.dtype is not None else np.array(words)


def widened(data: Array, transfer: Transfer) -> Array:
    """Return words of what came from memory: extended with zeros or signs."""
    if transfer.dtype is None:
        return data
    numbers = np.ascontiguousarray(data).view(transfer.dtype)
    return numbers.astype(np.int32).view(np.uint32)


def deliver(w: Wave, first: int, data: Array, lanes: Array | None, half: int | None) -> None:
    """Write ``(lanes, words)`` into registers, or into one half of one register."""
    count = data.shape[1]
    if half is not None:
        old = w.rows[first] if lanes is None else w.rows[first][lanes]
        shift, keep = np.uint32(16 * half), np.uint32(0xFFFF0000 if half == 0 else 0xFFFF)
        data = ((data[:, 0] & np.uint32(0xFFFF)) << shift | old & keep)[:, None]
    if lanes is None:
        w.vectors[first : first + count] = data.T
    else:
        w.vectors[first : first + count, lanes] = data.T


def issue_load(
    w: Wave, line: Line, target: Operand, transfer: Transfer, data: Array, *, is_flat: bool = False
) -> None:
    """Start a load whose data is known already: it arrives when a wait covers it."""
    words = widened(data, transfer)
    lanes = None if w.is_full else w.lanes
    first, half = target.first, transfer.half

    def land() -> None:
        deliver(w, first, words, lanes, half)

    flight = Flight(line, target.registers, land, 2 if is_flat else 1, is_memory=True)
    w.launch(flight)
    w.memory.append(flight)
    if is_flat:
        w.shared.append(flight)


def issue_store(
    w: Wave, line: Line, addresses: Array | None, values: Array | None, *, is_flat: bool = False
) -> None:
    """Start a store: memory changes when a wait covers it, or the wave looks at memory."""
    land = None
    arena = w.group.arena
    if addresses is not None and values is not None:
        arena.places(addresses, values.shape[1] * values.itemsize, line)
        where, what = addresses, values

        def write() -> None:
            arena.write(where, what, line)

        land = write
    flight = Flight(line, (), land, 2 if is_flat else 1, is_memory=True)
    w.memory.append(flight)
    if land is not None:
        w.stores.append(flight)
    if is_flat:
        w.shared.append(flight)
