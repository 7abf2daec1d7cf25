"""New tensors for what calls return: of the kind, and on the device, of the arguments."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

from tile_launch.calling_library import torch_calls
from tile_launch.dtypes import bits_of, packing_of
from tile_launch.errors import LaunchError
from tile_launch.loaded_torch import loaded_torch
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
_OF_NUMPY = {
    "tfloat32": "float32", "int4": "int8", "uint4": "uint8", "float4_e2m1fn": "uint8",
    "float4_e2m1_unpacked": "uint8", "handle": "uint64",
}  # fmt: skip


def output_maker(
    param: Tensor, shape: tuple[int, ...], like: Any, device: str
) -> Callable[[], Any]:
    """Return what allocates an uninitialised, contiguous output.

    Torch tensors are answered with torch tensors, everything else with NumPy arrays, or with
    torch tensors on a GPU. Without `like`, modules that have imported torch get torch tensors.
    Four-bit elements are packed: the last extent is halved. NumPy
    arrays hold element types that NumPy lacks as those of `ml_dtypes`, if it is installed,
    else as unsigned integers of the same size.

    Parameters
    ----------
    like
        The first tensor among the arguments, or None.
    device
        Where the kernel runs: ``"cpu"``, ``"cuda"`` or ``"hip"``.

    Raises
    ------
    LaunchError
        If the output belongs on a GPU, and torch is not there to allocate it.
    """
    if packing_of(param.dtype) > 1 and shape:
        shape = (*shape[:-1], -(-shape[-1] // packing_of(param.dtype)))
    torch = loaded_torch()
    if torch is not None and isinstance(like, torch.Tensor):
        return partial(torch.empty, shape, dtype=_of_torch(param.dtype, torch), device=like.device)
    if device != "cpu":
        if torch is None:
            raise LaunchError(
                f"an output on {device} is allocated by torch, which is not loaded",
                hint="import torch before the call, or pass all tensors to kernel.run",
            )
        number = 0 if like is None else like.get_device()
        place = f"cuda:{number}"  # torch calls AMD's GPUs that too
        return partial(torch.empty, shape, dtype=_of_torch(param.dtype, torch), device=place)
    import numpy as np

    array = partial(np.empty, shape, _of_numpy(param.dtype))
    if like is not None:
        return array

    def made() -> Any:
        torch = loaded_torch()
        if torch is None or not torch_calls():
            return array()
        return torch.empty(shape, dtype=_of_torch(param.dtype, torch))

    return made


def _of_torch(name: str, torch: Any) -> Any:
    fallback = torch.int8 if name == "float4_e2m1fn" else torch.uint8
    return getattr(torch, _OF_TORCH.get(name, name), fallback)


def _of_numpy(name: str) -> Any:
    import numpy as np

    stored = _OF_NUMPY.get(name, name)
    if stored in _PLAIN:
        return np.dtype(stored)
    if importlib.util.find_spec("ml_dtypes") is not None:
        found = getattr(importlib.import_module("ml_dtypes"), stored, None)
        if found is not None:
            return np.dtype(found)
    return np.dtype(f"uint{max(8, bits_of(stored))}")
