"""What the machine is, and what it can do at most: measured, not looked up."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from timing import Device, quick_us

PACKAGES = ("torch", "triton", "tilelang", "numpy", "nvidia-cublas", "nvidia-cudnn-cu13")
QUERY = (
    "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,power.draw,power.limit,temperature.gpu"
)


def described(device: Device) -> dict[str, Any]:
    """Return the names and versions of what takes part."""
    return {
        "device": _device_name(device),
        "python": platform.python_version(),
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if device.name == "cuda" else None,
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
        "state": state(),
    }


def _device_name(device: Device) -> str:
    if device.name == "cuda":
        return torch.cuda.get_device_name(0)
    return f"{platform.machine()} processor, a stand-in"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def state() -> Mapping[str, str]:
    """Return clocks, power and temperature as nvidia-smi tells them; nothing is changed."""
    command = ["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    values = done.stdout.splitlines()[0].split(",")
    return dict(zip(QUERY.split(","), map(str.strip, values), strict=False))


def peaks(device: Device) -> dict[str, float]:
    """Return GB/s of a copy, bytes read and written, and TFLOP/s of products of matrices.

    Products are of random numbers: those of zeros run faster.
    """
    is_real = device.name == "cuda"
    found = {"copy_gbps": _copying(device, (2 << 30) if is_real else 1 << 16)}
    n = 8192 if is_real else 64
    for name, dtype in (("float16", torch.float16), ("bfloat16", torch.bfloat16)):
        a, b = (torch.randn((n, n), device=device.device).to(dtype) for _ in range(2))
        product = _product(a, b)
        found[f"{name}_tflops"] = 2 * n**3 / quick_us(device, [product], 10) / 1e6
    return found


def _copying(device: Device, nbytes: int) -> float:
    source = torch.empty(nbytes, dtype=torch.uint8, device=device.device).random_()
    target = torch.empty_like(source)
    return 2 * nbytes / quick_us(device, [lambda: target.copy_(source)], 10) / 1e3


def _product(a: Any, b: Any) -> Any:
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=out)
