"""The OpenMP runtime that this process uses, or is going to use."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

_NAMES = ("libgomp", "libiomp5", "libomp")


def find_openmp() -> ctypes.CDLL | None:
    """Return the OpenMP runtime whose threads to share, or None if there is none.

    Two copies of one runtime would keep two sets of threads that fight for the cores. So in
    this order: what torch has loaded; what anything has loaded; what torch would load, if it
    is installed; the system's.
    """
    for candidate in (*_loaded(), *_bundled_with_torch(), "libgomp.so.1"):
        try:
            library = ctypes.CDLL(candidate)
        except OSError:
            continue
        if hasattr(library, "GOMP_parallel") and hasattr(library, "omp_in_parallel"):
            return library
    return None


def _loaded() -> Iterator[str]:
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return
    paths = dict.fromkeys(
        parts[5]
        for parts in (line.split(maxsplit=5) for line in maps.read_text().splitlines())
        if len(parts) == 6 and parts[5].rpartition("/")[2].startswith(_NAMES)
    )
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    home = str(Path(torch).parent) if torch else ""
    yield from sorted(paths, key=lambda path: not (home and path.startswith(home)))


def _bundled_with_torch() -> Iterator[str]:
    if "torch" in sys.modules:
        return
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        return
    if spec is None or spec.origin is None:
        return
    home = Path(spec.origin).parent
    for folder in (home / "lib", home.parent / "torch.libs"):
        yield from (str(path) for path in sorted(folder.glob("libgomp*.so*")))
