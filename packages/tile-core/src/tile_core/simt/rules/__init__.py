"""How machines of many threads run each operator."""

from __future__ import annotations

from typing import Any

from tile_core.ops.rule import Rule


def element_rules() -> tuple[Rule[Any], ...]:
    """Return the rules of the operators that are loops over elements."""
    return ()
