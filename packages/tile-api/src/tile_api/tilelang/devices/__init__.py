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

from tile_api.tilelang.devices.patches import PatchedPackage, Patches
from tile_core.target import Target


def map_devices(target: Target) -> PatchedPackage:
    """Let torch's GPU mean the CPU, now or as soon as torch is imported.

    Programs that ask are told about the GPU that `target`, on which kernels run, emulates.
    """

    def patch(torch: Any, patches: Patches) -> None:
        from tile_api.tilelang.devices.cuda import cuda_patches
        from tile_api.tilelang.devices.tensors import tensor_patches

        tensor_patches(torch, patches)
        cuda_patches(torch, target, patches)

    return PatchedPackage("torch", patch)
