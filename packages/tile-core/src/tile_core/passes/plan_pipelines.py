"""Loops whose copies run ahead of the work on what they copied."""

from __future__ import annotations

from tile_core.ir.stmt import Kernel
from tile_core.simt.machine import SimtMachine


def plan_pipelines(kernel: Kernel, machine: SimtMachine) -> Kernel:
    """Return `kernel` with its pipelined loops as plain ones."""
    return kernel
