"""Distances between instructions that compilers keep, but not to those of the device header.

A load into the block's memory is written out there: the compiler sees neither what it reads nor
how far behind its writer it stands. Source: LLVM, "User Guide for AMDGPU Backend"; AMD, "CDNA3
Instruction Set Architecture", 4.5, "Manually Inserted Wait States": vector memory may read a
scalar register five wait states after a vector instruction wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tile_hip.assembly import AssemblyCode, Instruction, kernels_of

DISTANCE = 5
"""Wait states between a vector instruction's scalar result and a load that it addresses."""

WIDER = "-DTILE_BUFFER_DISTANCE=3"
"""What makes the device header keep that distance everywhere; its loads then take longer."""

_SCALARS = re.compile(r"^s(?:(\d+)|\[(\d+):(\d+)\])$")
_WRITES_TWO = ("v_add_co", "v_addc_co", "v_sub_co", "v_subb_co", "v_subrev_co", "v_div_scale")


def needs_wider(assembly: str) -> bool:
    """Whether a load into the block's memory stands too close behind what it reads.

    Registers that the compiler keeps in other registers for lack of room come back by vector
    instructions, anywhere.
    """
    return any(near_buffers(code) for code in kernels_of(assembly).values())


def near_buffers(code: AssemblyCode) -> tuple[int, ...]:
    """Return loads into the block's memory whose scalars were just written by the vector unit."""
    loads = (at for at, each in enumerate(code) if each.is_lds_load)
    return tuple(at for at in loads if _is_near(code, at))


def _is_near(code: AssemblyCode, at: int) -> bool:
    wanted = _scalars(*_operands(code.instructions[at])[1:])
    reached: dict[int, int] = {}
    pending = [(before, 0) for before in _before(code, at)]
    while pending:
        place, states = pending.pop()
        if states >= DISTANCE or reached.get(place, DISTANCE) <= states:
            continue
        reached[place] = states
        each = code.instructions[place]
        if wanted & _written_by_vectors(each):
            return True
        pending += [(before, states + _states(each)) for before in _before(code, place)]
    return False


def _before(code: AssemblyCode, at: int) -> Iterator[int]:
    """Yield what may run right before an instruction."""
    if at > 0 and code.instructions[at - 1].opcode not in ("s_branch", "s_endpgm"):
        yield at - 1
    names = {name for name, place in code.labels.items() if place == at}
    for place, each in enumerate(code) if names else ():
        if each.opcode.startswith(("s_branch", "s_cbranch")) and each.operands in names:
            yield place


def _states(each: Instruction) -> int:
    return 1 + int(each.operands, 0) if each.opcode == "s_nop" else 1


def _written_by_vectors(each: Instruction) -> frozenset[int]:
    if not each.opcode.startswith("v_"):
        return frozenset()
    count = 2 if each.opcode.startswith(_WRITES_TWO) else 1
    return _scalars(*_operands(each)[:count])


def _operands(each: Instruction) -> list[str]:
    return [word for part in each.operands.split(",") for word in part.split()[:1]]


def _scalars(*operands: str) -> frozenset[int]:
    found: set[int] = set()
    for operand in operands:
        if match := _SCALARS.match(operand):
            first = int(match[1] or match[2])
            found.update(range(first, int(match[3] or first) + 1))
    return frozenset(found)
