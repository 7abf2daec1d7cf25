"""An instruction, ready to run, and what the checks must know about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from tile_sim.gfx9.assembly_text import Line
from tile_sim.gfx9.operands import EXEC, FIRST_SCALAR_ID, M0, VCC, Operand, parse_operand
from tile_sim.gfx9.wave import Wave

Step = Callable[[Wave], "int | None"]
"""Runs an instruction; returns the next position where that is not the following one."""

END, BARRIER, SLEEP = -1, -2, -3
"""Positions that stop a wave for good, until all waves have come, and for a moment."""

VCC_IDS = frozenset({FIRST_SCALAR_ID + VCC, FIRST_SCALAR_ID + VCC + 1})
EXEC_IDS = frozenset({FIRST_SCALAR_ID + EXEC, FIRST_SCALAR_ID + EXEC + 1})
M0_IDS = frozenset({FIRST_SCALAR_ID + M0})


class Unit(Enum):
    """The unit that runs an instruction."""

    VECTOR = auto()
    MATRIX = auto()
    SCALAR = auto()
    SCALAR_MEMORY = auto()
    MEMORY = auto()
    SHARED = auto()
    CONTROL = auto()


@dataclass(frozen=True, slots=True)
class Instruction:
    """One decoded instruction.

    Its registers, EXEC as the mask of lanes left out, are vector, accumulation, then scalar ones. A
    branch may lead to `target`. Behind a final one, a branch without condition or an end, the
    following instruction does not run next.
    """

    line: Line
    step: Step
    kind: Unit
    reads: frozenset[int] = frozenset()
    writes: frozenset[int] = frozenset()
    touches: frozenset[int] = field(default=frozenset())
    target: int | None = None
    is_final: bool = False
    wait_states: int = 1


@dataclass(frozen=True, slots=True)
class Context:
    """What decoding must know beside the instruction: positions of labels, addresses of data."""

    architecture: str
    labels: Mapping[str, int]
    symbols: Mapping[str, int]


class Undecodable(Exception):
    """An instruction that this interpreter does not know; the message says what about it."""


def ids(operands: Iterable[Operand]) -> frozenset[int]:
    """Return the registers of some operands."""
    return frozenset(register for operand in operands for register in operand.registers)


def operands_of(line: Line, count: int | None = None) -> list[Operand]:
    """Return the operands of a line."""
    found = []
    for text in line.operands:
        operand = parse_operand(text)
        if operand is None:
            raise Undecodable(f"the operand {text} is unknown")
        if not operand.is_aligned:
            raise Undecodable(f"the registers {text} begin at a number that they may not")
        found.append(operand)
    if count is not None and len(found) != count:
        raise Undecodable(f"it has {len(found)} operands in place of {count}")
    return found


def refuse_modifiers(line: Line, known: Iterable[str]) -> None:
    """Raise `Undecodable` if a modifier is none of those that are known here."""
    unknown = sorted(set(line.modifiers) - set(known))
    if unknown:
        raise Undecodable(f"the modifier {unknown[0]} is unknown here")


def vector_instruction(
    line: Line, step: Step, reads: Iterable[int], writes: Iterable[int], kind: Unit = Unit.VECTOR
) -> Instruction:
    """Return an instruction of the vector units."""
    reads, writes = frozenset(reads), frozenset(writes)
    return Instruction(line, step, kind, reads, writes, reads | writes)


def bits(text: str) -> list[int]:
    """Return the numbers of a list such as ``[0,1]``."""
    return [int(item, 0) for item in text.strip("[]").split(",")]
