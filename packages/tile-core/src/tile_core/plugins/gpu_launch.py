"""How every backend for GPUs launches its kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tile_core.codegen import function_symbols
from tile_core.plugins.gpu_artifact import GpuArtifact
from tile_core.plugins.launch_errors import teller
from tile_core.simt.manifest import manifest_of
from tile_core.simt.program import DeviceProgram

if TYPE_CHECKING:
    from tile_launch.driver import Driver
    from tile_launch.manifest import Manifest


def load(module: Callable[[str], Any], kind: str, artifact: GpuArtifact) -> Callable[..., None]:
    """Return a function that launches the kernel on tensors of a GPU: see `made_at_first_call`."""
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
    return manifest_of(program, function_symbols(program))


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
    """Return a function that does what `make` returns at the first call, or after an error.

    Nothing touches a driver before: a kernel can be compiled, looked at and saved on a machine
    that cannot run it. From then on it has the `starter` of what was made, by which C calls it.
    """
    made: list[Callable[..., None]] = []

    def run(*args: Any) -> None:
        if not made:
            made.append(make())
            run.starter = getattr(made[0], "starter", None)  # type: ignore[attr-defined]
        made[0](*args)

    return run
