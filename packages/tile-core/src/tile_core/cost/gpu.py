"""The time of a kernel on a GPU: units, waves of blocks, latencies that nothing hides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tile_core.cost.cost_request import CostQuestion, launches
from tile_core.cost.estimate import Estimate, Part, amount
from tile_core.cost.gpu_issue import Issue, Issued
from tile_core.cost.gpu_memory import bytes_from_memory
from tile_core.cost.gpu_pipelines import Pipeline, pipelines_of
from tile_core.cost.gpu_speeds import GpuSpeeds, speeds_of
from tile_core.cost.iteration_spaces import Space
from tile_core.cost.kernel_work import tensor_bytes, total_traffic
from tile_core.cost.roofline import merged_flops, merged_notes, totals
from tile_core.cost.statement_walk import visit
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Call, Const
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Alloc, Kernel, Launch, Let
from tile_core.machine import SimtMachine
from tile_core.passes.warp_specialisation.register_reallocation import registers_at_entry
from tile_core.simt.program import DeviceFunction, DeviceProgram
from tile_core.simt.resources import Occupancy, Resources
from tile_core.target import Target

QUARTERS = 4
"""A multiprocessor is four that share a memory: one warp uses a quarter of its units at most."""

INTERFERENCE = 0.15
"""Part of the work of other units that delays the busiest one: warps do one thing at a time."""

JOINT_INTERFERENCE = 0.05
"""The same where MMAs are asynchronous."""

SHARPNESS = 4
"""How well things overlap: two of equal length take a fifth longer than one."""

MEMORY_SHARE = 0.92
"""What kernels reach of the stated bandwidth of memory: it refreshes, and turns around."""

PRODUCT_CYCLES = 30.0
"""From the factors of the last product of a round to its sums: other products hide the rest."""

BLOCK_CYCLES = 400.0
"""To begin a block and to end it."""

REGISTERS_BESIDE = 40
"""Registers of a thread for addresses, loops and fragments of operands, next to its tiles."""


@dataclass(frozen=True, slots=True)
class LaunchTime:
    """What one launch takes, in milliseconds unless a name says otherwise.

    `units` are of each unit, if all multiprocessors were equally busy; `waves_ms` of all waves
    of blocks.
    """

    issued: Issued
    units: Mapping[str, float]
    memory: float
    memory_bytes: float
    waves_ms: float
    waves: float
    blocks: float
    resident: Occupancy
    pipelines: Sequence[Pipeline]
    registers: int
    spilled: int
    shared_bytes: int
    launch_ms: float

    @property
    def milliseconds(self) -> float:
        """All of it."""
        return overlapped(self.waves_ms, self.memory) + self.launch_ms


def estimate_lowered(
    question: CostQuestion,
    lower: Callable[[Kernel, Target, Any], DeviceProgram],
    products: Iterable[GpuSpeeds],
) -> Estimate:
    """Return the time that the model expects of a kernel; it is lowered, not compiled.

    `lower` is the backend's; `products` is what is known of the machines that it makes programs
    for.

    Raises
    ------
    TileError
        If the kernel cannot be lowered, or nothing is known of the speed of the GPU.
    """
    program = lower(question.planned, question.target, question.options)
    speeds = speeds_of(products, program.machine.name, question.machine)
    return estimate_program(question, program, speeds)


def estimate_program(question: CostQuestion, program: DeviceProgram, speeds: GpuSpeeds) -> Estimate:
    """Return the time that the model expects of a lowered kernel."""
    tiles = [*launches(question.planned, question.sizes)]
    lowered = [*_lowered(program, question)]
    times = [
        _launch_time(function, space, launch, program.machine, speeds)
        for (function, space), (launch, _) in zip(lowered, tiles, strict=True)
    ]
    return _told(question, speeds, times)


def _lowered(program: DeviceProgram, question: CostQuestion) -> list[tuple[DeviceFunction, Space]]:
    space, found = Space(question.sizes), []
    for step in program.steps:
        if isinstance(step, Let):
            space = space.named(step.var, step.value)
        elif isinstance(step, DeviceFunction):
            found.append((step, space))
    return found


def _launch_time(
    function: DeviceFunction, space: Space, tiles: Launch, machine: SimtMachine, speeds: GpuSpeeds
) -> LaunchTime:
    counting = Issue(function, machine)
    visit(function.launch, space, counting, with_threads=True)
    issued = counting.found
    blocks = float(math.prod(max(0, space.constant(n) or 0) for n in function.launch.grid))
    registers = _registers(function, machine)
    needs = Resources(name=function.name, registers=registers)
    resident = needs.occupancy(machine, function.threads, function.shared_bytes)
    at_once = max(1, resident.blocks)
    units = unit_cycles(issued, machine, speeds)
    pipelines = pipelines_of(tiles, space, function, blocks)
    spilled = 0 if _moved_registers(function) else registers_wanted(function) - registers
    iterations = max(1.0, math.fsum(p.iterations for p in pipelines))
    spills = 2 * 4 * max(0, spilled) * function.threads * blocks * iterations
    units["cache"] += spills / speeds.cache_bytes
    each = {name: n / max(1.0, blocks) for name, n in units.items()}
    wave = _Wave(each, issued, pipelines, function.threads, blocks, machine, speeds)
    waves = blocks / (speeds.multiprocessors * at_once)
    whole = math.floor(waves)
    rest = blocks - whole * speeds.multiprocessors * at_once
    cycles = whole * wave.cycles(at_once)
    if rest > 0:
        cycles += wave.cycles(math.ceil(rest / speeds.multiprocessors))
    sizes = _sizes(function, space)
    together = speeds.multiprocessors * at_once
    missed = bytes_from_memory(issued.accesses, sizes, speeds.cache_size, together)
    per_ms = speeds.clock_ghz * 1e6
    return LaunchTime(
        issued=issued,
        units={n: c / speeds.multiprocessors / per_ms for n, c in units.items()},
        memory=missed / (speeds.memory_gbps * MEMORY_SHARE) / 1e6,
        memory_bytes=missed,
        waves_ms=cycles / per_ms,
        waves=waves,
        blocks=blocks,
        resident=resident,
        pipelines=pipelines,
        registers=registers,
        spilled=spilled,
        shared_bytes=function.shared_bytes,
        launch_ms=speeds.launch_us / 1e3,
    )


def unit_cycles(issued: Issued, machine: SimtMachine, speeds: GpuSpeeds) -> dict[str, float]:
    """Return the cycles for which one multiprocessor would be busy with all blocks, by unit."""
    warp, n = machine.warp_size, issued.instructions
    products = math.fsum(
        flops / (speeds.product_rate(dtype) * (1.0 if joint else speeds.warp_share))
        for (dtype, joint), flops in issued.flops.items()
    )
    fetched = math.fsum(a.fetched for a in issued.accesses)
    return {
        "products": products,
        "float32": n["float32"] * warp / speeds.lanes,
        "float64": n["float64"] * warp / speeds.double_lanes,
        "integer": n["integer"] * warp / speeds.integer_lanes,
        "functions": n["functions"] * warp / speeds.function_lanes,
        "shared": issued.shared_cycles * (4 * machine.banks) / speeds.shared_bytes,
        "cache": fetched / speeds.cache_bytes,
        "issue": math.fsum(n.values()) / speeds.issue,
    }


def overlapped(*times: float) -> float:
    """Return the time of things that overlap: a little more than the longest.

    The nearer the others are to it, the more often they delay it.
    """
    longest = max(times, default=0.0)
    if not longest:
        return 0.0
    return float(longest * math.fsum((t / longest) ** SHARPNESS for t in times) ** (1 / SHARPNESS))


class _Wave:
    """How long blocks take that are on one multiprocessor together."""

    def __init__(
        self,
        each: Mapping[str, float],
        issued: Issued,
        pipelines: Sequence[Pipeline],
        threads: int,
        blocks: float,
        machine: SimtMachine,
        speeds: GpuSpeeds,
    ) -> None:
        busiest = max(each.values(), default=0.0)
        joint = any(is_joint for _, is_joint in issued.flops)
        share = JOINT_INTERFERENCE if joint else INTERFERENCE
        self.busy = busiest + share * (math.fsum(each.values()) - busiest)
        self.warps = -(-threads // machine.warp_size)
        self.pipelines, self.speeds = pipelines, speeds
        self.barriers = issued.barriers / max(1.0, blocks)
        reads = [a for a in issued.accesses if not a.is_write]
        self.first = speeds.memory_cycles if reads else 0.0
        ahead = any(p.ahead for p in pipelines)
        stops = {
            a.iterations for a in reads if a.is_waited_for and not (ahead and a.iterations > 1)
        }
        self.stops = max(stops, default=0.0)

    def cycles(self, blocks: int) -> float:
        """Return the cycles until `blocks` blocks that began together have ended.

        While one waits the others work; what they have no work for is waited for in vain.
        """
        own = self.busy * QUARTERS / min(QUARTERS, self.warps)
        others = max(0.0, blocks * self.busy - own)
        return own + overlapped(others, self._waiting(own)) + BLOCK_CYCLES

    def _waiting(self, own: float) -> float:
        """Return the cycles for which a block that is alone, and works for `own`, waits."""
        speeds = self.speeds
        waiting = self.first + self.barriers * speeds.barrier_cycles
        iterations = math.fsum(p.iterations for p in self.pipelines)
        if not iterations:
            return waiting + max(0.0, self.stops - 1) * speeds.memory_cycles
        each = own / iterations
        for p in self.pipelines:
            late = speeds.memory_cycles / p.ahead - each if p.ahead else speeds.memory_cycles
            waiting += p.iterations * max(speeds.shared_cycles + PRODUCT_CYCLES, late)
        return waiting


def registers_wanted(function: DeviceFunction) -> int:
    """Return about how many registers a thread needs for its tiles and beside them."""
    bits = sum(
        (n.buffer.nbytes or 0) * 8
        for n in nodes_of(function.launch.body, Alloc)
        if n.buffer.scope in (Scope.LOCAL, Scope.FRAGMENT)
    )
    return REGISTERS_BESIDE + math.ceil(bits / 32)


def _registers(function: DeviceFunction, machine: SimtMachine) -> int:
    """Return about how many registers the compiler gives to a thread: one block always fits."""
    limits = machine.multiprocessor
    most = machine.registers
    moved = _moved_registers(function)
    if limits is not None and moved:
        entry = registers_at_entry(limits.registers, function.threads, function.resident)
        return min(entry, max(moved))
    if limits is not None:
        warps = -(-function.threads // machine.warp_size)
        warps = -(-warps // QUARTERS) * QUARTERS
        unit = limits.register_unit // machine.warp_size
        warps *= function.resident
        most = min(most, limits.registers // (warps * machine.warp_size) // unit * unit)
    return min(most, registers_wanted(function))


def _moved_registers(function: DeviceFunction) -> list[int]:
    """Return what warps that multiply have once those that copy have given them registers."""
    calls = nodes_of(function.launch.body, Call)
    taken = (n.args[0] for n in calls if n.function == "device:registers_increase")
    return [int(n.value) for n in taken if isinstance(n, Const)]


def _sizes(function: DeviceFunction, space: Space) -> dict[Buffer, float]:
    """Return the bytes of each tensor, by the flat tensor of the program and by its own."""
    found: dict[Buffer, float] = {}
    for param, argument in zip(function.params, function.arguments, strict=True):
        if isinstance(argument, Buffer):
            found[argument] = tensor_bytes(argument, space)
            if isinstance(param, Buffer):
                found[param] = found[argument]
        elif hasattr(argument, "tensor"):
            found[argument.tensor] = tensor_bytes(argument.tensor, space)
    return found


# Telling -------------------------------------------------------------------------------------

_NAMES = MappingProxyType(
    {
        "products": "matrix products",
        "float32": "arithmetic",
        "float64": "float64 arithmetic",
        "integer": "integers and addresses",
        "functions": "functions",
        "shared": "shared memory",
        "cache": "second-level cache",
        "issue": "issue of instructions",
    }
)


def _told(question: CostQuestion, speeds: GpuSpeeds, times: Sequence[LaunchTime]) -> Estimate:
    works = question.work()
    total = math.fsum(t.milliseconds for t in times)
    parts = _parts(times, speeds)
    first = max(times, key=lambda t: t.milliseconds, default=None)
    fetched = math.fsum(a.fetched for t in times for a in t.issued.accesses)
    shared = math.fsum(t.issued.shared_cycles for t in times) * speeds.shared_bytes
    notes = [*merged_notes(works), *(n for t in times for n in t.issued.notes)]
    return Estimate(
        kernel=question.kernel.name,
        target=str(question.target),
        machine=speeds.name,
        milliseconds=total,
        parts=tuple(sorted(parts, key=lambda p: -p.milliseconds)),
        bound=max(parts, key=lambda p: p.milliseconds).name if parts else "nothing",
        flops=merged_flops(works),
        nbytes={
            **total_traffic(works),
            "second-level cache": fetched,
            "memory": math.fsum(t.memory_bytes for t in times),
            "shared memory": shared,
        },
        occupancy=first.resident.fraction if first else None,
        occupancy_why=_occupancy_why(first) if first else "",
        notes=tuple(dict.fromkeys((*notes, *(n for t in times for n in _warnings(t))))),
    )


def _parts(times: Sequence[LaunchTime], speeds: GpuSpeeds) -> list[Part]:
    whys = _whys(times, speeds)
    units = totals(t.units for t in times)
    parts = [Part(_NAMES[n], ms, whys[n]) for n, ms in units.items() if ms > 0]
    memory = math.fsum(t.memory for t in times)
    nbytes = math.fsum(t.memory_bytes for t in times)
    if memory:
        parts.append(
            Part(
                "memory",
                memory,
                f"{amount(nbytes)}B at {MEMORY_SHARE:.0%} of {speeds.memory_gbps:g} GB/s",
            )
        )
    busiest = max((p.milliseconds for p in parts), default=0.0)
    slack = math.fsum(overlapped(t.waves_ms, t.memory) for t in times) - busiest
    if slack > 0:
        parts.append(Part("waiting", slack, whys["waiting"]))
    launched = math.fsum(t.launch_ms for t in times)
    parts.append(Part("launch", launched, f"{len(times)} x {speeds.launch_us:g} us"))
    return parts


def _whys(times: Sequence[LaunchTime], speeds: GpuSpeeds) -> dict[str, str]:
    flops = totals(t.issued.flops for t in times)
    n = totals(t.issued.instructions for t in times)
    cycles = math.fsum(t.issued.shared_cycles for t in times)
    ideal = math.fsum(t.issued.shared_ideal for t in times)
    fetched = math.fsum(a.fetched for t in times for a in t.issued.accesses)
    asked = math.fsum(a.nbytes for t in times for a in t.issued.accesses)
    products = ", ".join(
        f"{amount(value)}FLOP of {dtype} at "
        f"{speeds.product_rate(dtype) * (1 if joint else speeds.warp_share):.0f} per cycle"
        for (dtype, joint), value in flops.items()
    )
    long = max(times, key=lambda t: t.milliseconds, default=None)
    return {
        "products": products,
        **{
            unit: f"{amount(n.get(unit, 0))}instructions of warps"
            for unit in ("float32", "float64", "integer", "functions")
        },
        "shared": f"{amount(cycles)}cycles, {cycles / max(ideal, 1e-9):.2f} of those without "
        "conflicts of banks",
        "cache": f"{amount(fetched)}B in sectors, {asked / max(fetched, 1e-9):.0%} of them used",
        "issue": f"{amount(math.fsum(n.values()))}instructions at {speeds.issue:g} per cycle",
        "waiting": _waiting_why(long, speeds) if long else "",
    }


def _waiting_why(t: LaunchTime, speeds: GpuSpeeds) -> str:
    said = [f"{t.blocks:g} blocks are {t.waves:.2f} waves"]
    for p in t.pipelines:
        said.append(
            f"{p.iterations:.3g} iterations, copies {p.ahead} ahead of "
            f"{speeds.memory_cycles:g} cycles"
        )
    return "; ".join(said)


def _occupancy_why(t: LaunchTime) -> str:
    return (
        f"{t.resident.blocks} blocks of {t.shared_bytes} bytes of shared memory and about "
        f"{t.registers} registers a thread; limited by {t.resident.limit}"
    )


def _warnings(t: LaunchTime) -> list[str]:
    found = []
    if t.spilled > 0:
        found.append(f"about {t.spilled} values of each thread do not find a register")
    for p in t.pipelines:
        if p.wanted > 1 and p.ahead + 1 < p.wanted:
            found.append(f"{p.wanted} stages were asked for, tiles have {p.ahead + 1}")
    return found
