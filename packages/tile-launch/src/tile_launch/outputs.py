"""New tensors for what calls return: of the kind, and on the device, of the arguments."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

from tile_launch.dtypes import bits_of, packing_of, storage_of
from tile_launch.errors import LaunchError
from tile_launch.loaded_torch import loaded_torch, torch_calls
from tile_launch.manifest import Tensor

_PLAIN = frozenset(
    {"bool", "float16", "float32", "float64"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
_OF_TORCH = {
    "tfloat32": "float32",
    "int4": "int8",
    "uint4": "uint8",
    "float4_e2m1fn": "float4_e2m1fn_x2",
    "float4_e2m1_unpacked": "uint8",
    "handle": "int64",
}


def calling_torch() -> Any:
    """Return torch if the module that calls a kernel has imported it, else None."""
    return loaded_torch() if torch_calls() else None


def output_maker(
    param: Tensor,
    shape: tuple[int, ...],
    like: Any,
    device: str,
    *,
    torch_of_caller: Callable[[], Any] = calling_torch,
    instead: str = "pass all tensors to kernel.run",
) -> Callable[[], Any]:
    """Return what allocates an uninitialised, contiguous output.

    Torch tensors are answered with torch tensors, everything else with NumPy arrays, or with torch
    tensors on a GPU. Four-bit elements are packed: the last extent is halved. NumPy arrays hold
    element types that NumPy lacks as those of `ml_dtypes`, if it is installed, else as unsigned
    integers of the same size. `like` is the first tensor among the arguments, if any: without it
    `torch_of_caller` returns torch if outputs are to be its tensors. Where only torch allocates, an
    error tells what to do `instead`.
    """
    if packing_of(param.dtype) > 1 and shape:
        shape = (*shape[:-1], -(-shape[-1] // packing_of(param.dtype)))
    torch = loaded_torch()
    if torch is not None and isinstance(like, torch.Tensor):
        kind = torch_storage(param.dtype, torch)
        return partial(torch.empty, shape, dtype=kind, device=like.device)
    if device != "cpu":
        if torch is None:
            raise LaunchError(
                f"an output on {device} is allocated by torch, which is not loaded",
                hint=f"import torch before the call, or {instead}",
            )
        place = "cuda" if like is None else f"cuda:{like.get_device()}"  # AMD's GPUs, too
        return partial(torch.empty, shape, dtype=torch_storage(param.dtype, torch), device=place)
    import numpy as np

    array = partial(np.empty, shape, numpy_type(param.dtype))
    if like is not None:
        return array

    def made() -> Any:
        torch = torch_of_caller()
        if torch is None:
            return array()
        return torch.empty(shape, dtype=torch_storage(param.dtype, torch))

    return made


def torch_storage(name: str, torch: Any) -> Any:
    """Return the ``torch.dtype`` whose elements hold those of an element type.

    Four-bit elements are stored two per byte. Types that torch does not know are stored as
    bytes: ``torch.int8`` for ``float4_e2m1fn``, ``torch.uint8`` for the others.
    """
    fallback = torch.int8 if name == "float4_e2m1fn" else torch.uint8
    return getattr(torch, _OF_TORCH.get(name, name), fallback)


def numpy_type(name: str) -> Any:
    """Return the ``numpy.dtype`` whose elements hold those of an element type."""
    import numpy as np

    if packing_of(name) > 1:
        return np.dtype("int8" if name == "int4" else "uint8")
    stored = storage_of(name)
    if stored in _PLAIN:
        return np.dtype(stored)
    if importlib.util.find_spec("ml_dtypes") is not None:
        found = getattr(importlib.import_module("ml_dtypes"), stored, None)
        if found is not None:
            return np.dtype(found)
    return np.dtype(f"uint{max(8, bits_of(stored))}")
