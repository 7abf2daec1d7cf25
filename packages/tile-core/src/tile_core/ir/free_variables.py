"""The variables that an expression mentions, and whether they are all that it depends on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tile_core.ir.expr import Binary, Cast, Const, Expr, Extent, Select, Unary, Var
from tile_core.ir.node import walk, walk_once


def free_variables(root: Extent) -> dict[Var, None]:
    """Return the variables `root` mentions, as an ordered set."""
    if isinstance(root, int):
        return {}
    return {node: None for node in walk_once(root) if isinstance(node, Var)}


def is_host_evaluable(root: Expr, known: Mapping[Var, Any]) -> bool:
    """Tell whether `evaluate` can give `root` a value from `known` alone."""
    allowed = (Const, Binary, Unary, Select, Cast)
    return all(
        node in known if isinstance(node, Var) else isinstance(node, allowed)
        for node in walk(root)
        if isinstance(node, Expr)
    )
