"""How machines of many threads run each operator."""

from __future__ import annotations

from typing import Any

from tile_core.ops.rule import Rule
from tile_core.simt.rules.copy import copy_rules
from tile_core.simt.rules.fallback_rules import atomic_rules


def element_rules() -> tuple[Rule[Any], ...]:
    """Return the rules of copies and of updates of elements."""
    return (*copy_rules(), *atomic_rules())
