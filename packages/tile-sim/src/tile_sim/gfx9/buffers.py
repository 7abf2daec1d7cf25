"""Buffer instructions: accesses through a descriptor, which checks their range.

Only raw buffers are known: a descriptor of four words with the address in its first 48 bits, no
stride, and the size in bytes. Each word of an access is checked by itself: what lies outside
reads as zero and is not written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tile_core.errors import OutOfBounds
from tile_sim.gfx9 import scratch
from tile_sim.gfx9.arena import Arena
from tile_sim.gfx9.arrays import Array
from tile_sim.gfx9.assembly_text import Line
from tile_sim.gfx9.atomics import Atomic, memory_atomic
from tile_sim.gfx9.dma import issue_dma
from tile_sim.gfx9.global_memory import active, memory_instruction, run_atomic
from tile_sim.gfx9.instruction import (
    M0_IDS,
    Context,
    Instruction,
    Undecodable,
    Unit,
    ids,
    operands_of,
    refuse_modifiers,
)
from tile_sim.gfx9.operands import M0, Bank, Operand
from tile_sim.gfx9.scalar import getter
from tile_sim.gfx9.scratch import DESCRIPTOR
from tile_sim.gfx9.transfers import Transfer, issue_load, issue_store, transfer_of, values_of
from tile_sim.gfx9.wave import Wave

MODIFIERS = ("offset", "offen", "glc", "slc", "dlc", "sc0", "sc1", "nt", "lds")
_NAME = re.compile(r"^buffer_(load|store|atomic)_(\w+)$")
_U64, _I64 = np.uint64, np.int64


@dataclass(frozen=True, slots=True)
class View:
    """What a descriptor and its offsets give at run time.

    Offsets, one for each lane that is on, count bytes from an address; `limit` is the first
    outside.
    """

    base: int
    offsets: Array
    limit: int


@dataclass(frozen=True, slots=True)
class Parts:
    """The operands of a buffer instruction, and how they are read."""

    operands: tuple[Operand, ...]
    view: Callable[[Wave], View]

    @property
    def reads(self) -> frozenset[int]:
        """Return the registers that the address comes from."""
        return ids(self.operands)


def parts_of(line: Line, operands: list[Operand]) -> Parts:
    """Return the address of a buffer instruction: offsets of lanes, descriptor, offset of all."""
    vector, descriptor, scalar = operands
    if descriptor.bank is not Bank.SCALAR or descriptor.count != 4:
        raise Undecodable("its descriptor is not four scalar registers")
    uses_lanes = "offen" in line.modifiers
    if uses_lanes != (vector.bank is Bank.VECTOR):
        raise Undecodable("offen and a register with offsets belong together")
    constant = int(line.modifiers.get("offset", "0"), 0)
    first, number, get = descriptor.first, vector.first, getter(scalar)

    def view(w: Wave) -> View:
        low, high, records = (w.scalars[first + i] for i in range(3))
        if high >> 16:
            raise OutOfBounds(f"{line}: only descriptors without a stride are known")
        start = get(w)
        if uses_lanes:
            offsets = active(w, w.rows[number]).astype(_I64) + constant
        else:
            offsets = np.full(w.exec_bits.bit_count(), constant, _I64)
        return View((low | high << 32) + start, offsets, records - start)

    return Parts((vector, descriptor, scalar), view)


def inside(view: View, size: int, line: Line) -> Array | None:
    """Return which words of each access are in range; None if all are.

    A word that begins inside and ends outside is an error: machines do not agree on what it reads.
    """
    if not len(view.offsets) or int(view.offsets.max()) + size <= view.limit:
        return None
    width = min(size, 4)
    starts = view.offsets[:, None] + np.arange(0, size, width)
    begins, ends = starts < view.limit, starts + width <= view.limit
    if (begins != ends).any():
        raise OutOfBounds(
            f"{line}: a word at offset {int(starts[begins != ends][0])} reaches beyond the "
            f"buffer's {view.limit} bytes"
        )
    return ends


def read(arena: Arena, view: View, size: int, line: Line) -> Array:
    """Return what each lane reads; zero outside of the range."""
    addresses = view.offsets.astype(_U64) + _U64(view.base)
    within = inside(view, size, line)
    if within is None:
        return arena.read(addresses, size, line)
    width = min(size, 4)
    dtype = {1: np.uint8, 2: np.uint16}.get(width, np.uint32)
    found = np.zeros(within.shape, dtype)
    places = addresses[:, None] + np.arange(0, size, width, dtype=_U64)
    if within.any():
        found[within] = arena.read(places[within], width, line)[:, 0]
    return found


def decode(line: Line, context: Context) -> Instruction | None:
    """Return an access through a descriptor; None if the line is none."""
    found = _NAME.match(line.mnemonic)
    if found is None:
        return None
    refuse_modifiers(line, MODIFIERS)
    if found[1] == "atomic":
        told = memory_atomic(found[2])
        if told is None:
            raise Undecodable(f"the atomic operation {found[2]} is unknown")
        return _atomic(line, told)
    transfer = transfer_of(found[2], is_load=found[1] == "load")
    if "lds" in line.modifiers:
        return _to_shared(line, transfer)
    if found[1] == "load":
        return _load(line, transfer)
    return _store(line, transfer)


def _own(w: Wave, view: View) -> Array:
    """Return the offsets of all lanes in their own memory; those of lanes that are off are 0.

    A scalar offset counts bytes of the whole wave, of which each lane has one in 64.
    """
    offsets = np.zeros(64, _I64)
    offsets[w.lanes] = view.offsets + (view.base - DESCRIPTOR) // 64
    return offsets


def _load(line: Line, transfer: Transfer) -> Instruction:
    target, *rest = operands_of(line, 4)
    parts = parts_of(line, rest)

    def step(w: Wave) -> None:
        view = parts.view(w)
        if view.base >> 16 == DESCRIPTOR >> 16:
            scratch.read(w, line, target, transfer, _own(w, view))
            return
        w.flush_stores()
        data = read(w.group.arena, view, transfer.size, line)
        issue_load(w, line, target, transfer, data)

    return memory_instruction(line, step, parts.reads, ids([target]), transfer)


def _store(line: Line, transfer: Transfer) -> Instruction:
    data, *rest = operands_of(line, 4)
    parts = parts_of(line, rest)

    def step(w: Wave) -> None:
        view, values = parts.view(w), values_of(w, data, transfer)
        if view.base >> 16 == DESCRIPTOR >> 16:
            scratch.write(w, line, data, transfer, _own(w, view))
            return
        within = inside(view, transfer.size, line)
        addresses = view.offsets.astype(_U64) + _U64(view.base)
        if within is None:
            issue_store(w, line, addresses, values)
        else:
            places = addresses[:, None] + np.arange(
                0, transfer.size, min(transfer.size, 4), dtype=_U64
            )
            issue_store(w, line, places[within], values[within][:, None])

    reads = parts.reads | ids([data])
    return Instruction(line, step, Unit.MEMORY, reads, frozenset(), reads)


def _atomic(line: Line, told: Atomic) -> Instruction:
    data, *rest = operands_of(line, 4)
    parts = parts_of(line, rest)
    target = None
    if "glc" in line.modifiers or "sc0" in line.modifiers:
        target = Operand(Bank.VECTOR, data.first, told.words, data.text)

    def step(w: Wave) -> None:
        view = parts.view(w)
        if inside(view, 4 * told.words, line) is not None:
            raise OutOfBounds(f"{line}: an atomic operation lies outside of its buffer")
        addresses = view.offsets.astype(_U64) + _U64(view.base)
        run_atomic(w, line, told, addresses, data, target)

    reads = parts.reads | ids([data])
    writes = ids([target]) if target else frozenset()
    return Instruction(line, step, Unit.MEMORY, reads, writes, reads)


def _to_shared(line: Line, transfer: Transfer) -> Instruction:
    """Load into shared memory: the lanes' words follow each other from M0 on."""
    parts = parts_of(line, operands_of(line, 3))
    constant = int(line.modifiers.get("offset", "0"), 0)

    def step(w: Wave) -> None:
        w.flush_stores()
        data = read(w.group.arena, parts.view(w), transfer.size, line)
        issue_dma(w, line, (w.scalars[M0] & w.group.shared.reach) + constant, data, transfer)

    reads = parts.reads | M0_IDS
    return Instruction(line, step, Unit.MEMORY, reads, frozenset(), reads)
