"""The list of what is left out: names and reasons."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

KINDS = ("internals", "instruction", "library", "tolerance", "wrong", "absent", "resources")
"""Asserts on another compiler's internals or text; needs an instruction that the target lacks;
needs a library that is not installed; misses a tolerance with a right result; is wrong itself;
imports a file that does not stand beside it; needs more memory or time than a test may have."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One line of the list."""

    targets: tuple[str, ...]  # wildcards of targets, such as ``cpu,hip:*``
    file: str  # path below the folder of programs, with wildcards
    test: str  # name of a test function, or of one case of it, or "" for the file
    kind: str  # one of `KINDS`
    reason: str  # a sentence

    def concerns(self, target: str, file: str) -> bool:
        """Tell whether something of a file is left out on a target."""
        somewhere = any(fnmatch.fnmatch(target, one) for one in self.targets)
        return somewhere and fnmatch.fnmatch(file, self.file)


def parse(text: str) -> list[LeftOut]:
    """Return the lines ``TARGETS | FILE[::TEST] | KIND | REASON`` of a list.

    Raises
    ------
    ValueError
        If a line has another form, or there is no such kind.
    """
    found = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        targets, name, kind, reason = (part.strip() for part in line.split("|", 3))
        if kind not in KINDS:
            raise ValueError(f"there is no kind {kind!r} of reasons: {line}")
        file, _, test = name.partition("::")
        found.append(LeftOut(tuple(targets.split(",")), file, test, kind, reason))
    return found


def reasons(rows: Sequence[LeftOut], target: str, file: str) -> dict[str, str]:
    """Return why tests of a file are left out, by name; ``""`` stands for the whole file."""
    return {row.test: f"{row.kind}: {row.reason}" for row in rows if row.concerns(target, file)}


def read(path: Path) -> list[LeftOut]:
    """Return the lines of a file."""
    return parse(path.read_text(encoding="utf-8"))
