"""Whose stream a launch joins and where workspaces come from: those of the tensors' library.

Torch for AMD's GPUs speaks of them as torch for NVIDIA's does, so that one module serves both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tile_launch.dtypes import bits_of
from tile_launch.errors import LaunchError
from tile_launch.loaded_torch import loaded_torch

DEFAULT_STREAM = 0
"""The legacy default stream, which waits for all others."""


def _torch_on_gpus() -> Any:
    """Return torch if it works with GPUs already; asking must not start them."""
    torch = loaded_torch()
    return torch if torch is not None and torch.cuda.is_initialized() else None


def _default_stream(device: int) -> int:
    return DEFAULT_STREAM


def stream_reader(family: str) -> Callable[[int], int]:
    """Return what tells the raw handle of the stream that work on a device goes to just then.

    It is torch's current stream, so that launches can be captured in a graph, or the default
    stream where torch is not in use, or works with GPUs of another maker.
    """
    raw: Callable[[int], int] | None = None

    def current_stream(device: int) -> int:
        nonlocal raw
        if raw is not None:
            return raw(device)
        torch = loaded_torch()
        if torch is None or not torch.cuda.is_initialized():  # asking must not start GPUs
            return DEFAULT_STREAM
        if family != ("hip" if torch.version.hip else "cuda"):
            raw = _default_stream
        else:  # torch that uses GPUs once does so until the end
            raw = torch._C._cuda_getCurrentRawStream
        return raw(device)

    return current_stream


def device_of(*tensors: Any) -> int:
    """Return the number of the device that holds `tensors`; None among them is nowhere.

    Without any, it is torch's current device, or the first where torch is not in use.
    """
    try:
        first: int = tensors[0].get_device()
        for tensor in tensors:
            if tensor.get_device() != first:
                break
        else:
            return first
    except (AttributeError, IndexError):
        pass
    return _device_of_any(tensors)


def _device_of_any(tensors: tuple[Any, ...]) -> int:
    """Return what `device_of` does, also for what is not torch's."""
    found: int | None = None
    for tensor in tensors:
        number = _number(tensor)
        if number is None:
            continue
        if found is not None and number != found:
            raise LaunchError(
                f"the tensors lie on devices {found} and {number}",
                hint="move all tensors of one call to one device",
            )
        found = number
    if found is None:
        torch = _torch_on_gpus()
        found = 0 if torch is None else int(torch.cuda.current_device())
    return found


def _number(argument: Any) -> int | None:
    on_device = getattr(argument, "get_device", None)
    if on_device is not None:
        return int(on_device())
    located = getattr(argument, "__dlpack_device__", None)
    return None if located is None else int(located()[1])


def allocator(allocate: Callable[[int, int], Any]) -> Callable[[tuple[int, ...], str, int], Any]:
    """Return ``empty(shape, dtype, device)``, which makes workspaces of undefined contents.

    They come from torch, whose allocator knows what is free, or from the driver where torch is
    not in use.
    """

    def empty(shape: tuple[int, ...], dtype: str, device: int) -> Any:
        size = -(-math.prod(shape) * bits_of(dtype) // 8)  # torch lacks some element types
        torch = _torch_on_gpus()
        if torch is None:
            return allocate(max(1, size), DEFAULT_STREAM)
        return torch.empty(size, dtype=torch.uint8, device=f"cuda:{device}")

    return empty
