"""How clang complains: lines of the text, of the user's program, of functions in C, of assembly."""

from __future__ import annotations

import re
from itertools import takewhile

from tile_core.codegen import PrintedSource
from tile_core.codegen.compiler_diagnostics import Complaint, refusal_of
from tile_core.errors import ToolchainError
from tile_hip.compiler import NAME

_HEAD = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):\d+: (?P<kind>\w[\w ]*): (?P<text>.*)$")
_BAR = re.compile(r"^\s*(\d+ )?\s*\|")
_END = re.compile(r"^$|^\S+:\d+:|^\d+ (error|warning)s? |^In file included ")
_OPTION = re.compile(r"^(?:[^:\s]+: )?error: (?P<text>.*(?:argument|option).*)$", re.MULTILINE)
_ASSEMBLY = re.compile(r"^(kernel\.s|<inline asm>|<unknown>|<instantiation>):\d+", re.MULTILINE)
_ERRORS = ("error", "fatal error")


def parse_complaints(log: str) -> tuple[Complaint, ...]:
    """Return the errors in clang's log, in its order.

    An error inside the device header counts for the line that used it: the last one that
    clang names in the notes that follow.
    """
    found: list[Complaint] = []
    lines = log.split("\n")
    heads = [(at, head) for at, line in enumerate(lines) if (head := _HEAD.match(line))]
    user: re.Match[str] | None = None
    for number, (at, head) in enumerate(heads):
        if head["kind"] not in _ERRORS:
            continue
        if not _is_header(head["file"]):
            found.append(_complaint(head, head, _marks(lines[at + 1 :])))
            continue
        notes = takewhile(lambda one: one[1]["kind"] == "note", heads[number + 1 :])
        users = [note for _, note in notes if not _is_header(note["file"])]
        user = users[-1] if users else user  # told once for all errors of one use
        found.append(_complaint(head, user or head, ()))
    return tuple(found)


def _complaint(head: re.Match[str], place: re.Match[str], shown: tuple[str, ...]) -> Complaint:
    return Complaint(head["text"], shown, place["file"], int(place["line"]))


def _is_header(file: str) -> bool:
    return file.endswith(".h")


def _marks(lines: list[str]) -> tuple[str, ...]:
    """Return the refused line and the marks under it, without numbers of lines.

    Before LLVM 17 there is no bar in front of them.
    """
    shown = tuple(takewhile(_BAR.match, lines))
    if shown:
        return tuple(line.split("|", 1)[1].removeprefix(" ") for line in shown)
    return tuple(takewhile(lambda line: not _END.match(line), lines))


def refusal(source: PrintedSource, log: str, compiler: str, arch: str) -> ToolchainError:
    """Return the error that the compiler refused `source`: see `refusal_of`."""
    complaints = parse_complaints(log)
    if _ASSEMBLY.search(log):
        words = "\n".join(line for line in log.strip().splitlines())
        return ToolchainError(
            f"{compiler} failed to assemble for {arch}:\n{words}",
            hint="the assembler refuses an instruction: look for asm() in T.import_source",
        ).of_text()
    if complaints:
        head = f"{compiler} does not accept the kernel's C++ for {arch}:"
        return refusal_of(source, NAME, head, complaints, _hint)
    option = _OPTION.search(log)
    if option is not None:
        return ToolchainError(f"{compiler}: {option['text']}", hint="compile_flags go to clang")
    return ToolchainError(f"{compiler} failed for {arch}:\n{log.strip()}").of_text()


def _hint(complaint: Complaint) -> str | None:
    if "undeclared identifier" in complaint.text and not complaint.is_in_c_text:
        return "bring the function along: T.import_source('__device__ ...')"
    return None
