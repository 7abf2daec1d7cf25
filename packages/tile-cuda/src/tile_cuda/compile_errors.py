"""How NVIDIA's compilers complain: NVRTC, nvcc and its host's preprocessor, the assembler."""

from __future__ import annotations

import re

from tile_core.codegen import PrintedSource
from tile_core.codegen.compiler_diagnostics import Complaint, refusal_of
from tile_core.errors import ToolchainError

NAME = "kernel.cu"
"""What the printed text is called in the compiler's log."""

_HEAD = re.compile(r"^(?P<file>\S.*?)\((?P<line>\d+)\): (?P<kind>.*?error): (?P<text>.*)$")
_HOST = re.compile(r"^(?P<file>\S.*?):(?P<line>\d+):\d+: (?P<kind>.*?error): (?P<text>.*)$")
_USER = re.compile(r'^\s.* at line (?P<line>\d+) of "?(?P<file>.+?)"?$')
_NOISE = re.compile(r"^nvrtc: warning: Architectures prior to .* are deprecated")
_ASSEMBLY_HINT = "the assembler refuses an instruction: look for asm() in T.import_source"
_OPTION = re.compile(r"^nv(rtc: error|cc fatal +): (?P<text>.*option.*)$", re.MULTILINE)
_HOST_FUNCTION = "calling a __host__ function"


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
    """Return the error that the compiler refused `source`: see `refusal_of`."""
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
        return ToolchainError(f"{compiler} failed for {arch}:\n{words}", hint=hint).of_text()
    head = f"{compiler} does not accept the kernel's C++ for {arch}:"
    return refusal_of(source, NAME, head, complaints, _hint)


def _options_of(compiler: str) -> str:
    if compiler.startswith("nvcc"):
        return "nvcc"
    return "NVRTC; it has the options of nvcc that concern code for GPUs"


def _hint(complaint: Complaint) -> str | None:
    if _HOST_FUNCTION in complaint.text:
        return "nvcc wants __device__ before functions given to T.import_source; NVRTC does not"
    if "is undefined" in complaint.text and not complaint.is_in_c_text:
        return "bring the function along: T.import_source('__device__ ...')"
    return None
