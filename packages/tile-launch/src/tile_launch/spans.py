"""Places in the text of a program, and what messages say about them."""

from __future__ import annotations

import ast
import linecache
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """Where something was written: lines count from 1, columns from 0, end excluded."""

    file: str
    line: int
    col: int
    end_col: int

    @classmethod
    def of(cls, node: ast.expr | ast.stmt, *, file: str, first_line: int = 1) -> Span:
        """Convert an `ast` position, whose columns count UTF-8 bytes, to characters."""
        line = first_line + node.lineno - 1
        raw = linecache.getline(file, line).encode()
        one_line = node.end_lineno == node.lineno and node.end_col_offset is not None
        end = node.end_col_offset if one_line else len(raw.rstrip())
        start_chars = len(raw[: node.col_offset].decode(errors="ignore"))
        end_chars = len(raw[:end].decode(errors="ignore"))
        return cls(file, line, start_chars, end_chars)

    def render(self, label: str = "") -> str:
        """Show the line with carets under it; `linecache` also knows notebook cells."""
        text = linecache.getline(self.file, self.line).rstrip("\n")
        number = str(self.line)
        blank = " " * len(number)
        carets = " " * self.col + "^" * max(1, self.end_col - self.col)
        return "\n".join(
            [
                f"{blank}--> {self.file}:{self.line}:{self.col + 1}",
                f"{blank} |",
                f"{number} | {text}",
                f"{blank} | {carets} {label}".rstrip(),
            ]
        )


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence that belongs to an error, with its own place where it has one."""

    text: str
    span: Span | None = None
