"""The GPU of this machine, and the architecture to compile for it."""

from __future__ import annotations

from tile_core.errors import MissingFeature
from tile_core.plugins.gpu_driver import GpuDriver
from tile_launch.libraries import cuda_library

_DRIVER = GpuDriver(cuda_library, "tile_launch.cuda_driver", "cuda:sm_80@sim")
open_driver, installed_driver = _DRIVER.open, _DRIVER.installed


def device_arch(device: int = 0) -> str:
    """Return the architecture to compile for, such as ``"sm_90a"`` on compute capability 9.0."""
    return arch_of(*installed_driver().capability(device))


def arch_of(major: int, minor: int) -> str:
    """Return the best architecture whose machine code a compute capability runs.

    Raises
    ------
    MissingFeature
        If the device is older than all of them, or of a generation without one.

    Examples
    --------
    >>> arch_of(8, 6), arch_of(9, 0), arch_of(12, 0)
    ('sm_86', 'sm_90a', 'sm_120a')
    """
    from tile_cuda.machine import ARCHITECTURES  # most machines have no GPU, and need no table
    from tile_launch.cuda_driver import runs_on

    fitting = [name for name in ARCHITECTURES if runs_on(name, 10 * major + minor)]
    if not fitting:
        raise MissingFeature(
            f"no architecture we compile for runs on compute capability {major}.{minor}",
            hint=f"use a GPU of one of {', '.join(ARCHITECTURES)}",
        )
    return max(fitting, key=lambda name: (int(name[3:].rstrip("af")), name.endswith("a")))
