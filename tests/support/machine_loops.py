"""The loops of a kernel's machine code, as counts of instructions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

_PREDICATE = re.compile(r"^@!?U?P\w+ ")


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


def ways(code: Sequence[tuple[int, str]]) -> Mapping[int, tuple[int, ...]]:
    """Return what each instruction, by its address, is followed by."""
    found: dict[int, tuple[int, ...]] = {}
    for (at, text), behind in zip(code, [*(a for a, _ in code[1:]), None], strict=True):
        words = _PREDICATE.sub("", text)
        opcode = re.split(r"[\s.]", words)[0]
        target = re.search(r"0x([0-9a-f]+)", words) if opcode == "BRA" else None
        is_sure = text == words and not (target and "," in words.partition("0x")[0])
        goes_on = behind is not None and not (is_sure and opcode in ("BRA", "EXIT", "RET"))
        next_one = (behind,) if behind is not None and goes_on else ()
        found[at] = (*next_one, *((int(target[1], 16),) if target else ()))
    return found


def cycle_with(opcode: str, code: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return the instructions on a way from one of `opcode` back to itself, in their order.

    Parts that are rarely run may stand behind the end of the program.
    """
    after = ways(code)
    before: dict[int, list[int]] = {at: [] for at in after}
    for at, targets in after.items():
        for target in targets:
            before[target].append(at)
    for at, text in code:
        if opcode in text:
            both = _reached(at, after) & _reached(at, before)
            if at in both:
                return [(a, t) for a, t in code if a in both]
    raise AssertionError(f"no loop has {opcode}")


def _reached(start: int, ways: Mapping[int, Sequence[int]]) -> set[int]:
    """Return what one comes to from `start`, which may be `start` itself."""
    found: set[int] = set()
    stack = list(ways[start])
    while stack:
        at = stack.pop()
        if at not in found:
            found.add(at)
            stack += ways[at]
    return found
