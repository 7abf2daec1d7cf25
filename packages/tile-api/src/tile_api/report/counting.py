"""What the accesses of each line cost: a kernel's counters in the emulator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tile_api.report.model import Count
from tile_api.report.places import Places
from tile_core import driver
from tile_core.driver import BuildOptions
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.stmt import Kernel
from tile_core.plugins.host import PluginHost
from tile_core.target import Target

if TYPE_CHECKING:
    from tile_sim.counters import Row

EMULATED = ("cuda", "hip")
"""Kinds of target whose kernels the emulator runs."""

LONGEST = 120.0
"""Seconds after which a launch is given up."""


def rows_of(
    kernel: Kernel,
    target: Target,
    options: BuildOptions,
    host: PluginHost,
    sizes: Mapping[str, int],
) -> tuple[Row, ...]:
    """Run the kernel once in the emulator, on small integers, and return its counters.

    Parameters
    ----------
    sizes
        Values of symbolic dimensions and scalar parameters, by name.

    Raises
    ------
    UnsupportedOnTarget
        If no emulator runs kernels for the target.
    TileError
        If the emulator or its compiler is not installed, a size is missing, or the kernel does
        what it must not.
    """
    if target.kind not in EMULATED:
        raise UnsupportedOnTarget(
            f"there are no counters for {target}: no emulator runs its kernels",
            hint="ask for them where the target is a GPU, such as cuda:sm_80",
        )
    built = driver.build(kernel, replace(target, executor="sim"), host, options)
    from tile_api.kernel import CompiledKernel
    from tile_api.profiler import Profiler, TensorSupplyType
    from tile_sim.report import last_report
    from tile_sim.settings import COUNTERS, checking

    emulated = CompiledKernel(built)
    inputs = Profiler(emulated, TensorSupplyType.Integer).inputs(dict(sizes))
    with checking((COUNTERS,), time_limit=LONGEST):
        emulated(*inputs)
    report = last_report()
    return () if report is None else report.rows


def counts_of(rows: Iterable[Row], places: Places) -> tuple[Count, ...]:
    """Return counters with the lines of the user that they belong to."""
    return tuple(
        Count(
            places.at(row.span),
            row.place,
            row.space.name.lower(),
            row.is_write,
            row.requests,
            row.bytes,
            row.cost,
            row.ideal,
            "turns" if row.has_turns else "sectors",
        )
        for row in rows
    )
