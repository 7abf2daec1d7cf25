"""From a kernel and the spelling of a target to tile IR as backends take it."""

from __future__ import annotations

from tile_core.compilation.options import BuildOptions
from tile_core.ir.stmt import Kernel
from tile_core.ir.verify import verify
from tile_core.ops.thread_program import refuse_other_machine, thread_programs
from tile_core.pass_manager.manager import TILE, PassManager, TileContext
from tile_core.passes.refuse_accumulators import refuse_accumulators
from tile_core.plugins.backend import Backend
from tile_core.plugins.host import PluginHost
from tile_core.records import replace
from tile_core.target import Target


def resolved(
    spec: object, host: PluginHost, options: BuildOptions | None
) -> tuple[Backend, Target, BuildOptions]:
    """Return who serves a target, and options with the rules and the passes of the target."""
    backend, target = host.resolve(spec)
    options = options or BuildOptions()
    pipeline = host.pipeline(target)
    for name in options.skip:
        pipeline = pipeline.without(name)
    if options.stop_after:
        pipeline = pipeline.stopping_after(options.stop_after)
    passes = PassManager(pipeline, host, options.verify_each)
    return backend, target, replace(options, rules=host.rules(target), passes=passes)


def refuse_wrong(kernel: Kernel, target: Target, host: PluginHost) -> None:
    """Refuse what no pass may get to see: whatever is wrong with the kernel, or its tiles.

    Programs of threads are verified where their machine is known.
    """
    heads = thread_programs(kernel)
    for head in heads:
        refuse_other_machine(kernel, head, target)
    if heads:
        return
    verify(kernel)
    backends = host.backends().values()
    refuse_accumulators(kernel, target, {at for b in backends for at in b.accumulator_memory})


def planned(kernel: Kernel, target: Target, options: BuildOptions) -> Kernel:
    """Return what passes on the kernel as it was traced make of it."""
    assert options.passes is not None, "filled in where the target was resolved"
    if thread_programs(kernel):
        return kernel
    return options.passes.run(TILE, kernel, TileContext(target=target, config=options.config))
