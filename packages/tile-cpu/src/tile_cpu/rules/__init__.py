"""How the CPU runs each operator: one file per family, fast rules above the serial one."""

from __future__ import annotations

from typing import Any

from tile_core.ops.rule import Rule
from tile_core.target import Target
from tile_cpu.rules.elementwise import ELEMENTWISE_RULES
from tile_cpu.rules.gemm import GEMM_RULES
from tile_cpu.rules.reduce import REDUCE_RULES
from tile_cpu.rules.serial import SERIAL_RULES


def all_rules(target: Target) -> tuple[Rule[Any], ...]:
    """Return every way the CPU runs an operator."""
    return (*SERIAL_RULES, *ELEMENTWISE_RULES, *GEMM_RULES, *REDUCE_RULES)
