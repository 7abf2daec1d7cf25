"""Devices among the arguments of torch's functions."""

from __future__ import annotations

from typing import Any

GPUS = ("cuda", "hip")
HOST = "cpu"


def is_gpu(device: Any) -> bool:
    """Tell whether an argument that is a device, in any of torch's spellings, is a GPU."""
    if isinstance(device, str):
        return device.partition(":")[0] in GPUS
    if isinstance(device, int) and not isinstance(device, bool):
        return True
    return getattr(device, "type", None) in GPUS


def on_host(device: Any) -> Any:
    """Return the device that is meant: the CPU where a GPU is named, else `device` itself."""
    return HOST if device is not None and is_gpu(device) else device


def is_host(device: Any) -> bool:
    """Tell whether a device is the CPU by name."""
    if isinstance(device, str):
        return device.partition(":")[0] == HOST
    return bool(getattr(device, "type", None) == HOST)
