"""How NVIDIA GPUs run each operator: what all machines of threads share, and matrix units."""

from __future__ import annotations

from typing import Any

from tile_core.machine import SimtMachine
from tile_core.ops.rule import Rule
from tile_core.simt.rules.rule_table import gpu_rules
from tile_cuda.rules.bulk_copy import bulk_copy_rules
from tile_cuda.rules.gemm import gemm_rules
from tile_cuda.rules.remote_copy import remote_copy_rules


def all_rules(machine: SimtMachine) -> tuple[Rule[Any], ...]:
    """Return every rule of the CUDA backend for `machine`."""
    own = (*gemm_rules(machine), *bulk_copy_rules(machine), *remote_copy_rules(machine))
    return gpu_rules(machine, own)
