"""Tensors at the border: where torch is, and what its devices are called.

Torch is loaded only if the caller's program has loaded it, or asks for generated inputs.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

from tile_core.dtypes import DType, dtype_of
from tile_launch import outputs
from tile_launch.outputs import calling_torch


def torch_device(kind: str) -> str:
    """Return what torch calls the devices that kernels of a kind run on.

    Examples
    --------
    >>> torch_device("hip"), torch_device("cpu")
    ('cuda', 'cpu')
    """
    return "cuda" if kind == "hip" else kind


def torch_of_caller() -> Any:
    """Return torch if outputs are to be its tensors where no argument is one, else None.

    They are for programs that run under the alias of TileLang, and for modules that have
    imported torch.
    """
    return torch_if_installed() if _is_aliased() else calling_torch()


def _is_aliased() -> bool:
    """Whether programs written for TileLang run here: their tensors are torch's."""
    alias = sys.modules.get("tile_api.tilelang.installing")
    return alias is not None and alias.installed() is not None


def packed_type(dtype: DType) -> DType:
    """Return the byte type that holds two four-bit elements."""
    return dtype_of("int8" if dtype.kind.value == "int" else "uint8")


def torch_if_installed() -> Any:
    """Return the torch module, loading it, or None if it is not installed."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    return torch


_BITS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}


def tensor_of(array: Any, device: str | None = None) -> Any:
    """Return a torch tensor with the elements of a NumPy array.

    On the host it shares the array's memory; a `device` gets a copy. Element types that torch has
    under the same name are kept; others become their bits.
    """
    import torch

    bits = torch.from_numpy(array.view(_BITS[array.itemsize]))
    placed = bits if device is None else bits.to(device)
    own = torch.bool if array.dtype.name == "bool" else getattr(torch, array.dtype.name, None)
    return placed if own is None else placed.view(own)


def array_of(tensor: Any) -> Any:
    """Return a NumPy array with the elements and strides of a torch tensor, on the host."""
    import torch

    held = tensor.detach().cpu()
    try:
        return held.numpy()
    except TypeError:  # a type that NumPy itself does not have
        name = str(held.dtype).removeprefix("torch.")
        array = held.view(getattr(torch, _BITS[held.element_size()])).numpy()
        return array if name.endswith("_x2") else array.view(dtype_of(name).numpy())


def gpu_name() -> str | None:
    """Return what torch calls its GPU, or None if it is not installed or sees none."""
    try:
        import torch
    except ImportError:
        return None
    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else None


def torch_storage(dtype: DType) -> Any:
    """Return the ``torch.dtype`` whose elements hold those of `dtype`, whatever its lanes."""
    import torch

    return outputs.torch_storage(dtype.base, torch)
