"""Lower, compile and load a kernel: each phase in its turn."""

from __future__ import annotations

from dataclasses import fields
from functools import partial

from tile_core.compilation.options import BuildOptions
from tile_core.compilation.phases import Phases, told_remarks
from tile_core.compilation.planning import planned, refuse_wrong, resolved
from tile_core.compilation.results import Built, Lowered
from tile_core.errors import PassError
from tile_core.ir.stmt import Kernel, Stmt
from tile_core.pass_manager.manager import PipelineStopped
from tile_core.plugins.host import PluginHost


def build(
    kernel: Kernel, spec: object, host: PluginHost, options: BuildOptions | None = None
) -> Built:
    """Compile `kernel` for the target `spec` and load it; whatever is wrong is a `TileError`."""
    return complete(lower(kernel, spec, host, options))


def complete(lowered: Lowered) -> Built:
    """Compile and load what `lower` returned; what is wrong with the toolchain is a `TileError`."""
    kernel, backend, target = lowered.kernel, lowered.backend, lowered.target
    phases = Phases(target, lowered.options.compile_flags, lowered.phases_ms)
    with told_remarks() as remarks, phases.run("compile", kernel, partial(lowered.text, "source")):
        artifact = backend.compile(lowered.module, target, lowered.options)
    with phases.run("load", kernel):
        executable = backend.load(artifact, lowered.planned)
    times = phases.milliseconds
    lowered.host.kernel_built({"name": kernel.name, "target": str(target), "phases_ms": times})
    parts = {f.name: getattr(lowered, f.name) for f in fields(lowered)}
    parts |= {"phases_ms": times, "remarks": (*lowered.remarks, *remarks)}
    return Built(**parts, artifact=artifact, executable=executable)


def lower(
    kernel: Kernel, spec: object, host: PluginHost, options: BuildOptions | None = None
) -> Lowered:
    """Bring `kernel` to thread-level code for the target `spec`, which need not be here.

    Whatever is wrong with the kernel or the target is a `TileError`.
    """
    with told_remarks() as remarks:
        backend, target, options = resolved(spec, host, options)
        phases = Phases(target)
        with phases.timed("verify"):
            refuse_wrong(kernel, target, host)
        with phases.run("plan", kernel):
            plan = planned(kernel, target, options)
        with phases.run("lower", plan):
            module = backend.lower(plan, target, options)
    times, told = phases.milliseconds, tuple(remarks)
    return Lowered(kernel, plan, target, backend, options, module, times, told, host)


def lower_until(
    kernel: Kernel, spec: object, host: PluginHost, options: BuildOptions
) -> tuple[Kernel | Stmt, ...]:
    """Return what the pass ``options.stop_after`` leaves: a kernel, or a program per launch.

    Raises
    ------
    TileError
        Whatever is wrong with the kernel or the target; a `PassError` if there is no such pass,
        or if the kernel does not come to it.
    """
    try:
        lower(kernel, spec, host, options)
    except PipelineStopped as stopped:
        return stopped.programs
    raise PassError(
        f"{kernel.name} does not need the pass {options.stop_after!r}, which did not run",
        hint="tile lower --timings shows which passes ran",
    )
