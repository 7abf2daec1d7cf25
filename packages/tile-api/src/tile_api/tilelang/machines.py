"""Which machine TileLang programs find: the one kernels run on, or the GPU it stands in for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tile_api.tilelang.devices.device_properties import (
    DeviceProperties,
    capability_of,
    pretended_gpu,
    properties_of,
)
from tile_core.environment import environment
from tile_core.target import Target, parse_target_spec

USUAL: Mapping[str, str] = MappingProxyType({"cuda": "sm_90a", "hip": "gfx942"})
"""The GPU of each kind that programs mean who name none."""


def forced_target() -> Target | None:
    """Return the target that `install` set for the whole process, or None."""
    text = environment().get("TILE_FORCE_TARGET", "")
    return parse_target_spec(text) if text else None


def runs_on_host(target: Target) -> bool:
    """Tell whether kernels for `target` work on tensors in host memory."""
    return target.executor != "" or target.kind not in USUAL


def source_target(spec: object) -> object:
    """Return for which machine to write source where a program asks for `spec`.

    A GPU without an architecture is the one that is emulated, if one is; else the one at hand;
    else the `USUAL` one.
    """
    if spec is None:
        return None
    target = parse_target_spec(spec)
    if target.kind not in USUAL or target.arch:
        return target
    forced = forced_target()
    if forced is not None and forced.kind == target.kind and forced.arch:
        return Target(target.kind, forced.arch)
    from tile_core.plugins.host import default_host

    if default_host().default_target().kind == target.kind:
        return target
    return Target(target.kind, USUAL[target.kind])


@dataclass(frozen=True, slots=True)
class VisibleMachine:
    """What programs may ask of the machine: what kernels run on, and for whose GPUs."""

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
    from tile_core.plugins.host import default_host

    forced = forced_target()
    target = forced or default_host().resolve("auto")[1]
    stands_in = forced is not None and target.kind not in USUAL
    return VisibleMachine(target, target.kind == "cuda" or stands_in, target.kind == "hip")
