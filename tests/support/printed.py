"""Kernels as they are printed."""

from typing import Any

from tile_core.ir.verify import verify


def body(kernel: Any) -> list[str]:
    """Return the printed statements of the launch of a kernel."""
    verify(kernel.kernel)
    lines = kernel.script().splitlines()
    start = next(k for k, line in enumerate(lines) if line.lstrip().startswith("launch"))
    return [line[4:] for line in lines[start + 1 :]]
