"""How many threads and blocks a machine runs, and what is said about more of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tile_core.errors import LaunchError, UnsupportedOnTarget
from tile_core.ir.buffer import static_value
from tile_core.ir.stmt import Launch
from tile_core.machine import SimtMachine

_AXES = "xyz"


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
    cluster = launch.cluster
    if any(extent % size for extent, size in zip(extents, cluster, strict=False)):
        grid, whole = (" x ".join(map(str, sizes)) for sizes in (extents, cluster))
        raise LaunchError(
            f"a grid of {grid} blocks is not made of clusters of {whole}",
            span=launch.span,
            hint="round the extents of T.Kernel up to multiples of the cluster's",
        )


_HINT = "give the longest extent first: T.Kernel(long, short)"


def _too_many(extents: Sequence[int], machine: SimtMachine) -> str | None:
    for axis, extent, most in zip(_AXES, extents, machine.max_grid, strict=False):
        if extent > most:
            return f"{extent} blocks along {axis} are more than {machine.name} runs: {most}"
    return None
