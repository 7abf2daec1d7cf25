"""Operators that do one thing to each element, as programs of one thread."""

from __future__ import annotations

from typing import Any

from tile_core.ops.atomic import AtomicTile
from tile_core.ops.copy import Im2col, Transpose
from tile_core.ops.fill import Fill
from tile_core.ops.rule import Rule
from tile_core.simt.elementwise import lower_element_wise
from tile_core.target import Target


def _rejects_bulk(op: AtomicTile, target: Target) -> str | None:
    if op.use_tma:
        return "bulk reductions of the tensor memory accelerator are not available"
    return None


def element_wise_rules() -> tuple[Rule[Any], ...]:
    """Return the rules of fills, transposes, image patches and atomic updates of tiles."""
    return (
        Rule(name="simt.fill", op=Fill, lower=lower_element_wise),
        Rule(name="simt.transpose", op=Transpose, lower=lower_element_wise),
        Rule(name="simt.im2col", op=Im2col, lower=lower_element_wise),
        Rule(name="simt.atomic", op=AtomicTile, lower=lower_element_wise, rejects=_rejects_bulk),
    )
