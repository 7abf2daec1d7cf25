"""How many threads and blocks a machine runs, and what is said about more of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tile_core.errors import LaunchError, UnsupportedOnTarget
from tile_core.ir.buffer import static_value
from tile_core.ir.clusters import check_clusters
from tile_core.ir.stmt import Launch
from tile_core.machine import SimtMachine

_AXES = "xyz"
MOST_BLOCKS = 16
"""Blocks of a cluster. PTX ISA, "Cluster of Cooperative Thread Arrays"."""


def check_launch(launch: Launch, machine: SimtMachine) -> None:
    """Make sure that `machine` runs blocks and, as far as it is known, grids of this size.

    Raises
    ------
    UnsupportedOnTarget
        If it does not.
    """
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
            hint="leave cluster_dims out, or compile for sm_90a",
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
    """Make sure that `machine` runs a grid whose extents became known at the call.

    Raises
    ------
    LaunchError
        If it does not.
    """
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
