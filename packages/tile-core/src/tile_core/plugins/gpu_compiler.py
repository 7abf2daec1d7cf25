"""The stages of every backend for GPUs: lower, hold machine code, launch it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tile_core.codegen import function_symbols
from tile_core.codegen.occupancy import resources_of_launches
from tile_core.ir.stmt import Kernel
from tile_core.plugins.launch_errors import teller
from tile_core.plugins.lazy_function import made_at_first_call
from tile_core.simt.device_flags import device_flags
from tile_core.simt.lower import lower_kernel
from tile_core.simt.lowering_options import choices_of
from tile_core.simt.manifest import manifest_of
from tile_core.simt.program import DeviceProgram
from tile_core.simt.resources import Resources
from tile_core.target import Target
from tile_core.toolchains.machine_code import Compiled

if TYPE_CHECKING:
    from tile_launch.driver import Driver
    from tile_launch.manifest import Manifest


def lower(
    module: Callable[[str], Any], kernel: Kernel, target: Target, options: Any
) -> DeviceProgram:
    """Choose rules and layouts, and spread the kernel over the threads of its blocks."""
    made_for = module("machine").machine(target.arch)
    made_for, rules = module("backend_compiler").allowed(made_for, options)
    return lower_kernel(
        kernel,
        target,
        made_for,
        rules,
        choices_of(options.config),
        compile_flags=device_flags(options),
        passes=options.passes,
    )


@dataclass(frozen=True, slots=True)
class GpuArtifact:
    """Machine code of one kernel.

    Parameters
    ----------
    program
        What the host must know to launch it.
    compiled
        The code, its assembly and the compiler's report.
    """

    program: DeviceProgram
    compiled: Compiled

    @property
    def resources(self) -> Mapping[str, Resources]:
        """What each launch needs, and how many of its blocks run at once, by its symbol."""
        return resources_of_launches(self.program, self.compiled.resources)

    def asm(self) -> str:
        """Return the instructions that the machine code was made from."""
        return self.compiled.assembly


def export(
    artifact: GpuArtifact, kernel: Kernel, provenance: Mapping[str, str]
) -> tuple[dict[str, Any], bytes]:
    """Return what a host must know to launch `kernel`, and its machine code, for a bundle."""
    program, compiled = artifact.program, artifact.compiled
    told = {**provenance, "compiler": compiled.compiler}
    return manifest_of(program, function_symbols(program), kernel, told), compiled.code


def load(module: Callable[[str], Any], kind: str, artifact: GpuArtifact) -> Callable[..., None]:
    """Return a function that launches the kernel on tensors of a GPU.

    Nothing touches the driver before the first call: a kernel can be compiled, looked at and
    saved on a machine without a GPU. The call then raises `MissingFeature`.
    """
    return made_at_first_call(partial(_launcher, module, kind, artifact))


def _launcher(
    module: Callable[[str], Any], kind: str, artifact: GpuArtifact
) -> Callable[..., None]:
    from tile_launch.streams import allocator, device_of, stream_reader

    driver = module("driver").installed_driver()
    return callable_of(
        artifact.program,
        artifact.compiled.code,
        driver,
        stream_reader(kind),
        device_of,
        allocator(driver.allocate),
    )


def launch_manifest(program: DeviceProgram) -> Manifest:
    """Return what the host does to run `program`."""
    from tile_launch.manifest_json import from_json

    return from_json(manifest_of(program, function_symbols(program)))


def callable_of(
    program: DeviceProgram,
    code: bytes,
    driver: Driver,
    stream_of: Callable[[int], int],
    device_of: Callable[..., int],
    empty: Callable[..., Any],
) -> Callable[..., None]:
    """Return ``run(*args)``: one checked argument per parameter, outputs among them.

    `tile_launch.launcher.callable_of` says what the arguments are. Errors point at the lines
    of the kernel.
    """
    from tile_launch import launcher

    manifest, told = launch_manifest(program), teller(program)
    return launcher.callable_of(manifest, code, driver, stream_of, device_of, empty, told)
