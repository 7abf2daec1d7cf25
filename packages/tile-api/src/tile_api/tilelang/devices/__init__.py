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

import importlib.abc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

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
    mapped = MappedDevices(target)
    if TORCH in sys.modules:
        mapped.patch(sys.modules[TORCH])
    else:
        sys.meta_path.insert(0, mapped.finder)
    return mapped


class MappedDevices:
    """The patches of one installation."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.patches = Patches()
        self.finder = _AfterImport(self)

    def patch(self, torch: Any) -> None:
        """Replace what concerns devices in torch."""
        from tile_api.tilelang.devices.cuda import cuda_patches
        from tile_api.tilelang.devices.tensors import tensor_patches

        tensor_patches(torch, self.patches)
        cuda_patches(torch, self.target, self.patches)

    def forget_import(self) -> None:
        """Stop waiting for torch."""
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)

    def undo(self) -> None:
        """Put back what was there."""
        self.forget_import()
        self.patches.undo()


class _AfterImport(importlib.abc.MetaPathFinder):
    """Lets torch be imported as ever, and patches it then."""

    def __init__(self, mapped: MappedDevices) -> None:
        self.mapped = mapped

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != TORCH:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Patching(spec.loader, self.mapped)
                return spec
        return None


class _Patching(importlib.abc.Loader):
    """A loader that patches what another loader loaded."""

    def __init__(self, loader: Any, mapped: MappedDevices) -> None:
        self.loader = loader
        self.mapped = mapped

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self.loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        module.__loader__ = self.loader
        if spec is not None:
            spec.loader = self.loader
        self.loader.exec_module(module)
        self.mapped.forget_import()
        self.mapped.patch(module)
