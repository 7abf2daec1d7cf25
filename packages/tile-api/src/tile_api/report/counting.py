"""What the accesses of each line cost: a kernel's counters in the emulator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tile_api.report.model import Count
from tile_api.report.source_lines import SourceLines
from tile_core import driver
from tile_core.compilation.options import BuildOptions
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.stmt import Kernel
from tile_core.plugins.executor import AccessCost, Executor
from tile_core.plugins.host import PluginHost
from tile_core.target import GPUS, Target

LONGEST = 120.0
"""Seconds after which a launch is given up."""


def counter_for(target: Target, host: PluginHost) -> Executor | None:
    """Return an installed executor that counts what kernels for `target` do."""
    known = host.executors().values()
    able = (e for e in known if e.counted is not None and target.kind in e.kinds)
    return next(able, None)


def costs_of(
    kernel: Kernel,
    target: Target,
    options: BuildOptions,
    host: PluginHost,
    sizes: Mapping[str, int],
) -> Sequence[AccessCost]:
    """Run the kernel once in the emulator, on small integers, and return what accesses cost."""
    from tile_api.callable_kernel import CallableKernel
    from tile_api.timing.profiler import Profiler, TensorSupplyType

    counter = counter_for(target, host)
    if counter is None or counter.counted is None:
        emulated = target.kind in GPUS
        raise UnsupportedOnTarget(
            f"there are no counters for {target}: no emulator that is installed runs its kernels",
            hint="pip install 'tile-api[sim]'"
            if emulated
            else "ask for them where the target is a GPU, such as cuda:sm_80",
        )
    built = driver.build(kernel, replace(target, executor=counter.name), host, options)
    emulated_kernel = CallableKernel(built)
    inputs = Profiler(emulated_kernel, TensorSupplyType.Integer).inputs(dict(sizes))
    return counter.counted(lambda: emulated_kernel(*inputs), LONGEST)


def counts_of(costs: Iterable[AccessCost], places: SourceLines) -> tuple[Count, ...]:
    """Return what accesses cost with the lines of the user that they belong to."""
    return tuple(
        Count(
            places.at(cost.span),
            "-" if cost.span is None else f"{Path(cost.span.file).name}:{cost.span.line}",
            cost,
        )
        for cost in costs
    )
