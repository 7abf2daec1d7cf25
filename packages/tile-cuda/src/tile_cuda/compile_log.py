"""What the assembler tells about a kernel: registers, spills, stack, and what it gave up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tile_cuda.machine import Architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What one kernel needs, as ``ptxas -v`` reports it.

    Parameters
    ----------
    name
        The kernel's symbol.
    registers
        32-bit registers of one thread.
    stack_bytes
        Local memory of one thread: spilled registers, and arrays indexed at run time.
    spill_stores, spill_loads
        Bytes written and read because registers did not suffice.
    shared_bytes
        Static shared memory; what the launch asks for comes on top.
    constant_bytes
        Constant memory: parameters and tables.
    barriers
        Named barriers of the block that are taken.
    remarks
        Codes and words of performance that the assembler gave up, such as
        ``("C7510", "Potential Performance Loss: ...")``.
    resident
        How many blocks of a launch run at once on one multiprocessor; None where only the
        function is known, not its launch.
    """

    name: str
    registers: int = 0
    stack_bytes: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared_bytes: int = 0
    constant_bytes: int = 0
    barriers: int = 0
    remarks: tuple[tuple[str, str], ...] = ()
    resident: Occupancy | None = None

    def occupancy(self, arch: Architecture, threads: int, shared_bytes: int = 0) -> Occupancy:
        """Return how many blocks of `threads` threads run at once on one multiprocessor.

        Parameters
        ----------
        shared_bytes
            Shared memory that the launch asks for, per block.
        """
        return occupancy(self, arch, threads, shared_bytes)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How full one multiprocessor can get.

    Parameters
    ----------
    blocks
        Blocks that are resident at once; 0 if not even one fits.
    warps, most_warps
        Their warps, and how many the multiprocessor holds at most.
    limit
        What stops another block: ``"threads"``, ``"blocks"``, ``"registers"`` or
        ``"shared memory"``.
    """

    blocks: int
    warps: int
    most_warps: int
    limit: str

    @property
    def fraction(self) -> float:
        """Resident warps, as a part of the most."""
        return self.warps / self.most_warps


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


def cautions(needs: Resources) -> tuple[str, ...]:
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


def occupancy(
    needs: Resources, arch: Architecture, threads: int, shared_bytes: int = 0
) -> Occupancy:
    """Return how many blocks run at once on one multiprocessor; see `Resources.occupancy`.

    Registers are given to warps in units, from one of the four quarters of the multiprocessor
    each. CUDA C++ Best Practices Guide, "Calculating Occupancy".
    """
    unit, limits = arch.simt.warp_size, arch.multiprocessor
    warps = -(-threads // unit)
    most_warps = limits.threads // unit
    per_warp = _round_up(max(needs.registers, 1) * unit, limits.register_unit)
    warps_by_registers = limits.registers // 4 // per_warp * 4
    shared = _round_up(needs.shared_bytes + shared_bytes + limits.reserved_bytes, 128)
    fits = {
        "threads": most_warps // warps,
        "blocks": limits.blocks,
        "registers": warps_by_registers // warps,
    }
    if shared:
        fits["shared memory"] = limits.shared_bytes // shared
    limit = min(fits, key=lambda name: fits[name])
    blocks = fits[limit]
    return Occupancy(blocks, blocks * warps, most_warps, limit)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
