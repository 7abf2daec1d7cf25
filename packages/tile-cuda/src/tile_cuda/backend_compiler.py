"""What is NVIDIA's own in the stages of the CUDA backend: pass configurations, and SASS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tile_core.machine import SimtMachine
from tile_core.ops.gemm import Gemm
from tile_core.ops.rule import Rule
from tile_core.plugins.gpu_artifact import GpuArtifact

ALLOW_TF32 = "tl.allow_tf32"
"""The pass configuration under which factors of float32 may be rounded to tf32."""

DISABLE_WGMMA = "tl.disable_wgmma"
"""The pass configuration under which warps multiply also where warpgroups could."""

SYNCHRONOUS = (("tl.enable_async_copy", "async_copy"), ("tir.use_async_copy", "async_copy"))
"""Pass configurations that, set to False, take an ability away from a kernel."""

UNELECTED = "tl.disable_shuffle_elect"
"""The pass configuration under which the first thread of a warp issues bulk copies."""


def allowed(found: SimtMachine, options: Any) -> tuple[SimtMachine, Sequence[Rule[Any]]]:
    """Return the machine without what pass configurations forbid to a kernel, and its rules."""
    from tile_cuda.rules.gemm import tf32_rules

    without = {ability for key, ability in SYNCHRONOUS if not options.config(key, True)}
    if options.config(UNELECTED, False):
        without.add("elect")
    made_for = replace(found, features=found.features - without) if without else found
    rules = (*options.rules, *(tf32_rules(made_for) if options.config(ALLOW_TF32, False) else ()))
    if options.config(DISABLE_WGMMA, False):
        rules = tuple(rule for rule in rules if not (rule.op is Gemm and rule.is_asynchronous))
    return made_for, rules


class Artifact(GpuArtifact):
    """Machine code of one kernel: a cubin."""

    __slots__ = ()

    @property
    def ptx(self) -> str:
        """The assembly of NVIDIA's virtual machine."""
        return self.compiled.assembly

    @property
    def sass(self) -> str:
        """The instructions of the machine itself; needs a disassembler."""
        from tile_cuda.disassembly import sass

        return sass(self.compiled.code)
