"""How AMD GPUs run each operator: what all machines of threads share, and matrix units."""

from __future__ import annotations

from typing import Any

from tile_core.machine import SimtMachine
from tile_core.ops.rule import Rule
from tile_core.simt.rules.rule_table import gpu_rules
from tile_hip.rules.gemm import gemm_rules


def all_rules(machine: SimtMachine) -> tuple[Rule[Any], ...]:
    """Return every rule of the HIP backend for `machine`."""
    return gpu_rules(machine, gemm_rules(machine))
