"""What NVIDIA's compilers and its assembler say: complaints, and what kernels need."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from tile_core.codegen import PrintedSource
from tile_core.codegen.compiler_diagnostics import Complaint, refusal_of
from tile_core.errors import ToolchainError
from tile_core.simt.resources import Resources

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
            f"{compiler}: {option['text']}", hint=f"compile_flags go to {_options_of(compiler)}"
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


_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")
_SHARED = re.compile(r"(\d+) bytes smem")
_CONSTANT = re.compile(r"(\d+) bytes cmem\[\d+\]")
_BARRIERS = re.compile(r"used (\d+) barriers")
_REMARK = re.compile(r"\((C75\d\d)\)\s*(.*)")
_OF_KERNEL = re.compile(r"function '(\w+)'")


def parse_resources(log: str) -> Mapping[str, Resources]:
    """Return what each kernel of a compilation needs, by its symbol.

    The log is that of a compilation with ``--ptxas-options=-v``; other lines are passed over.
    """
    found: dict[str, Resources] = {}
    remarks: list[tuple[str | None, tuple[str, str]]] = []
    current = Resources(name="")
    for line in log.splitlines():
        if entry := _ENTRY.search(line):
            current = Resources(name=entry[1])
        elif frame := _FRAME.search(line):
            stack, stores, loads = map(int, frame.groups())
            current = replace(current, stack_bytes=stack, spill_stores=stores, spill_loads=loads)
        elif used := _USED.search(line):
            current = _with_usage(current, int(used[1]), used[2])
        if remark := _REMARK.search(line):
            kernel = _OF_KERNEL.search(remark[2])
            remarks.append((kernel[1] if kernel else None, (remark[1], remark[2].strip())))
        if current.name:
            found[current.name] = current
    return {name: _with_remarks(needs, remarks) for name, needs in found.items()}


def _with_usage(needs: Resources, registers: int, rest: str) -> Resources:
    shared, barriers = _SHARED.search(rest), _BARRIERS.search(rest)
    return replace(
        needs,
        registers=registers,
        shared_bytes=int(shared[1]) if shared else 0,
        constant_bytes=sum(map(int, _CONSTANT.findall(rest))),
        barriers=int(barriers[1]) if barriers else 0,
    )


def _with_remarks(needs: Resources, remarks: list[tuple[str | None, tuple[str, str]]]) -> Resources:
    """Give a kernel the remarks that name it, and those that name none."""
    own = dict.fromkeys(text for kernel, text in remarks if kernel in (None, needs.name))
    return replace(needs, remarks=tuple(own)) if own else needs


# ptxas gives up asynchronous matrix products, or ignores what was asked of registers.
_COSTLY = frozenset({"C7504", "C7508", "C7510", "C7514", "C7515", "C7519", "C7520"})


def warnings_of(needs: Resources) -> tuple[str, ...]:
    """Return what the author of a kernel should know, in sentences; nothing if all is well."""
    found = []
    if needs.spill_stores or needs.spill_loads:
        found.append(
            f"kernel {needs.name!r} needs more than its {needs.registers} registers per thread: "
            f"{needs.spill_stores} bytes are written to local memory and {needs.spill_loads} read "
            "back; use smaller tiles or more threads"
        )
    for code, text in needs.remarks:
        if code in _COSTLY:
            found.append(f"kernel {needs.name!r} loses speed ({code}): {text}")
    return tuple(found)
