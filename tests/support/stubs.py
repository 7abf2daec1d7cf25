"""Drivers of GPUs that remember what they were asked, and tensors that claim to lie on them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tile_launch.dlpack import opened

SOURCES = Path(__file__).parents[1] / "unit"
LIBRARIES = {"tile_cuda": "libcuda.so.1", "tile_hip": "libamdhip64.so"}


def compiled_stub(package: str, folder: Path) -> Path:
    """Return the library that stands in for the driver of a backend, compiled once in `folder`.

    Its name is no driver's: what looks for one among the libraries of this process finds none.
    """
    compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler")
    built = folder / package / "stub_driver.so"
    if not built.exists():
        built.parent.mkdir(parents=True, exist_ok=True)
        source = SOURCES / package / "stub_driver.c"
        subprocess.run([compiler, "-shared", "-fPIC", "-w", "-o", built, source], check=True)
    return built


def stub_under_its_name(package: str, folder: Path) -> Path:
    """Return the same library where another process finds it: ``lib/libamdhip64.so``."""
    built = compiled_stub(package, folder)
    named = built.parent / "lib" / LIBRARIES[package]
    named.parent.mkdir(exist_ok=True)
    return Path(shutil.copy(built, named))


class Foreign:
    """An array that claims to lie on a GPU, and speaks nothing but DLPack.

    Parameters
    ----------
    kind
        DLPack's number of a kind of device: 2 is CUDA, 10 is ROCm.
    """

    def __init__(self, array: np.ndarray, kind: int, device: int = 0) -> None:
        self.array, self.kind, self.device = array, kind, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.kind, self.device)

    def __dlpack__(self) -> Any:
        capsule = self.array.__dlpack__()
        tensor, _ = opened(capsule)
        tensor.device_type, tensor.device_id = self.kind, self.device
        return capsule
