"""How NVIDIA GPUs run each operator: what all machines of threads share, and matrix units."""

from __future__ import annotations

from typing import Any

from tile_core.ops.rule import Rule
from tile_core.simt.rules import element_rules
from tile_core.simt.rules.control import control_rules
from tile_core.simt.rules.default import with_default
from tile_core.simt.rules.mbarrier import mbarrier_rules
from tile_core.simt.rules.ping_pong import ping_pong_rules
from tile_core.simt.rules.reduce import reduce_rules
from tile_core.simt.rules.reducer import reducer_rules
from tile_core.simt.rules.scan import scan_rules
from tile_core.target import Target
from tile_cuda.machine import machine
from tile_cuda.rules.bulk_copy import bulk_copy_rules
from tile_cuda.rules.gemm import gemm_rules
from tile_cuda.rules.remote_copy import remote_copy_rules
from tile_cuda.stages import exact


def all_rules(target: Target) -> tuple[Rule[Any], ...]:
    """Return every rule of the CUDA backend for `target`."""
    made_for = machine(exact(target).arch)
    known = (
        *element_rules(),
        *control_rules(),
        *reduce_rules(),
        *reducer_rules(),
        *scan_rules(),
        *gemm_rules(made_for),
        *mbarrier_rules(
            made_for.has("transaction_barriers"), made_for.has("register_reallocation")
        ),
        *bulk_copy_rules(made_for),
        *remote_copy_rules(made_for),
        *ping_pong_rules(made_for),
    )
    return with_default(known)
