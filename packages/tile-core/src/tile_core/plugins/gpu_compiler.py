"""The stages of every backend for GPUs: lower, hold machine code, launch it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tile_core.codegen import function_symbols
from tile_core.ir.stmt import Kernel
from tile_core.plugins.launch_errors import teller
from tile_core.records import replace
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


def made_at_first_call(make: Callable[[], Callable[..., None]]) -> Callable[..., None]:
    """Return a function that does what the one does that `make` returns at the first call.

    Nothing touches a driver before: a kernel can be compiled, looked at and saved on a machine
    that cannot run it. Where `make` raises an error, the next call tries again.
    """
    made: list[Callable[..., None]] = []

    def run(*args: Any) -> None:
        if not made:
            made.append(make())
        made[0](*args)

    return run


def resources_of_launches(
    program: DeviceProgram, needs: Mapping[str, Resources]
) -> Mapping[str, Resources]:
    """Return what each launch of a program needs, by its symbol, and how many blocks fit.

    Parameters
    ----------
    needs
        What the compiler told of each function, by its symbol.
    """
    found: dict[str, Resources] = {}
    names = function_symbols(program)
    for function, name in zip(program.functions, names, strict=True):
        resident = needs[name].occupancy(program.machine, function.threads, function.shared_bytes)
        found[name] = replace(needs[name], resident=resident)
    return found


FAST_MATH = "--use_fast_math"
"""As one compiler spells it; backends translate it for others."""


def device_flags(options: Any) -> tuple[str, ...]:
    """Return what the compiler of the device is given beside its usual flags.

    ``tl.enable_fast_math`` has functions and divisions approximated, unless
    ``tl.disable_fast_math`` is set, too; ``tl.ptxas_register_usage_level`` is of one backend alone,
    and ``tl.device_compile_flags`` holds flags with blanks between them.

    Parameters
    ----------
    options
        What the driver hands to `Backend.lower`.
    """
    flags = list(options.compile_flags)
    is_exact = options.config("tl.disable_fast_math", False)
    if options.config("tl.enable_fast_math", False) and not is_exact:
        flags.append(FAST_MATH)
    level = options.config("tl.ptxas_register_usage_level")
    if level is not None:
        flags.append(f"--ptxas-options=--register-usage-level={level}")
    flags += str(options.config("tl.device_compile_flags", "")).split()
    return tuple(flags)
