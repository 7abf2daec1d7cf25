"""The code of an assembly, decoded once for all launches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tile_core.errors import LaunchError, UnknownInstruction
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
from tile_sim.gfx9.arena import addresses_of
from tile_sim.gfx9.arrays import Array
from tile_sim.gfx9.assembly_text import Assembly, Line, parse
from tile_sim.gfx9.hazards import check_hazards
from tile_sim.gfx9.instruction import (
    END,
    Context,
    Instruction,
    Undecodable,
    Unit,
    refuse_modifiers,
)
from tile_sim.gfx9.metadata import KernelInfo, parse_metadata
from tile_sim.gfx9.shared_instructions import grain_of


@dataclass(frozen=True, slots=True)
class Code:
    """A decoded assembly.

    There is one instruction for each line, and an end behind them. Data are constants and variables
    of the program, in the order in which they lie in memory; `grain` are the bytes of the narrowest
    access to shared memory, `registers` the vector registers of a lane, accumulation registers
    behind all others.
    """

    assembly: Assembly
    kernels: dict[str, KernelInfo]
    instructions: tuple[Instruction, ...]
    data: tuple[tuple[str, Array], ...]
    grain: int
    registers: int

    @classmethod
    def of(cls, text: str) -> Code:
        """Decode the assembly that clang prints for gfx90a, gfx942 or gfx950.

        Raises
        ------
        UnknownInstruction
            If the text holds an instruction that is unknown here.
        InstructionHazard
            If instructions follow each other more closely than the machine allows.
        """
        assembly = parse(text)
        data = tuple(
            (name, np.frombuffer(raw or b"\0", np.uint8)) for name, raw in assembly.data.items()
        )
        addresses = addresses_of([raw.nbytes for _, raw in data])
        symbols = {name: address for (name, _), address in zip(data, addresses, strict=False)}
        context = Context(assembly.architecture, assembly.labels, symbols)
        instructions = decode_all(assembly, context)
        check_hazards(instructions, assembly.architecture)
        used = (r for i in instructions for r in (*i.reads, *i.writes) if r < 512)
        return cls(
            assembly,
            parse_metadata(assembly.metadata),
            instructions,
            data,
            grain_of(assembly.lines),
            max(used, default=0) + 1,
        )

    def kernel(self, name: str) -> KernelInfo:
        """Return what the metadata says of a kernel."""
        if name not in self.kernels or name not in self.assembly.labels:
            raise LaunchError(
                f"the assembly has no kernel {name}; it has {', '.join(sorted(self.kernels))}"
            )
        return self.kernels[name]


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
    """Return the instruction of a line."""
    try:
        for decoder in _DECODERS:
            found = decoder(line, context)
            if found is not None:
                if found.kind in (Unit.SCALAR, Unit.CONTROL):
                    refuse_modifiers(line, ("sc0", "sc1"))  # of what a cache forgets
                return found
    except (Undecodable, ValueError, IndexError, KeyError) as reason:
        raise UnknownInstruction(f"{line}: {reason}") from reason
    raise UnknownInstruction(f"{line}: the instruction {line.mnemonic} is unknown")


def decode_all(assembly: Assembly, context: Context) -> tuple[Instruction, ...]:
    """Return all instructions, and an end behind them."""
    found = [decode_line(line, context) for line in assembly.lines]
    last = Line(0, "s_endpgm", (), {}, "the end of the text")
    return (*found, Instruction(last, lambda w: END, Unit.CONTROL, is_final=True))
