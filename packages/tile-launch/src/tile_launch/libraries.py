"""The libraries that GPUs are reached by; of AMD's, those in use first: there is one of each."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tile_launch.errors import MissingFeature

_MAPS = Path("/proc/self/maps")
_VERSIONS = ("", ".7", ".6", ".5")


def cuda_library(path: str | None = None) -> ctypes.CDLL:
    """Return the library of NVIDIA's driver; `MissingFeature` if there is none."""
    try:
        return ctypes.CDLL(path or "libcuda.so.1")
    except OSError as error:
        raise MissingFeature(
            f"this machine has no NVIDIA driver: {error}",
            hint="install the driver of the GPU, or load a kernel for another machine",
        ) from error


def hip_library(path: str | None = None) -> ctypes.CDLL:
    """Return the library of the HIP runtime; `MissingFeature` if there is none."""
    try:
        return open_library("libamdhip64") if path is None else ctypes.CDLL(path)
    except OSError as error:
        raise MissingFeature(
            f"this machine has no HIP runtime: {error}",
            hint="install ROCm or torch for ROCm, or point ROCM_PATH at it",
        ) from error


def open_library(name: str) -> ctypes.CDLL:
    """Return the shared library ``name.so``, such as ``"libamdhip64"``.

    Raises
    ------
    OSError
        If none of the places has one that can be loaded; it tells what was tried.
    """
    tried: list[str] = []
    for candidate in candidates(name):
        try:
            return ctypes.CDLL(candidate)
        except OSError as error:
            if os.sep not in candidate or os.path.exists(candidate):
                tried.append(str(error))
    raise OSError(tried[0] if tried else f"there is no {name}.so")


def candidates(name: str) -> Iterator[str]:
    """Yield where a library may be, in the order of trying.

    What this process has loaded; what torch has brought, whether it is loaded or not; what
    ``ROCM_PATH`` and ``HIP_PATH`` name; what the loader of the system finds; ``/opt/rocm``.
    """
    yield from _mapped(name)
    folders = _folders_of_torch()
    for variable in ("ROCM_PATH", "HIP_PATH"):
        if root := os.environ.get(variable):
            folders.append(Path(root, "lib"))
    for folder in folders:
        yield from sorted(str(path) for path in folder.glob(f"{name}.so*"))
    yield from (f"{name}.so{version}" for version in _VERSIONS)
    yield f"/opt/rocm/lib/{name}.so"


def _mapped(name: str) -> Iterator[str]:
    """Yield the libraries of that name in the memory of this process."""
    if _MAPS.exists():
        text = _MAPS.read_text()
        rows = text.splitlines() if name in text else ()  # of thousands; seldom one has the name
        lines = (line.split(maxsplit=5) for line in rows)
        paths = dict.fromkeys(parts[5] for parts in lines if len(parts) == 6)
        yield from (path for path in paths if path.rpartition("/")[2].startswith(f"{name}."))


def _folders_of_torch() -> list[Path]:
    loaded = getattr(sys.modules.get("torch"), "__file__", None)
    if loaded is None:
        try:
            spec = importlib.util.find_spec("torch")
        except (ImportError, ValueError):
            return []
        loaded = None if spec is None else spec.origin
    return [] if loaded is None else [Path(loaded).parent / "lib"]
