"""The instructions and loops of a kernel's machine code, as counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from support.gpu_benchmarks import load
from tile_cuda.disassembly import INSTRUCTION

_loops = load("machine_loops")


def opcode_counts(text: str) -> Mapping[str, int]:
    """Return how often each instruction occurs in SASS text, with its modifiers."""
    return dict(Counter(match["opcode"] for match in INSTRUCTION.finditer(text)))


def loops(code: str) -> Iterator[Counter[str]]:
    """Yield the opcodes of each loop: what lies between a branch backwards and its target."""
    lines = [
        (int(m[1], 16), re.sub(r"^@!?U?P\w+ ", "", m[2]))
        for m in re.finditer(r"/\*([0-9a-f]{4,5})\*/\s+(.*?);", code)
    ]
    for at, text in lines:
        target = re.match(r"BRA\b.*0x([0-9a-f]+)", text)
        if target and int(target[1], 16) < at:
            first = int(target[1], 16)
            yield Counter(t.split()[0].split(".")[0] for a, t in lines if first <= a <= at)


def cycle_with(opcode: str, code: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return the instructions on a way from one of `opcode` back to itself, in their order.

    Parts that are rarely run may stand behind the end of the program.
    """
    after = _loops.ways(code)
    before: dict[int, list[int]] = {at: [] for at in after}
    for at, targets in after.items():
        for target in targets:
            before[target].append(at)
    for at, text in code:
        if opcode in text:
            both = _loops.reached(at, after, after.keys()) & _loops.reached(
                at, before, after.keys()
            )
            if len(both) > 1:
                return [(a, t) for a, t in code if a in both]
    raise AssertionError(f"no loop has {opcode}")
