"""A wave of 64 lanes: its registers, what it waits for, and where it is."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tile_core.errors import MissingWait, Note
from tile_sim.gfx9.arrays import ALL, Array, mask_of
from tile_sim.gfx9.assembly_text import Line
from tile_sim.gfx9.operands import EXEC, FIRST_ACCUMULATOR, FIRST_SCALAR_ID, SCALARS, VCC
from tile_sim.gfx9.shared_memory import GroupMemory

POISON = 0xFFFA5A5A
"""What registers hold before anything is written: not a number, in every format of floats."""


@dataclass(slots=True, eq=False)
class Flight:
    """A memory operation in flight.

    The registers that it will write have numbers that are unique over all banks; `land`, called
    when a wait covers it, writes them or the memory. Flat operations are open in two counters;
    memory operations are those of which loads arrive in the order in which they were started.
    """

    line: Line
    registers: tuple[int, ...]
    land: Callable[[], None] | None
    open_counters: int = 1
    is_memory: bool = False


class Wave:
    """The state of one wave.

    Vector registers, then accumulation registers, are rows of 64 words; scalar ones but EXEC are
    Python integers below 2**32. `memory` holds operations in flight that vmcnt counts; `shared` and
    `scalar` those that lgkmcnt counts, which end in order and in any order. A register in `pending`
    will be written by an operation in flight; `stores` have not reached memory yet, and are in
    `memory` too.
    """

    __slots__ = (
        "exec_bits", "group", "index", "instructions", "is_full", "lanes", "memory", "pc",
        "pending", "rows", "scalar", "scalars", "scc", "scratch", "shared", "stores",
        "vectors", "waits",
    )  # fmt: skip

    def __init__(self, group: GroupMemory, index: int, rows: int) -> None:
        self.group, self.index = group, index
        self.vectors: Array = np.full((rows, 64), POISON, np.uint32)
        self.rows: list[Array] = list(self.vectors)
        self.scalars: list[int] = [POISON] * SCALARS
        self.scc, self.pc = 0, 0
        self.exec_bits, self.is_full = ALL, True
        self.lanes: Array = mask_of(ALL)
        self.memory: deque[Flight] = deque()
        self.shared: deque[Flight] = deque()
        self.scalar: list[Flight] = []
        self.pending: dict[int, Flight] = {}
        self.stores: deque[Flight] = deque()
        self.scratch: Array | None = None
        self.instructions = self.waits = 0

    def set_exec(self, bits: int) -> None:
        """Turn lanes on and off."""
        self.exec_bits, self.is_full = bits, bits == ALL
        self.lanes = mask_of(bits)

    def get64(self, first: int) -> int:
        """Return a pair of scalar registers as one number."""
        if first == EXEC:
            return self.exec_bits
        return self.scalars[first] | self.scalars[first + 1] << 32

    def set64(self, first: int, value: int) -> None:
        """Write a pair of scalar registers."""
        if first == EXEC:
            self.set_exec(value)
        else:
            self.scalars[first] = value & 0xFFFFFFFF
            self.scalars[first + 1] = value >> 32

    def get32(self, number: int) -> int:
        """Return one scalar register."""
        if number >= EXEC:
            return self.exec_bits >> 32 * (number - EXEC) & 0xFFFFFFFF
        return self.scalars[number]

    def set32(self, number: int, value: int) -> None:
        """Write one scalar register."""
        if number < EXEC:
            self.scalars[number] = value
        elif number == EXEC:
            self.set_exec(self.exec_bits & ~0xFFFFFFFF | value)
        else:
            self.set_exec(self.exec_bits & 0xFFFFFFFF | value << 32)

    @property
    def vcc(self) -> int:
        """Return the mask of carries and comparisons."""
        return self.scalars[VCC] | self.scalars[VCC + 1] << 32

    def put(self, number: int, value: Array) -> None:
        """Write one vector register in the lanes that are on."""
        if self.is_full:
            self.rows[number][...] = value
        else:
            np.copyto(self.rows[number], value, where=self.lanes)

    def launch(self, flight: Flight) -> None:
        """Note that the registers of `flight` will be written later.

        It raises `MissingWait` if another operation will write one, and not in a certain order.
        """
        for register in flight.registers:
            before = self.pending.get(register)
            if before is not None and not (before.is_memory and flight.is_memory):
                raise missing_wait(self, flight.line, register, before)
            self.pending[register] = flight

    def arrive(self, flight: Flight) -> None:
        """Complete an operation that one of its counters covers."""
        flight.open_counters -= 1
        if flight.open_counters:
            return
        if flight.land is not None:
            flight.land()
            flight.land = None
        if flight.registers:
            for register in flight.registers:
                if self.pending.get(register) is flight:
                    del self.pending[register]

    def flush_stores(self) -> None:
        """Complete the stores of this wave, which sees them itself from now on."""
        while self.stores:
            flight = self.stores.popleft()
            if flight.land is not None:
                flight.land()
                flight.land = None


def name_of(register: int) -> str:
    """Return how a register is written."""
    if register >= FIRST_SCALAR_ID:
        number = register - FIRST_SCALAR_ID
        return {VCC: "vcc_lo", VCC + 1: "vcc_hi"}.get(number, f"s{number}")
    return f"a{register - 256}" if register >= FIRST_ACCUMULATOR else f"v{register}"


def missing_wait(w: Wave, line: Line, register: int, flight: Flight) -> MissingWait:
    """Return the error of an instruction that touches what is still in flight."""
    return MissingWait(
        f"{line}: {name_of(register)} is touched before it has arrived",
        notes=(Note(f"it is the result of {flight.line}"), Note(f"in wave {w.index}")),
        hint="an s_waitcnt that covers it must stand between them",
    )
