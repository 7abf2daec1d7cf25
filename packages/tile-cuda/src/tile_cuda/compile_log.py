"""What the assembler of NVIDIA GPUs tells about kernels: registers, spills, what it gave up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from tile_core.simt.resources import Resources

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

    Parameters
    ----------
    log
        Of a compilation with ``--ptxas-options=-v``; other lines are passed over.
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
