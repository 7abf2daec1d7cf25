"""What compilers complain of in printed kernels, at the lines of the user's program."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tile_core.codegen.source import PrintedSource
from tile_core.errors import Span, ToolchainError
from tile_core.records import dataclass

_SHOWN = 5
_SOURCE = re.compile(r"^<source (\d+)>$")


@dataclass(frozen=True, slots=True)
class Complaint:
    """One error of a compiler.

    `text` is its first line, `lines` the refused line and marks under it. It is about a line of
    the user's file, of the C text ``<source n>``, or of the printed text.
    """

    text: str
    lines: tuple[str, ...]
    file: str
    line: int

    @property
    def is_in_c_text(self) -> bool:
        """Whether it is about text that was given to `T.import_source`."""
        return _SOURCE.match(self.file) is not None


def with_line_directives(source: PrintedSource, name: str) -> str:
    """Return the text such that compiler and profilers speak of the user's lines.

    Before   C[i] = 0.0f;  (line 30 of the text, printed for line 41 of matmul.py)
    After    #line 41 "matmul.py"
             C[i] = 0.0f;
             #line 31 "kernel.cu"
    """
    result: list[str] = []
    told: tuple[str, int] = (name, 1)  # what the compiler believes the next line to be
    for number, line in enumerate(source.text.split("\n"), 1):
        span = source.lines.get(number)
        place = (name, number) if span is None else (span.file, span.line)
        if place != told:
            result.append(f"#line {place[1]} {_quoted(place[0])}")
        result.append(line)
        told = (place[0], place[1] + 1)
    return "\n".join(result)


def _quoted(file: str) -> str:
    escaped = file.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def refusal_of(
    source: PrintedSource,
    name: str,
    head: str,
    complaints: Sequence[Complaint],
    hint: Callable[[Complaint], str | None],
) -> ToolchainError:
    """Return the error that a compiler refused `source`.

    The first complaint gives the place: the user's line, or a line of the text given to
    `T.import_source`, which is shown.

    `name` is what the printed text was called, `head` the first line of the error, `hint` what
    to do about the first of `complaints`; None if nothing better than to look at the text.
    """
    first = complaints[0]
    words = "\n".join(_shown(c) for c in complaints[:_SHOWN])
    more = len(complaints) - _SHOWN
    if more > 0:
        words += f"\nand {more} more"
    return ToolchainError(
        f"{head}\n{words}",
        span=span_of(source, name, first),
        hint=hint(first) or _general_hint(first),
    ).of_text()


def _shown(complaint: Complaint) -> str:
    place = "import_source" if complaint.is_in_c_text else complaint.file
    head = f"{place.rsplit('/', 1)[-1]}:{complaint.line}: error: {complaint.text}"
    return "\n".join((head, *complaint.lines))


def _general_hint(complaint: Complaint) -> str:
    if complaint.is_in_c_text:
        return "lines are counted from the first of the text given to T.import_source"
    return "kernel.get_kernel_source() shows the whole text"


def span_of(source: PrintedSource, name: str, complaint: Complaint) -> Span | None:
    """Return the user's place of a complaint; None inside C text or the printed text itself."""
    if complaint.is_in_c_text:
        return None
    if complaint.file == name:
        span = source.span_at(complaint.line)
        return None if span is None or _SOURCE.match(span.file) else span
    here = (
        s for s in source.lines.values() if (s.file, s.line) == (complaint.file, complaint.line)
    )
    return next(here, None)


def line_of_kernel(source: PrintedSource, symbol: str) -> int:
    """Return the line of the text that defines the kernel `symbol`."""
    for number, line in enumerate(source.text.splitlines(), 1):
        if line.startswith("TILE_KERNEL(") and f" {symbol}(" in line:
            return number
    return 1
