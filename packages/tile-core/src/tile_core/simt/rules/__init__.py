"""How machines of many threads run each operator."""

from __future__ import annotations

from typing import Any

from tile_core.ops.rule import Rule
from tile_core.simt.rules.copy import copy_rules
from tile_core.simt.rules.element_wise import element_wise_rules


def element_rules() -> tuple[Rule[Any], ...]:
    """Return the rules of the operators that are loops over elements."""
    return (*copy_rules(), *element_wise_rules())
