"""The loops of a kernel's machine code, as counts of instructions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator


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
