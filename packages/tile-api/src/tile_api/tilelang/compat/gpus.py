"""`tilelang.utils.device`: which processors programs find."""

from __future__ import annotations

from typing import Any

from tile_api.tensors import torch_if_installed
from tile_api.tilelang.machines import machine
from tile_core.environment import processors

IS_NPU = False


def __getattr__(name: str) -> Any:
    """Answer when asked: where kernels run may be chosen after the import."""
    if name == "IS_CUDA":
        here = machine()
        return here.is_cuda or here.is_hip
    if name == "device":
        return "cuda:0"
    raise AttributeError(name)


def device_synchronize(device: Any = None) -> None:
    """Wait for the GPU that tensors are on, where there is one."""
    torch = torch_if_installed()
    if torch is not None and torch.cuda.is_available():
        torch.cuda.synchronize(device)


def get_available_cpu_count() -> int:
    """Return how many processors of this machine may be used."""
    return processors()
