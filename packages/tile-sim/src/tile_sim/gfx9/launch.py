"""Running a kernel of an assembly: its workgroups, whose waves run in turn between barriers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

import numpy as np

from tile_core.errors import Deadlock, LaunchError, Note
from tile_sim.gfx9.arena import Arena
from tile_sim.gfx9.arrays import Array
from tile_sim.gfx9.code import Code
from tile_sim.gfx9.instruction import BARRIER, SLEEP, Instruction, Step
from tile_sim.gfx9.metadata import KernelInfo
from tile_sim.gfx9.scratch import DESCRIPTOR
from tile_sim.gfx9.shared_memory import GroupMemory, SharedMemory
from tile_sim.gfx9.wave import Wave, missing_wait
from tile_sim.gfx9.wave_start import (
    Geometry,
    begin,
    check_count,
    dispatch_packet,
    is_pointer,
    segment,
    visible,
)


@dataclass(frozen=True, slots=True)
class WaveReport:
    """What a launch did.

    Parameters
    ----------
    instructions
        How many instructions all waves ran.
    waits
        How many of them were ``s_waitcnt``.
    waves
        How many waves there were.
    counts
        How often each mnemonic ran.
    """

    instructions: int
    waits: int
    waves: int
    counts: Mapping[str, int]


def run(
    assembly: str | Code,
    kernel: str,
    *,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    arguments: Sequence[Any],
    shared_bytes: int = 0,
    seed: int | None = None,
) -> WaveReport:
    """Run a kernel of an assembly, as clang prints it for gfx90a, gfx942 or gfx950.

    Parameters
    ----------
    assembly
        The text, with descriptors and metadata; or what `Code.of` made of it.
    kernel
        The kernel's symbol.
    grid, block
        Workgroups of the grid, and lanes of a workgroup, in x, y, z.
    arguments
        NumPy arrays (contiguous; changed in place) or None for buffers, numbers for the rest.
    shared_bytes
        Dynamic shared memory.
    seed
        Waves take random turns; without it each runs to its next barrier.

    Raises
    ------
    UnknownInstruction
        If the text holds an instruction that is unknown here.
    InstructionHazard
        If instructions follow each other more closely than the machine allows.
    MissingWait
        If a register or shared memory is touched before data arrived in it.
    DataRace
        If waves touch one place of shared memory without a barrier.
    OutOfBounds
        If an access is in no buffer, or beyond shared memory.
    Deadlock
        If a wave does not end: workgroups run one after the other, and none can wait for a
        later one.
    DeviceAssertError
        If an assertion of the kernel fails.
    """
    code = Code.of(assembly) if isinstance(assembly, str) else assembly
    launch = _Launch(code, kernel, Geometry(_three(grid), _three(block)), shared_bytes)
    with np.errstate(all="ignore"):
        return launch.run(arguments, None if seed is None else Random(seed))


def _three(sizes: int | tuple[int, ...]) -> tuple[int, int, int]:
    given = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    x, y, z = (*given, 1, 1, 1)[:3]
    return x, y, z


class _Launch:
    """One launch: the memory, the program, and what its workgroups need."""

    def __init__(self, code: Code, kernel: str, geometry: Geometry, shared_bytes: int) -> None:
        self.code, self.info, self.geometry = code, code.kernel(kernel), geometry
        self.descriptor = code.assembly.descriptors.get(kernel, {})
        self.start = code.assembly.labels[kernel]
        self.dynamic_bytes = shared_bytes
        fixed = self.descriptor.get("group_segment_fixed_size", 0)
        self.shared_bytes = fixed + shared_bytes

    def run(self, arguments: Sequence[Any], random: Random | None) -> WaveReport:
        """Run all workgroups, and bring the buffers back."""
        check_count(self.info, arguments)
        buffers = _buffers(self.info, arguments)
        arena = self._arena(arguments, buffers)
        program, waves, waits = Program.of(self.code.instructions), 0, 0
        first = len(self.code.data)
        pointers = {
            "kernarg_segment_ptr": arena.regions[first].address,
            "dispatch_ptr": arena.regions[first + 1].address,
            "private_segment_buffer": DESCRIPTOR | 0xFFFFFFFF << 64,
        }
        x, y, z = self.geometry.grid
        for k, j, i in product(range(z), range(y), range(x)):
            position = (i, j, k)
            group = self._group(arena, position, pointers)
            group.run(program, random)
            waves += len(group.waves)
            waits += sum(wave.waits for wave in group.waves)
        for index, buffer in enumerate(buffers, first + 2):
            if buffer.flags.writeable:
                _raw(buffer)[...] = arena.content(index)
        return _report(program, waves, waits)

    def _arena(self, arguments: Sequence[Any], buffers: list[Array]) -> Arena:
        """Return the memory: data of the program, arguments, the packet, buffers."""
        data = [(name, raw, True) for name, raw in self.code.data]
        given = [
            (f"argument {i}", _raw(buffer), bool(buffer.flags.writeable))
            for i, buffer in enumerate(buffers)
        ]
        packet = ("the dispatch packet", dispatch_packet(self.geometry), False)
        empty = self._segment(arguments, [0] * len(buffers))
        arena = Arena([*data, ("the arguments", empty, False), packet, *given])
        addresses = [region.address for region in arena.regions[len(data) + 2 :]]
        arena.content(len(data))[...] = self._segment(arguments, addresses)
        return arena

    def _segment(self, arguments: Sequence[Any], addresses: list[int]) -> Array:
        return segment(self.info, arguments, addresses, self.geometry, self.dynamic_bytes)

    def _group(
        self, arena: Arena, position: tuple[int, int, int], pointers: Mapping[str, int]
    ) -> Group:
        waves = self.geometry.waves
        reach = 0x3FFFF if self.code.assembly.architecture == "gfx950" else 0xFFFF
        sleeps = any(line.mnemonic == "s_sleep" for line in self.code.assembly.lines)
        shared = SharedMemory(self.shared_bytes, self.code.grain, waves, reach, sleeps=sleeps)
        private = self.descriptor.get("private_segment_fixed_size", 0)
        group, memory = Group(shared), GroupMemory(arena, shared, private)
        for index in range(waves):
            wave = Wave(memory, index, self.code.registers)
            begin(wave, self.descriptor, self.geometry, position, pointers)
            wave.pc = self.start
            group.waves.append(wave)
        return group


def _buffers(info: KernelInfo, arguments: Sequence[Any]) -> list[Array]:
    """Return the arrays among the arguments."""
    return [
        np.asarray(value)
        for argument, value in zip(visible(info), arguments, strict=True)
        if is_pointer(argument) and value is not None
    ]


def _raw(buffer: Array) -> Array:
    """Return the bytes of an array."""
    if not buffer.flags.c_contiguous:
        raise LaunchError("an argument is not contiguous")
    return buffer.reshape(-1).view(np.uint8)


def _report(program: Program, waves: int, waits: int) -> WaveReport:
    counts: dict[str, int] = {}
    for instruction, count in zip(program.instructions, program.counts, strict=True):
        if count:
            name = instruction.line.mnemonic
            counts[name] = counts.get(name, 0) + count
    return WaveReport(sum(program.counts), waits, waves, counts)


MOST_INSTRUCTIONS = 5_000_000
"""A wave that runs longer is taken for one that waits for ever."""

_LONGEST_TURN = 400


@dataclass(frozen=True, slots=True)
class Program:
    """Decoded instructions, taken apart for speed."""

    instructions: tuple[Instruction, ...]
    steps: list[Step]
    touches: list[frozenset[int]]
    counts: list[int]

    @classmethod
    def of(cls, instructions: tuple[Instruction, ...]) -> Program:
        """Return the program of some instructions; nothing has run yet."""
        return cls(
            instructions,
            [i.step for i in instructions],
            [i.touches for i in instructions],
            [0] * len(instructions),
        )


class Group:
    """The waves of one workgroup, and the shared memory through which they meet."""

    def __init__(self, shared: SharedMemory) -> None:
        self.shared = shared
        self.waves: list[Wave] = []

    def run(self, program: Program, random: Random | None) -> None:
        """Run all waves to their ends: one after the other up to barriers, or in random turns."""
        running, waiting = list(self.waves), list[Wave]()
        while running or waiting:
            if not running:
                running, waiting = waiting, []
                self.shared.epoch += 1
            wave, turn = running[0], MOST_INSTRUCTIONS
            if random is not None:
                wave, turn = random.choice(running), random.randint(1, _LONGEST_TURN)
            stop = run_wave(wave, program, turn)
            if stop is None or stop == SLEEP:
                self._check_length(wave, program)
            if stop is None:
                continue
            running.remove(wave)
            if stop == SLEEP:  # others go first
                running.append(wave)
            elif stop == BARRIER:
                waiting.append(wave)
            wave.flush_stores()  # memory serves the waves of a workgroup in order

    def _check_length(self, wave: Wave, program: Program) -> None:
        if wave.instructions >= MOST_INSTRUCTIONS:
            raise Deadlock(
                f"wave {wave.index} has run {wave.instructions} instructions without an end",
                notes=(Note(f"it is at {program.instructions[wave.pc].line}"),),
            )


def run_wave(wave: Wave, program: Program, turn: int) -> int | None:
    """Run at most `turn` instructions of a wave.

    It returns `BARRIER`, `END` or `SLEEP` where it stopped at one; None if its turn is over.
    """
    steps, touches, counts = program.steps, program.touches, program.counts
    pending, pc, left = wave.pending, wave.pc, turn
    while left:
        if pending and not pending.keys().isdisjoint(touches[pc]):
            register = min(pending.keys() & touches[pc])
            line = program.instructions[pc].line
            raise missing_wait(wave, line, register, pending[register])
        left -= 1
        counts[pc] += 1
        following = steps[pc](wave)
        if following is None:
            pc += 1
        elif following >= 0:
            pc = following
        else:
            wave.pc = pc + 1
            wave.instructions += turn - left
            return following
    wave.pc = pc
    wave.instructions += turn
    return None
