"""Decoding: from lines of assembly to instructions that run."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.errors import UnknownInstruction
from tile_sim.gfx9 import (
    buffers,
    carry_instructions,
    compare,
    control,
    dma,
    global_memory,
    lanes,
    matrix,
    packed,
    permutes,
    scalar,
    scalar_memory,
    scratch,
    shared_instructions,
    vector,
)
from tile_sim.gfx9.assembly_text import Assembly, Line
from tile_sim.gfx9.instruction import END, Context, Instruction, Undecodable, Unit

_DECODERS: tuple[Callable[[Line, Context], Instruction | None], ...] = (
    vector.decode,
    compare.decode,
    carry_instructions.decode,
    lanes.decode,
    packed.decode,
    matrix.decode,
    scalar.decode,
    control.decode,
    control.decode_getreg,
    scalar_memory.decode,
    shared_instructions.decode,
    permutes.decode,
    dma.decode,
    scratch.decode,
    global_memory.decode,
    buffers.decode,
)


def decode_line(line: Line, context: Context) -> Instruction:
    """Return the instruction of a line.

    Raises
    ------
    UnknownInstruction
        If no decoder knows it, or something about it is unknown.
    """
    try:
        for decoder in _DECODERS:
            found = decoder(line, context)
            if found is not None:
                return found
    except (Undecodable, ValueError, IndexError, KeyError) as reason:
        raise UnknownInstruction(f"{line}: {reason}") from reason
    raise UnknownInstruction(f"{line}: the instruction {line.mnemonic} is unknown")


def decode_all(assembly: Assembly, context: Context) -> tuple[Instruction, ...]:
    """Return all instructions, and an end behind them."""
    found = [decode_line(line, context) for line in assembly.lines]
    last = Line(0, "s_endpgm", (), {}, "the end of the text")
    return (*found, Instruction(last, lambda w: END, Unit.CONTROL, is_final=True))
