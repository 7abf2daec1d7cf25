"""Where elements come from: which cache is near enough for the tensors and tiles of a launch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tile_core.cost.iteration_spaces import Space
from tile_core.cost.kernel_work import Access, tensor_bytes
from tile_core.ir.buffer import Buffer
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Alloc, Launch
from tile_cpu.machine import CpuMachine
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
    """What is near in one launch.

    Parameters
    ----------
    far
        Where the tensors of the launch are found.
    scratch
        Where the tiles of a block are.
    footprint
        Bytes of all tensors.
    """

    far: Level
    scratch: Level
    footprint: float


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
    caches = _caches(machine, speeds)
    far = _that_holds(footprint, caches)
    return Levels(far, _that_holds(scratch_bytes(launch), caches), footprint)


def scratch_bytes(launch: Launch) -> float:
    """Return the bytes of the tiles of one block."""
    tiles = {n.buffer for n in nodes_of(launch.body, Alloc)}
    return math.fsum(_size(tile) for tile in tiles)


def _size(tile: Buffer) -> float:
    return float(tile.nbytes or 0)


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
