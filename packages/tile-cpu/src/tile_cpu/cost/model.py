"""The time of a kernel on an x86 processor: cycles of blocks, spread over threads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tile_core.cost.cost_request import CostQuestion, launches
from tile_core.cost.estimate import Estimate, Part, amount
from tile_core.cost.iteration_spaces import Space
from tile_core.cost.kernel_work import count_launch, total_traffic
from tile_core.cost.roofline import merged_flops, merged_notes
from tile_core.cost.statement_walk import visit
from tile_core.ir.stmt import Launch
from tile_core.passes.infer_layouts import infer_layouts
from tile_cpu.cost.host import speeds_of
from tile_cpu.cost.memory import levels_of
from tile_cpu.cost.statements import Timing
from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.lowering.buffer_addresses import admits_in
from tile_cpu.lowering.storage import require_scratch
from tile_cpu.machine import machine
from tile_cpu.openmp_threads import INLINE_BELOW_NS, num_threads
from tile_cpu.speeds import CpuSpeeds, with_cores

CALL_US = 1.0
"""From the call to the first block, and back."""

WAKE_US = 4.0
"""Until other threads have taken part and are waited for."""

BLOCK_NS = 80.0
"""Around each block that a thread takes: the counter, scratch, streams that begin anew."""

INLINE_BLOCK_NS = 5.0
"""The same where one thread runs all blocks because they are short."""


@dataclass(frozen=True, slots=True)
class LaunchTime:
    """What one launch takes."""

    core_ms: Mapping[str, float]  # of all blocks on one core, by what it is spent on
    threads: int
    blocks: float
    compute_ms: float  # on all threads, the last of which ends when others have nothing left
    memory_ms: float  # in which memory delivers what is not in a cache
    memory_bytes: float
    overhead_ms: float  # of the call and of waking threads

    @property
    def milliseconds(self) -> float:
        """All of it."""
        return max(self.compute_ms, self.memory_ms) + self.overhead_ms


def estimate(question: CostQuestion) -> Estimate:
    """Return the time that the model expects of a kernel on the target's processor.

    Raises
    ------
    TileError
        If the kernel cannot be lowered for it, or nothing is known of its speed.
    """
    planned, target = question.planned, question.target
    require_scratch(planned)
    infer_layouts(planned, target, question.options.rules, admits_in(planned))
    cpu = machine(target.arch)
    threads = question.options.threads or num_threads()
    row = with_cores(speeds_of(target.arch, question.machine), threads)
    notes: dict[str, None] = {}
    times = [
        _launch_time(launch, space, cpu, row, threads, notes)
        for launch, space in launches(planned, question.sizes)
    ]
    return _told(question, row, times, tuple(notes))


def _launch_time(
    launch: Launch,
    space: Space,
    cpu: CpuMachine,
    row: CpuSpeeds,
    threads: int,
    notes: dict[str, None],
) -> LaunchTime:
    work = count_launch(launch, space)
    levels = levels_of(launch, work.accesses, space, cpu, row)
    timing = Timing(cpu, row, levels)
    visit(launch, space, timing)
    notes.update(timing.notes)
    blocks = math.prod(max(0, space.constant(n) or 0) for n in launch.grid)
    core = {name: n / row.clock_ghz / 1e6 for name, n in timing.cycles.items()}
    is_short = math.fsum(core.values()) * 1e6 < INLINE_BELOW_NS or blocks <= 1
    core["blocks"] = blocks * (INLINE_BLOCK_NS if is_short else BLOCK_NS) / 1e6
    alone = math.fsum(core.values())
    used = 1 if is_short else threads
    compute = alone * _imbalance(int(blocks), used) / used
    missed = 0.0  # where all tensors fit into a cache, nothing comes from memory
    if levels.far.name == "memory":
        both = work.nbytes(is_write=False) + work.nbytes(is_write=True)
        missed = min(both, levels.footprint)
    gbps = min(row.socket_gbps, used * row.memory_gbps)
    overhead = (CALL_US + (WAKE_US if used > 1 else 0.0)) / 1e3
    return LaunchTime(core, used, blocks, compute, missed / gbps / 1e6, missed, overhead)


def _imbalance(blocks: int, threads: int) -> float:
    """Return how much longer the last thread runs than the average one.

    Threads take blocks from a counter. Equal blocks leave some threads idle in the last round;
    of unequal ones the longest that comes last matters, about half of the average.
    """
    if threads <= 1 or blocks <= 0:
        return 1.0
    rounds = math.ceil(blocks / threads)
    return rounds * threads / blocks


def _told(
    question: CostQuestion, row: CpuSpeeds, times: list[LaunchTime], notes: tuple[str, ...]
) -> Estimate:
    works = question.work()
    spent: dict[str, float] = {}
    for t in times:
        share = t.compute_ms / max(math.fsum(t.core_ms.values()), 1e-12)
        for name, ms in t.core_ms.items():
            spent[name] = spent.get(name, 0.0) + ms * share
    parts = [Part(_NAMES[n], ms, _WHY[n]) for n, ms in spent.items() if ms > 0]
    missed = math.fsum(t.memory_bytes for t in times)
    if missed:
        why = f"{amount(missed)}B at {row.socket_gbps:g} GB/s"
        parts.append(Part("memory", math.fsum(t.memory_ms for t in times), why))
    calls = math.fsum(t.overhead_ms for t in times)
    parts.append(Part("calls", calls, f"{len(times)} launches"))
    total = math.fsum(t.milliseconds for t in times)
    threads = max((t.threads for t in times), default=1)
    blocks = sum(t.blocks for t in times)
    busy = math.fsum(math.fsum(t.core_ms.values()) for t in times)
    compute = math.fsum(t.compute_ms for t in times)
    parts.sort(key=lambda p: -p.milliseconds)
    return Estimate(
        kernel=question.kernel.name,
        target=str(question.target),
        machine=row.name,
        milliseconds=total,
        parts=tuple(parts),
        bound=parts[0].name,
        flops=merged_flops(works),
        nbytes={**total_traffic(works), "memory": missed},
        occupancy=min(1.0, busy / max(compute * threads, 1e-12)),
        occupancy_why=f"{blocks:g} blocks on {threads} threads",
        notes=tuple(dict.fromkeys((*notes, *merged_notes(works)))),
    )


_NAMES = {
    "multiply": "matrix products",
    "edges": "accumulators in and out",
    "pack": "packing operands",
    "arithmetic": "arithmetic",
    "copies": "copies",
    "reductions": "reductions",
    "loops": "loops",
    "wait": "waiting for caches",
    "blocks": "blocks",
}
_WHY = {
    "multiply": "multiply-adds on vectors",
    "edges": "accumulators loaded, stored and waited for around the loops along K",
    "pack": "operands packed into panels",
    "arithmetic": "loops over elements, with their loads and stores",
    "copies": "tiles moved between tensors and scratch",
    "reductions": "rows summed up",
    "loops": "iterations and conditions",
    "wait": "data that arrives later than it could be used",
    "blocks": "to take each, and to begin its streams",
}
