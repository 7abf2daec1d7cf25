"""Tiles in accumulator memory need a machine that has it."""

from __future__ import annotations

from collections.abc import Collection

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.buffer import Scope
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Alloc, Kernel
from tile_core.target import Target


def refuse_accumulators(kernel: Kernel, target: Target, having: Collection[str]) -> None:
    """Refuse the first allocation of a tile in accumulator memory on a target that has none.

    Those of `having` have it: ``kind:arch``, or a kind if all of it do.
    """
    if target.kind in having or f"{target.kind}:{target.arch}" in having:
        return
    for node in nodes_of(kernel, Alloc):
        if node.buffer.scope is Scope.ACCUMULATOR:
            raise UnsupportedOnTarget(
                f"{target} has no accumulator memory, in which {node.buffer.name!r} is allocated",
                span=node.buffer.span or node.span,
                hint=f"use T.alloc_fragment; {' and '.join(sorted(having))} has such memory",
            )
