"""Whether torch is installed and has a GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from tile_api.tensors import torch_storage
from tile_core.dtypes import DType
from tile_core.errors import UnsupportedOnTarget
from tile_launch.errors import MissingFeature
from tile_launch.libraries import cuda_library, hip_library


def gpu_arrays() -> Callable[[Any], Any] | None:
    """Return what copies NumPy arrays to torch's GPU, as torch tensors; None if there is none.

    GPUs of both makers are ``"cuda"`` to torch.
    """
    if "torch" not in sys.modules and not _has_driver():
        return None  # torch, which takes seconds to import, would see none
    try:
        import torch
    except Exception:  # none, or a broken one: `tile doctor` tells
        return None
    if not torch.cuda.is_available():
        return None
    return lambda array: torch.from_numpy(array).to("cuda")


def _has_driver() -> bool:
    for library in (cuda_library, hip_library):
        with suppress(MissingFeature):
            library()
            return True
    return False


def run_on_gpu(
    executable: Callable[..., None], arguments: Sequence[Any], dtypes: Sequence[DType | None]
) -> list[Any]:
    """Run a kernel on copies of NumPy arrays in torch's GPU; return what becomes of them.

    Scalars are numbers, and have no dtype.
    """
    to_gpu = gpu_arrays()
    if to_gpu is None:
        raise UnsupportedOnTarget(
            "there is no GPU that torch sees", hint="run it in the emulator: add @sim to the target"
        )
    import torch

    bits = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}
    there = [
        a if d is None else to_gpu(a.view(bits[a.itemsize])).view(torch_storage(d))
        for a, d in zip(arguments, dtypes, strict=True)
    ]
    executable(*there)
    return [
        a if d is None else t.view(getattr(torch, bits[a.itemsize])).cpu().numpy().view(a.dtype)
        for a, t, d in zip(arguments, there, dtypes, strict=True)
    ]
