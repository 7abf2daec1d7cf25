"""Printed C++ and the way back from its lines to the user's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from tile_core.errors import Span
from tile_core.records import dataclass

INCLUDE_DIRECTORY = Path(__file__).parent / "include"
"""Where ``tile.h`` lies: the header that picks the one of the toolchain."""

C_HEADERS = Path(__file__).parent / "c_headers"
"""Headers of C that the user's functions may include; compilers for GPUs bring none along."""


def all_headers(folder: Path) -> dict[str, str]:
    """Return a backend's headers in `folder`, and those of the printer and of C, by their names."""
    own = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*.h"))}
    shared = {p.name: p for p in sorted(INCLUDE_DIRECTORY.glob("*.h"))}
    standard = {p.name: p for p in sorted(C_HEADERS.glob("*.h"))}
    return {name: path.read_text() for name, path in (own | shared | standard).items()}


@dataclass(frozen=True, slots=True)
class PrintedSource:
    """One translation unit.

    Parameters
    ----------
    text
        C++17 that includes ``tile.h`` and nothing else.
    lines
        Where the user wrote what a line of `text` does; lines count from 1.
    entry_points
        The symbol of each function of the program, in its order.
    """

    text: str
    lines: Mapping[int, Span]
    entry_points: tuple[str, ...]

    def span_at(self, line: int) -> Span | None:
        """Return the place behind a line of `text`: that of the closest line above it."""
        return next((self.lines[n] for n in range(line, 0, -1) if n in self.lines), None)


@dataclass(slots=True)
class Lines:
    """Lines of text under way, each with its place in the user's program."""

    texts: list[str] = field(default_factory=list)
    spans: dict[int, Span] = field(default_factory=dict)

    def add(self, text: str, span: Span | None = None) -> None:
        """Append one line."""
        self.texts.append(text)
        if span is not None:
            self.spans[len(self.texts)] = span
