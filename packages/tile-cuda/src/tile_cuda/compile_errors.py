"""The compiler's complaints, at the lines of the user's program that they are about."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tile_core.codegen import PrintedSource
from tile_core.errors import Span, ToolchainError

NAME = "kernel.cu"
"""What the printed text is called in the compiler's log."""

_SHOWN = 5
_HEAD = re.compile(r"^(?P<file>\S.*?)\((?P<line>\d+)\): (?P<kind>.*?error): (?P<text>.*)$")
_HOST = re.compile(r"^(?P<file>\S.*?):(?P<line>\d+):\d+: (?P<kind>.*?error): (?P<text>.*)$")
_USER = re.compile(r'^\s.* at line (?P<line>\d+) of "?(?P<file>.+?)"?$')
_SOURCE = re.compile(r"^<source (\d+)>$")
_NOISE = re.compile(r"^nvrtc: warning: Architectures prior to .* are deprecated")
_ASSEMBLY_HINT = "the assembler refuses an instruction: look for asm() in T.import_source"
_OPTION = re.compile(r"^nv(rtc: error|cc fatal +): (?P<text>.*option.*)$", re.MULTILINE)
_HOST_FUNCTION = "calling a __host__ function"


@dataclass(frozen=True, slots=True)
class Complaint:
    """One error of the compiler.

    Parameters
    ----------
    text
        Its first line.
    lines
        The refused line, and marks under it.
    file, line
        Where: the user's file, ``<source n>`` for C text, or the printed text.
    """

    text: str
    lines: tuple[str, ...]
    file: str
    line: int


def with_line_directives(source: PrintedSource) -> str:
    """Return the text such that compiler and profilers speak of the user's lines.

    Before   C[i] = 0.0f;  (line 30 of the text, printed for line 41 of matmul.py)
    After    #line 41 "matmul.py"
             C[i] = 0.0f;
             #line 31 "kernel.cu"
    """
    result: list[str] = []
    told: tuple[str, int] = (NAME, 1)  # what the compiler believes the next line to be
    for number, line in enumerate(source.text.split("\n"), 1):
        span = source.lines.get(number)
        place = (NAME, number) if span is None else (span.file, span.line)
        if place != told:
            result.append(f"#line {place[1]} {_quoted(place[0])}")
        result.append(line)
        told = (place[0], place[1] + 1)
    return "\n".join(result)


def _quoted(file: str) -> str:
    escaped = file.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def parse_complaints(log: str) -> tuple[Complaint, ...]:
    """Return the errors in the compiler's log, in its order.

    An error inside the device header counts for the line that used it.
    """
    found: list[Complaint] = []
    for block in re.split(r"\n\s*\n", log):
        lines = block.split("\n")
        for start, line in enumerate(lines):
            head = _HEAD.match(line) or _HOST.match(line)  # nvcc lets the host preprocess
            if head is None:
                continue
            rest = [text for text in lines[start + 1 :] if text.strip()]
            users = [user for text in rest if (user := _USER.match(text))]
            place = users[-1] if users else head
            shown = () if users else tuple(rest)
            found.append(Complaint(head["text"], shown, place["file"], int(place["line"])))
            break
    return tuple(found)


def refusal(source: PrintedSource, log: str, compiler: str, arch: str) -> ToolchainError:
    """Return the error that the compiler refused `source`.

    The first complaint gives the place: the user's line, or a line of the text given to
    `T.import_source`, which is shown.
    """
    option = _OPTION.search(log)
    if option is not None:
        return ToolchainError(
            f"{compiler}: {option['text']}",
            hint=f"compile_flags go to {_options_of(compiler)}",
        )
    complaints = parse_complaints(log)
    if not complaints:
        words = "\n".join(line for line in log.strip().splitlines() if not _NOISE.match(line))
        hint = _ASSEMBLY_HINT if "ptxas" in log else None
        return ToolchainError(f"{compiler} failed for {arch}:\n{words}", hint=hint)
    first = complaints[0]
    words = "\n".join(_shown(c) for c in complaints[:_SHOWN])
    more = len(complaints) - _SHOWN
    if more > 0:
        words += f"\nand {more} more"
    return ToolchainError(
        f"{compiler} does not accept the kernel's C++ for {arch}:\n{words}",
        span=span_of(source, first),
        hint=_hint(first),
    )


def _options_of(compiler: str) -> str:
    if compiler.startswith("nvcc"):
        return "nvcc"
    return "NVRTC; it has the options of nvcc that concern code for GPUs"


def _shown(complaint: Complaint) -> str:
    place = complaint.file
    if _SOURCE.match(place):
        place = "import_source"
    head = f"{place.rsplit('/', 1)[-1]}:{complaint.line}: error: {complaint.text}"
    return "\n".join((head, *complaint.lines))


def span_of(source: PrintedSource, complaint: Complaint) -> Span | None:
    """Return the user's place of a complaint; None inside C text or the printed text itself."""
    if _SOURCE.match(complaint.file):
        return None
    if complaint.file == NAME:
        return _user_span(source, complaint.line)
    here = (
        s for s in source.lines.values() if (s.file, s.line) == (complaint.file, complaint.line)
    )
    return next(here, None)


def _user_span(source: PrintedSource, line: int) -> Span | None:
    span = source.span_at(line)
    return None if span is None or _SOURCE.match(span.file) else span


def _hint(complaint: Complaint) -> str:
    if _HOST_FUNCTION in complaint.text:
        return "nvcc wants __device__ before functions given to T.import_source; NVRTC does not"
    if _SOURCE.match(complaint.file):
        return "lines are counted from the first of the text given to T.import_source"
    if "is undefined" in complaint.text:
        return "bring the function along: T.import_source('__device__ ...')"
    return "kernel.get_kernel_source() shows the whole text"
