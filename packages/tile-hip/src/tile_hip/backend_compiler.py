"""What is AMD's own in the stages of the HIP backend: its pass configurations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tile_core.machine import SimtMachine
from tile_core.ops.rule import Rule
from tile_core.passes.pipelines.counted_copies import COUNTED, WIDE
from tile_core.plugins.gpu_artifact import GpuArtifact as Artifact

__all__ = ["ALLOW_TF32", "LDS_LOAD", "Artifact", "allowed"]

LDS_LOAD = "hip.lds_load"
"""The pass configuration that says whether waves copy straight into shared memory, where they can.

They do unless it is False: threads then load 16 bytes into registers where an instruction of the
wave copies 4 for each lane, a quarter of the instructions, and store them an iteration later.
"""

ALLOW_TF32 = "tl.allow_tf32"
"""The pass configuration under which factors of float32 may be rounded, here as xf32 is."""


def allowed(found: SimtMachine, options: Any) -> tuple[SimtMachine, Sequence[Rule[Any]]]:
    """Return the machine without what pass configurations forbid to a kernel, and its rules."""
    from tile_hip.rules.gemm import xf32_rules

    rules = (*options.rules, *(xf32_rules(found) if options.config(ALLOW_TF32, False) else ()))
    if not options.config(LDS_LOAD, True):
        found = replace(found, features=found.features - {COUNTED, WIDE})
    return found, rules
