"""The AMD GPU of this machine, and the architecture to compile for it."""

from __future__ import annotations

from tile_core.errors import MissingFeature
from tile_core.plugins.gpu_driver import GpuDriver
from tile_launch.libraries import hip_library

_DRIVER = GpuDriver(hip_library, "tile_launch.hip_driver", "hip:gfx942@sim")
open_driver, installed_driver = _DRIVER.open, _DRIVER.installed


def device_arch(device: int = 0) -> str:
    """Return the architecture to compile for, such as ``"gfx942"``.

    Raises
    ------
    MissingFeature
        If there is no GPU, or none of an architecture that we compile for.
    """
    driver = installed_driver()
    from tile_hip.machine import ARCHITECTURES  # most machines have no GPU, and need no table

    with _DRIVER.told():
        found: str = driver.architecture(device)
    if found not in ARCHITECTURES:
        raise MissingFeature(
            f"we do not compile for {found}, the architecture of device {device}",
            hint=f"use a GPU of one of {', '.join(ARCHITECTURES)}",
        )
    return found
