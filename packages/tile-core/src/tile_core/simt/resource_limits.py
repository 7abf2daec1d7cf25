"""How much a machine runs and holds of threads, blocks, registers; what is said about more."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tile_core.errors import LaunchError, OutOfScratch, UnsupportedOnTarget
from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.cluster_position import check_clusters
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Alloc, Kernel, Launch
from tile_core.machine import SimtMachine

_AXES = "xyz"
MOST_BLOCKS = 16
"""Blocks of a cluster. PTX ISA, "Cluster of Cooperative Thread Arrays"."""

MOST_SPILLED = 4
"""Times the registers of a thread that a fragment may take of it.

What registers do not hold is spilled to memory, and kernels that spill some are right. Toolchains
keep a fragment in registers all the same while they work on it, and take time that grows with the
square of its size: one took 2.6 s for 1 152 registers, 16 s for 2 048, and minutes for 4 608.
"""


def check_fragments(kernel: Kernel, machine: SimtMachine) -> None:
    """Make sure that the threads of each launch can hold each of its fragments.

    Whatever its layout is, each element is in some thread: so many registers it takes at least.
    It is asked before layouts are inferred, which takes long for what is far too large.

    Raises
    ------
    OutOfScratch
        If a fragment takes many times the registers that a thread has.
    """
    for launch in nodes_of(kernel.body, Launch):
        threads = math.prod(launch.threads)
        for node in nodes_of(launch.body, Alloc):
            if node.buffer.scope in (Scope.FRAGMENT, Scope.REDUCER):
                _check_fragment(node.buffer, threads, machine)


def _check_fragment(buffer: Buffer, threads: int, machine: SimtMachine) -> None:
    extents = [static_value(extent) for extent in buffer.shape]
    elements = math.prod(extent or 0 for extent in extents)
    needed = -(-elements * buffer.dtype.bits // (32 * threads))
    if needed > MOST_SPILLED * machine.registers:
        raise OutOfScratch(
            f"the fragment {buffer.name} takes {needed} registers of each of {threads} threads, "
            f"and a thread of {machine.name} has {machine.registers}",
            span=buffer.span,
            hint="choose a smaller tile and loop over it, or more threads: "
            "T.Kernel(..., threads=...); T.alloc_shared tiles are kept once for all threads",
        )


def check_launch(launch: Launch, machine: SimtMachine) -> None:
    """Make sure that `machine` runs blocks and, as far as it is known, grids of this size."""
    threads = math.prod(launch.threads)
    if threads > machine.max_threads:
        raise UnsupportedOnTarget(
            f"a block of {threads} threads is more than {machine.name} runs: {machine.max_threads}",
            span=launch.span,
            hint=f"ask for threads={machine.max_threads} or fewer",
        )
    for axis, extent, most in zip(_AXES, launch.threads, machine.max_block, strict=True):
        if extent > most:
            raise UnsupportedOnTarget(
                f"a block of {extent} threads along {axis} is more than {machine.name} runs: "
                f"{most}",
                span=launch.span,
                hint="let the first number of threads=(x, y, z) be the largest",
            )
    blocks = math.prod(launch.cluster)
    if blocks > 1 and not machine.has("clusters"):
        raise UnsupportedOnTarget(
            f"blocks cannot form clusters on {machine.name}",
            span=launch.span,
            hint="leave cluster_dims out, or compile for a GPU with clusters of blocks",
        )
    if blocks > MOST_BLOCKS:
        raise UnsupportedOnTarget(
            f"a cluster of {blocks} blocks is more than {machine.name} runs: {MOST_BLOCKS}",
            span=launch.span,
            hint=f"use cluster_dims of at most {MOST_BLOCKS} blocks, 8 where it must run anywhere",
        )
    known = [static_value(extent) for extent in launch.grid]
    problem = _too_many([1 if extent is None else extent for extent in known], machine)
    if problem is not None:
        raise UnsupportedOnTarget(problem, span=launch.span, hint=_HINT)


def check_grid(extents: Sequence[int], machine: SimtMachine, launch: Launch) -> None:
    """Make sure that `machine` runs a grid whose extents became known at the call."""
    problem = _too_many(extents, machine)
    if problem is not None:
        raise LaunchError(problem, span=launch.span, hint=_HINT)
    check_clusters(extents, launch)


_HINT = "give the longest extent first: T.Kernel(long, short)"


def _too_many(extents: Sequence[int], machine: SimtMachine) -> str | None:
    for axis, extent, most in zip(_AXES, extents, machine.max_grid, strict=False):
        if extent > most:
            return f"{extent} blocks along {axis} are more than {machine.name} runs: {most}"
    return None
