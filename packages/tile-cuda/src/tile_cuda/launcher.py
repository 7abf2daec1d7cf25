"""Compiled kernels as Python functions, launched by `tile_launch` from their manifest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_core.codegen import function_symbols
from tile_core.plugins.faults import teller
from tile_core.simt.manifest import manifest_of
from tile_core.simt.program import DeviceProgram
from tile_launch import launcher
from tile_launch.driver import Driver
from tile_launch.manifest import Manifest
from tile_launch.manifest_json import from_json


def launch_manifest(program: DeviceProgram) -> Manifest:
    """Return what the host does to run `program`."""
    return from_json(manifest_of(program, function_symbols(program)))


def callable_of(
    program: DeviceProgram,
    cubin: bytes,
    driver: Driver,
    stream_of: Callable[[int], int],
    device_of: Callable[..., int],
    empty: Callable[..., Any],
) -> Callable[..., None]:
    """Return ``run(*args)``: one checked argument per parameter, outputs among them.

    `tile_launch.launcher.callable_of` says what the arguments are. Errors point at the lines
    of the kernel.
    """
    manifest, told = launch_manifest(program), teller(program)
    return launcher.callable_of(manifest, cubin, driver, stream_of, device_of, empty, told)
