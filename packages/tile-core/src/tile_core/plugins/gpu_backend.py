"""The backend of one maker's GPUs: what is the same for all makers, around what is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tile_core.errors import MissingFeature, TileError
from tile_core.plugins.backend import Backend
from tile_core.records import dataclass
from tile_core.remarks import remark
from tile_core.target import Target, parse_target_spec

if TYPE_CHECKING:
    from tile_core.cost.cost_request import CostQuestion
    from tile_core.cost.estimate import Estimate
    from tile_core.cost.roofline import Peaks
    from tile_core.ir.stmt import Kernel
    from tile_core.ops.rule import Rule
    from tile_core.pass_manager.pipeline import Pipeline
    from tile_core.plugins.gpu_artifact import GpuArtifact
    from tile_core.simt.program import DeviceProgram


@dataclass(frozen=True, slots=True)
class GpuBackend:
    """A maker's GPUs, described by the modules of a package.

    ====================  ===================================================================
    ``machine``           ``machine(arch) -> SimtMachine``
    ``rules``             ``all_rules(machine)``, the ways to run each operator
    ``pipeline``          ``PIPELINE``
    ``backend_compiler``  ``allowed(machine, options)``, what pass configurations leave of the
                          machine, and rules that they add or take away; ``Artifact``
    ``compilers``         ``wanted_compiler(arch, request)``
    ``machine_code``      ``compile_source(source, arch, flags, compiler=request)``
    ``driver``            ``installed_driver()`` and ``device_arch()``
    ``speeds``            ``PRODUCTS``, what GPUs do at most
    ====================  ===================================================================

    `kind` begins its targets; `default_arch` is emulated when nobody says which machine.
    """

    kind: str
    package: str
    default_arch: str

    def module(self, name: str) -> Any:
        """Return a module of the package, imported when it is needed."""
        return import_module(f"{self.package}.{name}")

    def parse_target(self, spec: str) -> Target | None:
        """Claim targets of the kind, under their full name; one that does not exist is an error."""
        target = parse_target_spec(spec)
        if target.kind != self.kind or target.executor:
            return None
        if not target.arch:
            return target
        meant: str = self.module("machine").machine(target.arch).name
        if meant != target.arch:
            told = f"{target.arch} is compiled as {meant}, which has all of its instructions"
            remark("analysis", "target", told)
        return replace(target, arch=meant)

    def default_target(self) -> Target | None:
        """Return the first GPU of this machine, if there is one."""
        try:
            return Target(self.kind, self.module("driver").device_arch())
        except MissingFeature:
            return None

    def exact(self, target: Target) -> Target:
        """Return the target with an architecture: the emulated one, or that of the GPU at hand."""
        if target.arch:
            return target
        arch = self.default_arch if target.executor else self.module("driver").device_arch()
        return replace(target, arch=arch)

    def rules(self, target: Target) -> Sequence[Rule[Any]]:
        """Return the ways its GPUs run each operator."""
        made_for = self.module("machine").machine(self.exact(target).arch)
        found: Sequence[Rule[Any]] = self.module("rules").all_rules(made_for)
        return found

    def pipeline(self, target: Target) -> Pipeline:
        """Return the passes of GPUs, and those that its own add."""
        found: Pipeline = self.module("pipeline").PIPELINE
        return found

    def lower(self, kernel: Kernel, target: Target, options: Any) -> DeviceProgram:
        """Choose rules and layouts, and spread the kernel over the threads of its blocks."""
        from tile_core.plugins.gpu_compiler import lower

        return lower(self.module, kernel, self.exact(target), options)

    def source(self, program: DeviceProgram, target: Target) -> str:
        """Return the kernel as C++."""
        from tile_core.codegen import print_program

        return print_program(program).text

    def compile(self, program: DeviceProgram, target: Target, options: Any) -> GpuArtifact:
        """Return machine code for the architecture, and what the compiler told about it."""
        from tile_core.codegen import print_program

        compile_source = self.module("machine_code").compile_source
        arch, flags = program.machine.name, program.compile_flags
        compiled = compile_source(
            print_program(program), arch, flags, compiler=self.requested_compiler(options)
        )
        found: GpuArtifact = self.module("backend_compiler").Artifact(program, compiled)
        return found

    def requested_compiler(self, options: Any) -> str:
        """Return the compiler that a pass configuration names for one kernel, mostly none."""
        return str(options.config(f"{self.kind}.compiler", "") or "")

    def load(self, artifact: GpuArtifact, kernel: Kernel) -> Callable[..., None]:
        """Return a function that launches the kernel on tensors of a GPU: see `gpu_launch.load`."""
        from tile_core.plugins.gpu_launch import load

        return load(self.module, self.kind, artifact)

    def export(
        self, artifact: GpuArtifact, kernel: Kernel, provenance: Mapping[str, str]
    ) -> tuple[dict[str, Any], bytes]:
        """Return what a host must know to launch the kernel, and its machine code."""
        from tile_core.plugins.gpu_artifact import export

        return export(artifact, kernel, provenance)

    def toolchain(self, target: Target, options: Any) -> Mapping[str, str]:
        """Return the architecture that is meant, and the compiler that would translate for it.

        Where there is no compiler, or no GPU where the target names none, the text says ``none``:
        to compile is then the error, to ask is not.
        """
        arch = target.arch or _or_none(lambda: self.module("driver").device_arch())

        def wanted() -> object:
            find = self.module("compilers").wanted_compiler
            return find(arch, self.requested_compiler(options)).identity

        return {"architecture": arch, "compiler": _or_none(wanted)}

    def estimate(self, question: CostQuestion) -> Estimate:
        """Return the time that a model of the GPU expects of a kernel; it is not compiled."""
        from tile_core.cost.gpu import estimate_lowered

        return estimate_lowered(question, self.lower, self.module("speeds").PRODUCTS)

    def peaks(self, target: Target, machine: str) -> Peaks:
        """Return what the maker of the GPU states that it does at most."""
        from tile_core.cost.gpu_speeds import speeds_of
        from tile_core.cost.roofline import peaks_of

        return peaks_of(speeds_of(self.module("speeds").PRODUCTS, target.arch, machine))

    def record(self) -> Backend:
        """Return what the host of plugins is given."""
        return Backend(
            name=self.kind,
            parse_target=self.parse_target,
            rules=self.rules,
            lower=self.lower,
            source=self.source,
            compile=self.compile,
            load=self.load,
            pipeline=self.pipeline,
            export=self.export,
            toolchain=self.toolchain,
            estimate=self.estimate,
            peaks=self.peaks,
        )


def _or_none(ask: Callable[[], object]) -> str:
    try:
        return str(ask())
    except TileError:
        return "none"
