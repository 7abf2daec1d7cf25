"""How the CPU runs each operator: one file per family, fast rules above the serial one."""

from __future__ import annotations

from typing import Any

from tile_core.ops.rule import Rule
from tile_cpu.rules.elementwise import ELEMENTWISE_RULES
from tile_cpu.rules.gemm import GEMM_RULES
from tile_cpu.rules.reduce import REDUCE_RULE
from tile_cpu.rules.scan import SCAN_RULE

RULES: tuple[Rule[Any], ...] = (*ELEMENTWISE_RULES, *GEMM_RULES, REDUCE_RULE, SCAN_RULE)
"""Every way the CPU runs an operator."""
