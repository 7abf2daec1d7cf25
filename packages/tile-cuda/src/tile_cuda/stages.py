"""The stages of the CUDA backend: lower, compile, load."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tile_core.codegen import function_symbols, print_program
from tile_core.codegen.resident import resources_of_launches
from tile_core.cost.estimate import Estimate
from tile_core.cost.question import CostQuestion
from tile_core.ir.stmt import Kernel
from tile_core.machine import SimtMachine
from tile_core.ops.gemm import Gemm
from tile_core.plugins.first_call import made_at_first_call
from tile_core.simt.choices import choices_of
from tile_core.simt.device_flags import device_flags
from tile_core.simt.lower import lower_kernel
from tile_core.simt.manifest import manifest_of
from tile_core.simt.program import DeviceProgram
from tile_core.simt.resources import Resources
from tile_core.target import Target
from tile_cuda.machine import machine
from tile_cuda.machine_code import Compiled, compile_source

DEFAULT_ARCH = "sm_80"
"""What is emulated when nobody says which machine."""

ALLOW_TF32 = "tl.allow_tf32"
"""The pass configuration under which factors of float32 may be rounded to tf32."""

COMPILER = "cuda.compiler"
"""The pass configuration that names the compiler of one kernel: see `tile_cuda.compilers`."""

DISABLE_WGMMA = "tl.disable_wgmma"
"""The pass configuration under which warps multiply also where warpgroups could."""

SYNCHRONOUS = (("tl.enable_async_copy", "async_copy"), ("tir.use_async_copy", "async_copy"))
"""Pass configurations that, set to False, take an ability away from a kernel."""

UNELECTED = "tl.disable_shuffle_elect"
"""The pass configuration under which the first thread of a warp starts copies of the engine."""


def exact(target: Target) -> Target:
    """Return the target with an architecture: the emulated one, or that of the GPU at hand."""
    if target.arch:
        return target
    if target.executor:
        return replace(target, arch=DEFAULT_ARCH)
    from tile_cuda.driver import device_arch

    return replace(target, arch=device_arch())


def lower(kernel: Kernel, target: Target, options: Any) -> DeviceProgram:
    """Choose rules and layouts, and spread the kernel over the threads of its blocks."""
    from tile_cuda.rules.gemm import tf32_rules

    target = exact(target)
    made_for = _allowed_machine(machine(target.arch), options)
    allowed = tf32_rules(made_for) if options.config(ALLOW_TF32, False) else ()
    rules = (*options.rules, *allowed)
    if options.config(DISABLE_WGMMA, False):
        rules = tuple(rule for rule in rules if not (rule.op is Gemm and rule.runs_beside))
    return lower_kernel(
        kernel,
        target,
        made_for,
        rules,
        choices_of(options.config),
        compile_flags=device_flags(options),
        passes=options.passes,
    )


def _allowed_machine(found: SimtMachine, options: Any) -> SimtMachine:
    """Return the machine without what pass configurations forbid to a kernel."""
    without = {ability for key, ability in SYNCHRONOUS if not options.config(key, True)}
    if options.config(UNELECTED, False):
        without.add("elect")
    return replace(found, features=found.features - without) if without else found


def estimate(question: CostQuestion) -> Estimate:
    """Return the time that a model of the GPU expects of a kernel; it is lowered, not compiled.

    Raises
    ------
    TileError
        If the kernel cannot be lowered, or nothing is known of the speed of the GPU.
    """
    from tile_core.cost.gpu import estimate_lowered
    from tile_cuda.speeds import PRODUCTS

    return estimate_lowered(question, lower, PRODUCTS)


@dataclass(frozen=True, slots=True)
class Artifact:
    """Machine code of one kernel.

    Parameters
    ----------
    program
        What the host must know to launch it.
    compiled
        The cubin, its PTX and the compiler's report.
    """

    program: DeviceProgram
    compiled: Compiled

    @property
    def ptx(self) -> str:
        """The assembly of NVIDIA's virtual machine."""
        return self.compiled.ptx

    @property
    def sass(self) -> str:
        """The instructions of the machine itself; needs a disassembler."""
        from tile_cuda.disassembly import sass

        return sass(self.compiled.cubin)

    @property
    def resources(self) -> Mapping[str, Resources]:
        """What each launch needs, and how many of its blocks run at once, by its symbol."""
        return resources_of_launches(self.program, self.compiled.resources)

    def asm(self) -> str:
        """Return the PTX."""
        return self.compiled.ptx


def compile_program(program: DeviceProgram, target: Target, options: Any) -> Artifact:
    """Compile a program for its architecture; no GPU is needed."""
    source = print_program(program)
    wish = str(options.config(COMPILER, ""))
    arch, flags = program.machine.name, program.compile_flags
    return Artifact(program, compile_source(source, arch, flags, compiler=wish))


def export(
    artifact: Artifact, kernel: Kernel, provenance: Mapping[str, str]
) -> tuple[dict[str, Any], bytes]:
    """Return what a host must know to launch `kernel`, and its machine code, for a bundle."""
    program, compiled = artifact.program, artifact.compiled
    told = {**provenance, "compiler": compiled.compiler}
    return manifest_of(program, function_symbols(program), kernel, told), compiled.cubin


def load(artifact: Artifact, kernel: Kernel) -> Callable[..., None]:
    """Return a function that launches the kernel on tensors of a GPU.

    Nothing touches the driver before the first call: a kernel can be compiled, looked at and
    saved on a machine without a GPU. The call then raises `MissingFeature`.
    """
    return made_at_first_call(partial(_launcher, artifact))


def _launcher(artifact: Artifact) -> Callable[..., None]:
    from tile_cuda.driver import installed_driver
    from tile_cuda.launcher import callable_of
    from tile_launch.streams import allocator, device_of, stream_reader

    driver = installed_driver()
    return callable_of(
        artifact.program,
        artifact.compiled.cubin,
        driver,
        stream_reader("cuda"),
        device_of,
        allocator(driver.allocate),
    )
