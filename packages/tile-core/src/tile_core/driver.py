"""Lower, compile and load a kernel: the only module that knows all layers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tile_core.crash import guarded
from tile_core.errors import PassError, UnsupportedOnTarget
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel, Stmt
from tile_core.ir.verify import verify
from tile_core.logs import log
from tile_core.ops.rule import Rule
from tile_core.pass_manager.instrumentation import timed
from tile_core.plugins.backend import Backend
from tile_core.plugins.host import PluginHost
from tile_core.records import dataclass
from tile_core.target import Target

if TYPE_CHECKING:
    from tile_core.cost.estimate import Estimate
    from tile_core.pass_manager.manager import PassManager
    from tile_core.passes.layout_report import LayoutReport
    from tile_core.remarks import Remark

STAGES = ("tile", "planned", "pipelined", "lowered", "source")
"""The program as traced, after passes on tile IR, with copies in flight, in threads, as text."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What the user asks of one compilation, beside the kernel and the target.

    Parameters
    ----------
    pass_configs
        Pairs of key and value, sorted by key.
    compile_flags
        Extra flags for the toolchain.
    verify_each
        Verify the IR after every pass.
    threads
        Threads of a CPU kernel; 0 follows the process.
    rules
        Every rule that may be selected; `build` fills in those of the target.
    passes
        What runs the passes of the target; `build` fills it in.
    skip
        Names of optional passes that are left out.
    stop_after
        The name of the pass with which `lower` ends: see `lower_until`.
    """

    pass_configs: tuple[tuple[str, object], ...] = ()
    compile_flags: tuple[str, ...] = ()
    verify_each: bool = False
    threads: int = 0
    rules: tuple[Rule[Any], ...] = ()
    passes: PassManager | None = None
    skip: tuple[str, ...] = ()
    stop_after: str = ""

    def as_asked(self) -> BuildOptions:
        """Return the options without what `build` fills in."""
        return replace(self, rules=(), passes=None)

    def config(self, key: str, default: object = None) -> object:
        """Return the value of a pass configuration."""
        return dict(self.pass_configs).get(key, default)


class Referable:
    """What can be referred to weakly although it has slots."""

    __slots__ = ("__weakref__",)


@dataclass(frozen=True, slots=True)
class Lowered(Referable):
    """A kernel as far as no toolchain and no machine is needed.

    Parameters
    ----------
    kernel, planned
        As traced, and after the passes on tile IR.
    options
        With the rules of the target filled in.
    module
        What the backend's `lower` returned.
    phases_ms
        Milliseconds by phase.
    remarks
        What passes said of their choices, in the order in which they said it.
    host
        The plugins that it was made with.
    """

    kernel: Kernel
    planned: Kernel
    target: Target
    backend: Backend
    options: BuildOptions
    module: Any
    phases_ms: Mapping[str, float]
    remarks: tuple[Remark, ...]
    host: PluginHost

    def text(self, stage: str) -> str:
        """Return the program as text: one of the stages of `STAGES`."""
        if stage in ("tile", "planned"):
            return print_kernel(self.kernel if stage == "tile" else self.planned)
        if stage == "pipelined":  # what rules lowered, where the backend changed more tile IR
            return print_kernel(getattr(self.module, "kernel", self.planned))
        if stage == "lowered":
            return str(self.module)
        with guarded(self.kernel, self.target, "print", self.options.compile_flags):
            return self.backend.source(self.module, self.target)

    def layouts(self) -> LayoutReport:
        """Return how each tile of the kernel is stored, and who asked for that.

        Raises
        ------
        UnsupportedOnTarget
            If the backend does not infer layouts.
        """
        found = getattr(self.module, "layouts", None)
        if found is None:
            raise UnsupportedOnTarget(
                f"{self.backend.name} kernels have no layouts to show",
                hint="compile for a machine that stores tiles, such as target='cpu'",
            )
        report: LayoutReport = found.report()
        return report


@dataclass(frozen=True, slots=True)
class Built(Lowered):
    """A compiled and loaded kernel, with what each stage handed over.

    Parameters
    ----------
    artifact, executable
        What the backend's `compile` and `load` returned.
    """

    artifact: Any
    executable: Callable[..., None]

    @property
    def runs_on_host(self) -> bool:
        """Whether the kernel works on tensors in host memory: the CPU, and every emulator."""
        return self.target.runs_on_host

    def asm(self) -> str:
        """Return the machine's assembly.

        Raises
        ------
        UnsupportedOnTarget
            If the backend's artifact cannot show it.
        """
        show = getattr(self.artifact, "asm", None)
        if show is None:
            raise UnsupportedOnTarget(
                f"{self.backend.name} kernels have no assembly to show",
                hint="print the source: kernel.get_kernel_source()",
            )
        return str(show())


class _Clock:
    def __init__(self, phases: Mapping[str, float] | None = None) -> None:
        self.phases = dict(phases or {})

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        with timed(name, "phase"):
            yield
        self.phases[name] = self.phases.get(name, 0.0) + (time.perf_counter() - start) * 1e3


def build(
    kernel: Kernel, spec: object, host: PluginHost, options: BuildOptions | None = None
) -> Built:
    """Compile `kernel` for the target `spec` and load it.

    Raises
    ------
    TileError
        Whatever is wrong with the kernel, the target or the toolchain.
    """
    return complete(lower(kernel, spec, host, options))


def complete(lowered: Lowered) -> Built:
    """Compile and load what `lower` returned.

    Raises
    ------
    TileError
        Whatever is wrong with the toolchain.
    """
    from tile_core.remarks import collected_remarks  # a kernel from the cache says nothing

    kernel, backend, clock = lowered.kernel, lowered.backend, _Clock(lowered.phases_ms)
    flags = lowered.options.compile_flags
    place = guarded(kernel, lowered.target, "compile", flags, partial(lowered.text, "source"))
    with collected_remarks() as remarks, place, clock.phase("compile"):
        artifact = backend.compile(lowered.module, lowered.target, lowered.options)
    for said in remarks:
        log("remarks", said.__str__)
    with guarded(kernel, lowered.target, "load", flags), clock.phase("load"):
        executable = backend.load(artifact, lowered.planned)
    report = {"name": kernel.name, "target": str(lowered.target), "phases_ms": clock.phases}
    lowered.host.kernel_built(report)
    parts = {f.name: getattr(lowered, f.name) for f in fields(lowered)}
    parts |= {"phases_ms": clock.phases, "remarks": (*lowered.remarks, *remarks)}
    return Built(**parts, artifact=artifact, executable=executable)


def lower(
    kernel: Kernel, spec: object, host: PluginHost, options: BuildOptions | None = None
) -> Lowered:
    """Bring `kernel` to thread-level code for the target `spec`, which need not be here.

    Raises
    ------
    TileError
        Whatever is wrong with the kernel or the target.
    """
    from tile_core.remarks import collected_remarks  # a kernel from the cache says nothing

    clock = _Clock()
    backend, target, options = _resolved(spec, host, options)
    with clock.phase("verify"):
        _checked(kernel, target, host)
    with collected_remarks() as remarks:
        with guarded(kernel, target, "plan"), clock.phase("plan"):
            planned = _planned(kernel, target, options)
        with guarded(planned, target, "lower"), clock.phase("lower"):
            module = backend.lower(planned, target, options)
    for said in remarks:
        log("remarks", said.__str__)
    told = tuple(remarks)
    return Lowered(kernel, planned, target, backend, options, module, clock.phases, told, host)


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
    from tile_core.pass_manager.manager import PipelineStopped

    try:
        lower(kernel, spec, host, options)
    except PipelineStopped as stopped:
        return stopped.programs
    raise PassError(
        f"{kernel.name} does not need the pass {options.stop_after!r}, which did not run",
        hint="tile lower --timings shows which passes ran",
    )


def estimate(
    kernel: Kernel,
    spec: object,
    host: PluginHost,
    options: BuildOptions | None = None,
    *,
    sizes: Mapping[str, int] | None = None,
    machine: str = "",
) -> Estimate:
    """Return the time that a model of the machine expects of `kernel`; nothing is compiled.

    Parameters
    ----------
    sizes
        Values of symbols in the shapes of parameters, by name.
    machine
        The table of speeds, empty for the one that the target suggests.

    Raises
    ------
    TileError
        Whatever is wrong with the kernel, the target or the sizes.
    """
    from tile_core.cost.cost_request import CostQuestion, bind_sizes
    from tile_core.cost.roofline import UNKNOWN, roofline

    backend, target, options = _resolved(spec, host, options)
    _checked(kernel, target, host)
    bound = bind_sizes(kernel, sizes or {})
    with guarded(kernel, target, "plan"):
        planned = _planned(kernel, target, options)
    question = CostQuestion(
        kernel=kernel,
        planned=planned,
        target=target,
        options=options,
        sizes=bound,
        machine=machine,
    )
    with guarded(planned, target, "estimate"):
        if backend.estimate is not None:
            return backend.estimate(question)
        backend.lower(planned, target, options)  # refuses what cannot be lowered
        return roofline(question, notes=(UNKNOWN,))


def _checked(kernel: Kernel, target: Target, host: PluginHost) -> None:
    """Refuse what no pass may get to see."""
    from tile_core.passes.refuse_accumulators import refuse_accumulators  # a cached kernel is right

    verify(kernel)
    backends = host.backends().values()
    refuse_accumulators(kernel, target, {at for b in backends for at in b.accumulator_memory})


def _resolved(
    spec: object, host: PluginHost, options: BuildOptions | None
) -> tuple[Backend, Target, BuildOptions]:
    """Return who serves a target, and options with the rules and the passes of the target."""
    from tile_core.pass_manager.manager import PassManager  # a kernel from the cache needs none

    backend, target = host.resolve(spec)
    options = options or BuildOptions()
    pipeline = host.pipeline(target)
    for name in options.skip:
        pipeline = pipeline.without(name)
    if options.stop_after:
        pipeline = pipeline.stopping_after(options.stop_after)
    passes = PassManager(pipeline, host, options.verify_each)
    return backend, target, replace(options, rules=host.rules(target), passes=passes)


def _planned(kernel: Kernel, target: Target, options: BuildOptions) -> Kernel:
    """Return what passes on the kernel as it was traced make of it."""
    from tile_core.pass_manager.manager import TILE, TileContext

    assert options.passes is not None, "filled in where the target was resolved"
    return options.passes.run(TILE, kernel, TileContext(target=target, config=options.config))
