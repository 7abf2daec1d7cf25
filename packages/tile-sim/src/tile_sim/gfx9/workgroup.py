"""A workgroup: its waves in turn, between barriers."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tile_core.errors import Deadlock, Note
from tile_sim.gfx9.instruction import BARRIER, SLEEP, Instruction, Step
from tile_sim.gfx9.shared_memory import SharedMemory
from tile_sim.gfx9.wave import Wave, missing_wait

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

    Raises
    ------
    MissingWait
        If an instruction touches a register that something in flight will write.
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
