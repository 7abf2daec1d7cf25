"""Which machine TileLang programs find: the one kernels run on, or the GPU it stands in for."""

from __future__ import annotations

from dataclasses import dataclass

from tile_api.tilelang.devices.device_properties import (
    DeviceProperties,
    capability_of,
    pretended_gpu,
    properties_of,
)
from tile_api.tilelang.targets import forced_target
from tile_core.target import Target


@dataclass(frozen=True, slots=True)
class VisibleMachine:
    """What programs may ask of the machine.

    Parameters
    ----------
    target
        What kernels run on.
    is_cuda, is_hip
        Whether programs for GPUs of NVIDIA, or AMD, run.
    """

    target: Target
    is_cuda: bool
    is_hip: bool

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability that programs are told."""
        return capability_of(pretended_gpu(self.target).arch)

    @property
    def arch(self) -> str:
        """The name of the architecture that programs are told, such as ``sm_89``."""
        major, minor = self.capability
        return self.target.arch if self.is_hip else f"sm_{major}{minor}"

    def properties(self) -> DeviceProperties:
        """Return the sizes that programs are told."""
        return properties_of(self.target)


def machine() -> VisibleMachine:
    """Return the machine of this process.

    Programs that were installed on the CPU or the interpreter find an NVIDIA GPU, since they run
    there. Without an installation only a GPU is one.
    """
    forced = forced_target()
    if forced is None:
        from tile_core.plugins.host import default_host

        target = default_host().resolve("auto")[1]
    else:
        target = forced
    stands_in = forced is not None and target.kind not in ("cuda", "hip")
    return VisibleMachine(target, target.kind == "cuda" or stands_in, target.kind == "hip")
