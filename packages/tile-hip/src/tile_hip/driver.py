"""The AMD GPU of this machine, and the architecture to compile for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from tile_core.errors import MissingFeature, TileError
from tile_launch.libraries import hip_library

if TYPE_CHECKING:
    from tile_launch.hip_driver import HipDriver

_EMULATE = "run the kernel in the emulator: target='hip:gfx942@sim'"


def open_driver(path: str | None = None) -> HipDriver:
    """Return the HIP runtime of this machine.

    Raises
    ------
    MissingFeature
        If there is none, or it finds no device.
    """
    with _told():
        from tile_launch import hip_driver

        return hip_driver.open_driver(path)


def installed_driver() -> HipDriver:
    """Return the HIP runtime of this machine, opened once.

    Raises
    ------
    MissingFeature
        If there is none, or it finds no device.
    """
    with _told():
        return _installed()


@cache
def _installed() -> HipDriver:
    hip_library()  # most machines have no GPU, and need no module for one
    from tile_launch import hip_driver

    return hip_driver.installed_driver()


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except TileError as error:
        error.hint = _EMULATE
        raise


def device_arch(device: int = 0) -> str:
    """Return the architecture to compile for, such as ``"gfx942"``.

    Raises
    ------
    MissingFeature
        If there is no GPU, or none of an architecture that we compile for.
    """
    driver = installed_driver()
    from tile_hip.machine import ARCHITECTURES  # most machines have no GPU, and need no table

    with _told():
        found = driver.architecture(device)
    if found not in ARCHITECTURES:
        raise MissingFeature(
            f"we do not compile for {found}, the architecture of device {device}",
            hint=f"use a GPU of one of {', '.join(ARCHITECTURES)}",
        )
    return found
