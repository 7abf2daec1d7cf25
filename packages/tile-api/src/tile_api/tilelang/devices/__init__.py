"""A GPU that is this machine's memory: what programs ask of torch's devices means the CPU.

Programs make tensors on a GPU, ask which one there is, and wait for it. While kernels run on
the host, all of that is answered here. Three rules:

- Wherever torch takes a device, a GPU means the CPU. Tensors *are* on the CPU; their devices
  and the queries of ``torch.cuda`` keep up appearances, all of them, and only to programs:
  torch's own code is told the truth.
- ``tensor.cuda()``, ``.to("cuda")`` and ``.cpu()`` copy, as they do between two memories: a
  kernel that writes to one side must not change the other. A leaf that collects gradients stays
  the same tensor, so that its gradients are found where the program looks for them.
- Nothing is pretended that programs would be misled by: CUDA graphs raise `UnmappedDevice`.

It is done with patches of torch's functions rather than with a mode of torch: modes belong to
one thread and cost time in every call.
"""

from __future__ import annotations

from typing import Any

from tile_api.tilelang.after_import import when_imported
from tile_api.tilelang.devices.patches import Patches
from tile_core.target import Target

TORCH = "torch"


def map_devices(target: Target) -> MappedDevices:
    """Let torch's GPU mean the CPU, now or as soon as torch is imported.

    Parameters
    ----------
    target
        What kernels run on; programs that ask are told about the GPU it emulates.
    """
    return MappedDevices(target)


class MappedDevices:
    """The patches of one installation."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.patches = Patches()
        self.waiting = when_imported(TORCH, self.patch)

    def patch(self, torch: Any) -> None:
        """Replace what concerns devices in torch."""
        from tile_api.tilelang.devices.cuda import cuda_patches
        from tile_api.tilelang.devices.tensors import tensor_patches

        tensor_patches(torch, self.patches)
        cuda_patches(torch, self.target, self.patches)

    def undo(self) -> None:
        """Put back what was there."""
        if self.waiting is not None:
            self.waiting.forget()
        self.patches.undo()
