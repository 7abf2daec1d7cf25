"""Tensors at the border: new outputs, and where torch is.

Torch is loaded only if the caller's program has loaded it, or asks for generated inputs.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from tile_api.tensors.torch_dtypes import torch_storage
from tile_core.dtypes import DType, dtype_of
from tile_core.errors import LaunchError
from tile_launch.calling_library import torch_calls
from tile_launch.loaded_torch import loaded_torch


def torch_device(kind: str) -> str:
    """Return what torch calls the devices that kernels of a kind run on.

    Examples
    --------
    >>> torch_device("hip"), torch_device("cpu")
    ('cuda', 'cpu')
    """
    return "cuda" if kind == "hip" else kind


def output_maker(
    shape: tuple[int, ...], dtype: DType, like: Any, device: str = "cpu"
) -> Callable[[], Any]:
    """Return what allocates an uninitialised, contiguous output.

    It is of the kind and on the device of `like`: torch tensors are answered with torch
    tensors, everything else with NumPy arrays, or with torch tensors on a GPU. Without `like`,
    programs that use torch get torch tensors: those that run under the alias of TileLang, and
    modules that have imported torch. Four-bit elements are packed: the last extent is halved.

    Parameters
    ----------
    like
        The first tensor among the arguments, or None.
    device
        Where the kernel runs: ``"cpu"``, or a kind such as ``"cuda"`` or ``"hip"``.

    Raises
    ------
    LaunchError
        If the output belongs on a GPU, and torch is not there to allocate it.
    """
    if dtype.packing > 1 and shape:
        shape = (*shape[:-1], -(-shape[-1] // dtype.packing))
    torch = loaded_torch()
    if torch is not None and isinstance(like, torch.Tensor):
        return partial(torch.empty, shape, dtype=torch_storage(dtype), device=like.device)
    if device != "cpu":
        if torch is None:
            raise LaunchError(
                f"an output on {device} is allocated by torch, which is not loaded",
                hint="import torch before the call, or pass the output as an argument",
            )
        place = torch_device(device)
        if like is not None:
            place = f"{place}:{like.get_device()}"
        return partial(torch.empty, shape, dtype=torch_storage(dtype), device=place)
    import numpy as np

    array = partial(
        np.empty, shape, packed_type(dtype).numpy() if dtype.packing > 1 else dtype.numpy()
    )
    if like is not None:
        return array

    def made() -> Any:
        torch = torch_if_installed() if _is_aliased() else loaded_torch()
        if torch is None or not (_is_aliased() or torch_calls()):
            return array()
        return torch.empty(shape, dtype=torch_storage(dtype))

    return made


def _is_aliased() -> bool:
    """Whether programs written for TileLang run here: their tensors are torch's."""
    alias = sys.modules.get("tile_api.tilelang.installing")
    return alias is not None and alias.installed() is not None


def packed_type(dtype: DType) -> DType:
    """Return the byte type that holds two four-bit elements."""
    return dtype_of("int8" if dtype.kind.value == "int" else "uint8")


def announce_write(tensor: Any) -> None:
    """Tell autograd that a torch tensor was changed behind its back.

    A gradient that needs the old contents then raises, instead of being wrong.
    """
    if not tensor.is_inference():
        sys.modules["torch"].autograd.graph.increment_version(tensor)


def is_torch(value: object) -> bool:
    """Tell whether `value` is a torch tensor."""
    torch = loaded_torch()
    return torch is not None and isinstance(value, torch.Tensor)


def torch_if_installed() -> Any:
    """Return the torch module, loading it, or None if it is not installed."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    return torch
