"""Where elements come from: which cache is near enough for the tensors and tiles of a launch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tile_core.cost.iteration_spaces import Space
from tile_core.cost.kernel_work import Access, tensor_bytes
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Alloc, Launch
from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.speeds import CpuSpeeds

FULL = 0.8
"""The part of a cache that one kernel's data fills before it falls out: sets fill unevenly."""


@dataclass(frozen=True, slots=True)
class Level:
    """A place that data comes from, and the bytes per cycle that one core gets from it."""

    name: str
    bytes_per_cycle: float


@dataclass(frozen=True, slots=True)
class Levels:
    """What is near in one launch."""

    far: Level  # where its tensors are found
    scratch: Level  # where the tiles of a block are
    footprint: float  # bytes of all tensors


def levels_of(
    launch: Launch,
    accesses: Iterable[Access],
    space: Space,
    machine: CpuMachine,
    speeds: CpuSpeeds,
) -> Levels:
    """Return what is near in `launch`, which runs over and over as in steady use."""
    tensors = {a.tensor: tensor_bytes(a.tensor, a.space) for a in accesses}
    footprint = math.fsum(tensors.values())
    tiles = {n.buffer for n in nodes_of(launch.body, Alloc)}
    caches = _caches(machine, speeds)
    far = _that_holds(footprint, caches)
    return Levels(far, _that_holds(sum(tile.nbytes or 0 for tile in tiles), caches), footprint)


def _caches(machine: CpuMachine, speeds: CpuSpeeds) -> Mapping[Level, float]:
    memory = speeds.memory_gbps / speeds.clock_ghz
    return {
        Level("L1", machine.vector_bytes * speeds.loads): machine.l1_bytes * FULL,
        Level("L2", speeds.l2_bytes): machine.l2_bytes * FULL,
        Level("L3", speeds.l3_bytes): machine.l3_bytes * FULL,
        Level("memory", memory): math.inf,
    }


def _that_holds(nbytes: float, caches: Mapping[Level, float]) -> Level:
    return next(level for level, size in caches.items() if nbytes <= size)
