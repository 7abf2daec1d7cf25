"""Distances between instructions that the machine does not keep by itself.

A compiler must put other instructions, or ``s_nop``, between the two. Every way through the
code is looked at, not only those that run: from each instruction that others must keep away
from, forward over branches, until the longest distance has passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tile_core.errors import InstructionHazard, Note
from tile_sim.gfx9.hazard_rules import needed, reach_of
from tile_sim.gfx9.instruction import Instruction


def check_hazards(instructions: Sequence[Instruction], architecture: str) -> None:
    """Raise `InstructionHazard` for the first instruction that does not keep its distance."""
    for position, producer in enumerate(instructions):
        reach = reach_of(producer)
        if reach:
            _check(instructions, position, reach, architecture)


def _check(
    instructions: Sequence[Instruction], position: int, reach: int, architecture: str
) -> None:
    producer = instructions[position]
    for consumer, written, distance in _following(instructions, position, reach):
        left = producer if written == producer.writes else replace(producer, writes=written)
        need, why = needed(left, consumer, architecture)
        if distance < need:
            raise InstructionHazard(
                f"{consumer.line}: {why}, which takes {need} wait states, and {distance} have "
                "passed",
                notes=(Note(f"since {producer.line}"),),
                hint="other instructions or an s_nop must stand between the two",
            )


def _following(
    instructions: Sequence[Instruction], position: int, reach: int
) -> Iterator[tuple[Instruction, frozenset[int], int]]:
    """Yield what may run after an instruction.

    With it come the registers that still hold what the first one wrote, and the wait states
    between the two.
    """
    first = instructions[position].writes
    open_places = [(place, first, 0) for place in _next(instructions, position)]
    nearest: dict[tuple[int, frozenset[int]], int] = {}
    while open_places:
        place, written, distance = open_places.pop()
        if distance >= reach or nearest.get((place, written), reach) <= distance:
            continue
        nearest[place, written] = distance
        instruction = instructions[place]
        yield instruction, written, distance
        behind = distance + instruction.wait_states
        if not written.isdisjoint(instruction.writes):
            written -= instruction.writes
        open_places += [(following, written, behind) for following in _next(instructions, place)]


def _next(instructions: Sequence[Instruction], position: int) -> list[int]:
    """Return where the way goes on behind an instruction."""
    instruction = instructions[position]
    found = [] if instruction.target is None else [instruction.target]
    if not instruction.is_final and position + 1 < len(instructions):
        found.append(position + 1)
    return found
