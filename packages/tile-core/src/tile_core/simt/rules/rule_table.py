"""The rules that all makers' GPUs have, around those of one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tile_core.machine import SimtMachine
from tile_core.ops.rule import Rule
from tile_core.simt.rules import element_rules
from tile_core.simt.rules.control import control_rules
from tile_core.simt.rules.fallback_rules import with_default
from tile_core.simt.rules.mbarrier import mbarrier_rules
from tile_core.simt.rules.ping_pong import ping_pong_rules
from tile_core.simt.rules.reduce import reduce_rules
from tile_core.simt.rules.reducer import reducer_rules
from tile_core.simt.rules.scan import scan_rules


def gpu_rules(machine: SimtMachine, own: Iterable[Rule[Any]]) -> tuple[Rule[Any], ...]:
    """Return every rule of a backend: the shared ones, and its `own` for its matrix units."""
    barriers = machine.has("transaction_barriers"), machine.has("register_reallocation")
    return with_default(
        (
            *element_rules(),
            *control_rules(),
            *reduce_rules(),
            *reducer_rules(),
            *scan_rules(),
            *own,
            *mbarrier_rules(*barriers),
            *ping_pong_rules(machine),
        )
    )
